from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.guards import Watch, apart, rows

from ahop.estimators import CalibrationTransfer, DirectStandardization, PiecewiseDirectStandardization
from ahop.estimators import transfer as module
from ahop.estimators.transfer import _STRENGTHS, _ridge

DRAW = np.random.default_rng(0)
CHANNELS = np.linspace(0, 1, 30)
# Spectra of ten substances in different amounts, and a second instrument with an offset, a drift and noise.
FIRST = DRAW.random((200, 10)) @ np.exp(-np.square((CHANNELS - DRAW.random((10, 1))) / 0.1))
DRIFT = 0.5 * DRAW.normal(size=(200, 1)) * np.cos(25 * CHANNELS)
SECOND = 1.1 * FIRST + 0.5 * CHANNELS + DRIFT + 0.02 * DRAW.normal(size=FIRST.shape)
PAIRS, LIBRARY, TEST = slice(0, 20), slice(20, 100), slice(100, 200)


def error(transfer):
    return float(np.sqrt(np.square(transfer.transform(SECOND[TEST]) - FIRST[TEST]).mean()))


@parametrize_with_checks([DirectStandardization(), PiecewiseDirectStandardization(window=3)])
def test_it_is_an_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CalibrationTransfer()])
def test_so_is_the_choice_among_them(estimator, check):
    check(estimator)


def test_the_strength_of_a_regression_is_that_of_the_least_leave_one_out_error():
    seen, wanted = SECOND[:12], FIRST[:12]
    centred, targets = seen - seen.mean(0), wanted - wanted.mean(0)
    largest = np.linalg.norm(centred, 2) ** 2
    ridge = partial(Ridge, solver="svd")
    errors = [
        np.square(cross_val_predict(ridge(strength * largest), seen, wanted, cv=LeaveOneOut()) - wanted).mean()
        for strength in _STRENGTHS
    ]
    best = ridge(_STRENGTHS[np.argmin(errors)] * largest).fit(seen, wanted)
    np.testing.assert_allclose(_ridge(centred[None], targets[None])[0], best.coef_.T, atol=1e-6)


def test_a_window_of_one_channel_is_the_slope_and_bias_of_each():
    second = FIRST * (1 + CHANNELS) - 5 * CHANNELS
    transfer = PiecewiseDirectStandardization(window=1).fit(second[PAIRS], FIRST[PAIRS])
    np.testing.assert_allclose(transfer.coef_[:, 0], 1 / (1 + CHANNELS), rtol=1e-6)
    np.testing.assert_allclose(transfer.transform(second[TEST]), FIRST[TEST], atol=1e-6)


def test_a_piece_heeds_its_window_and_nothing_else():
    transfer = PiecewiseDirectStandardization(window=5).fit(SECOND[PAIRS], FIRST[PAIRS])
    other = SECOND[TEST].copy()
    other[:, 13:] += 1
    changed = np.abs(transfer.transform(other) - transfer.transform(SECOND[TEST])).max(0) > 0
    assert not changed[:11].any() and changed[11:].any()


def without_memories(monkeypatch):
    monkeypatch.setattr(module, "_RANKS", ())


@pytest.fixture(scope="module")
def few():
    """A transfer that eight pairs were known for, with a memory of one hidden cause among those it was chosen from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_RANKS", (1,))
        return CalibrationTransfer().fit(SECOND[:8], FIRST[:8], library=FIRST[LIBRARY])


def test_a_memory_is_chosen_where_a_drift_moves_all_channels_and_few_pairs_are_known(few):
    errors = few.rmsecv_
    assert list(errors) == ["none", "slope and bias", "PDS", "DS", "b-hop, 1 hidden cause"]
    assert few.chosen_ == "b-hop, 1 hidden cause" and errors[few.chosen_] == min(errors.values())
    # What was held out tells what to expect.
    assert 0.6 < errors[few.chosen_] / error(few) < 1.6
    assert error(few) < error(DirectStandardization().fit(SECOND[:8], FIRST[:8]))
    assert errors["none"] == pytest.approx(np.sqrt(np.square(SECOND[:8] - FIRST[:8]).mean()))


@pytest.mark.slow
def test_what_is_better_is_chosen_though_memories_were_tried():
    assert CalibrationTransfer().fit(SECOND[PAIRS], FIRST[PAIRS]).chosen_ == "DS"


def test_what_is_better_is_chosen_be_it_nothing(monkeypatch):
    without_memories(monkeypatch)
    assert CalibrationTransfer().fit(FIRST[:8], FIRST[:8]).chosen_ == "none"
    assert CalibrationTransfer().fit(2 * FIRST[:8], FIRST[:8]).chosen_ == "slope and bias"
    assert CalibrationTransfer().fit(SECOND[PAIRS], FIRST[PAIRS]).chosen_ == "DS"


def test_no_pair_judges_what_has_learned_from_it_be_it_repeated_or_in_the_library(monkeypatch):
    again = np.concatenate([SECOND[:10], SECOND[:10] + 0.01]), np.concatenate([FIRST[:10]] * 2)
    watch = Watch(monkeypatch).on(module._Restored, "fit", lambda self, *_: self)
    watch.on(module._Restored, "transform", lambda _, rows: 99 + rows)
    CalibrationTransfer().fit(*again, library=FIRST[:40])
    asked = dict(zip(map(bytes, again[0]), again[1], strict=True))
    judged = watch.of("transform")
    assert len(judged) == 5 * 3
    for call in judged:
        learned = [fit for fit in watch.of("fit") if fit.self is call.self]
        first = [asked[bytes(row)] for row in call.X]
        apart(rows(*[np.concatenate([fit.y, fit.self.library]) for fit in learned]), rows(np.array(first)))


def test_instruments_of_different_channels_are_led_to_each_other():
    transfer = CalibrationTransfer().fit(SECOND[PAIRS, ::2], FIRST[PAIRS], library=FIRST[LIBRARY])
    assert list(transfer.rmsecv_) == ["slope and bias", "PDS", "DS", "b-hop, a map"]
    assert transfer.transform(SECOND[TEST, ::2]).shape == (100, 30)


@pytest.mark.slow
def test_units_change_nothing():
    plain, other = CalibrationTransfer(), CalibrationTransfer()
    plain.fit(SECOND[PAIRS], FIRST[PAIRS], library=FIRST[LIBRARY])
    other.fit(1e3 * SECOND[PAIRS] + 7, 1e3 * FIRST[PAIRS] + 7, library=1e3 * FIRST[LIBRARY] + 7)
    assert plain.chosen_ == other.chosen_
    np.testing.assert_allclose(
        other.transform(1e3 * SECOND[TEST] + 7), 1e3 * plain.transform(SECOND[TEST]) + 7, rtol=1e-3, atol=1
    )


def test_it_is_kept_in_a_file_and_part_of_a_pipeline(tmp_path, few):
    joblib.dump(few, tmp_path / "transfer.joblib")
    again = joblib.load(tmp_path / "transfer.joblib")
    np.testing.assert_array_equal(again.transform(SECOND[TEST]), few.transform(SECOND[TEST]))
    both = make_pipeline(PiecewiseDirectStandardization(), Ridge())
    assert both.fit(SECOND[PAIRS], FIRST[PAIRS]).predict(SECOND[TEST]).shape == (100, 30)


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(ValueError, match="window must be an odd number of channels, got 4"):
        PiecewiseDirectStandardization(window=4).fit(SECOND[PAIRS], FIRST[PAIRS])
    with pytest.raises(ValueError, match="library must have 30 columns, as y has; got 29"):
        CalibrationTransfer().fit(SECOND[PAIRS], FIRST[PAIRS], library=FIRST[:, 1:])
    with pytest.raises(ValueError, match=r"y must have at least two different rows.*; got 1 sample"):
        CalibrationTransfer().fit(SECOND[:4], FIRST[[0, 0, 0, 0]])
