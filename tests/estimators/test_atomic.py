import numpy as np
import pandas as pd
import pytest
import torch

from ahop import AdaptiveHopfield
from ahop.estimators import HopfieldBagClassifier, HopfieldClassifier, HopfieldRegressor, HopfieldRetriever

DRAW = np.random.default_rng(0)
ROWS, CLASSES = DRAW.normal(size=(12, 3)), np.arange(12) % 2
# What the fit that fails is given has other columns, names for them, and other classes.
WIDE = pd.DataFrame(DRAW.normal(size=(15, 4)), columns=list("abcd"))
LABELS = np.array(["x", "y", "z"] * 5)
TINY = {"width": 4, "epochs": 2, "batch_size": 6, "random_state": 0, "device": "cpu"}


def fitted(kind):
    """An estimator that has learned, and what it answers."""
    if kind is HopfieldRetriever:
        queries = ROWS + 0.1
        estimator = kind("a-hop").fit(ROWS, queries=queries, origins=np.arange(12))
        return estimator, lambda: [estimator.transform(ROWS), *estimator.kneighbors(ROWS)]
    options = {"num_heads": 1} if kind is HopfieldBagClassifier else {"members": 2}
    estimator = kind(**TINY, **options).fit(ROWS, CLASSES)
    if kind is HopfieldRegressor:
        return estimator, lambda: [estimator.predict(ROWS), *estimator.recall(ROWS, 2), estimator.explain(ROWS)]
    if kind is HopfieldBagClassifier:
        return estimator, lambda: [estimator.predict(ROWS), estimator.predict_proba(ROWS)]
    return estimator, lambda: [estimator.predict(ROWS), estimator.predict_proba(ROWS), estimator.explain(ROWS)]


def given(kind, **other):
    """Arguments of a fit that would succeed, but for what is said otherwise."""
    if kind is HopfieldRetriever:
        return {"X": WIDE, "queries": WIDE.to_numpy(), "origins": np.arange(15)} | other
    return {"X": WIDE, "y": np.arange(15.0) if kind is HopfieldRegressor else LABELS} | other


def hidden(table):
    return pd.DataFrame(table).assign(a=np.inf)


TABLES = (HopfieldClassifier, HopfieldRegressor)
ALL = (*TABLES, HopfieldBagClassifier, HopfieldRetriever)
BAD = [
    *((kind, {"X": hidden(WIDE)}, {}) for kind in ALL),
    *((kind, {"y": None}, {}) for kind in ALL[:3]),
    *((kind, {"y": LABELS[:4]}, {}) for kind in ALL[:3]),
    *((kind, {"y": [1.0, np.nan] * 7 + [2.0]}, {}) for kind in ALL[:3]),
    *((kind, {"sample_weight": np.full(15, -1.0)}, {}) for kind in TABLES),
    *((kind, {"sample_weight": np.zeros(15)}, {}) for kind in TABLES),
    *((kind, {}, {"device": "abacus"}) for kind in ALL),
    *((kind, {}, {"learning_rate": -1.0}) for kind in ALL[:3]),
    *((kind, {}, {"similarity": "none"}) for kind in ALL[:3]),
    *((kind, {}, {"scaling": "none"}) for kind in ALL[:3]),
    (HopfieldClassifier, {}, {"class_weight": {"x": -1.0, "y": 1.0, "z": 1.0}}),
    (HopfieldRegressor, {"y": ["word"] * 15}, {}),
    (HopfieldRegressor, {"y": np.full(15, 1e300) * DRAW.normal(size=15)}, {}),
    (HopfieldBagClassifier, {}, {"monotone": True}),
    (HopfieldBagClassifier, {"bags": np.zeros(3)}, {}),
    (HopfieldRetriever, {"origins": [99] * 15}, {}),
    (HopfieldRetriever, {}, {"model": "none"}),
    (HopfieldRetriever, {}, {"options": {"colour": "red"}}),
]


def check_that_nothing_changes(estimator, ask, arguments, settings, error):
    answers = ask()
    usual = {name: getattr(estimator, name) for name in settings}
    before = dict(vars(estimator.set_params(**settings)))
    with pytest.raises(error):
        estimator.fit(**arguments)
    assert set(vars(estimator)) == set(before)
    assert all(vars(estimator)[name] is value for name, value in before.items())
    estimator.set_params(**usual)
    for now, then in zip(ask(), answers, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize(("kind", "other", "settings"), BAD, ids=lambda value: getattr(value, "__name__", None))
def test_a_fit_that_is_refused_leaves_every_answer_and_attribute(kind, other, settings):
    check_that_nothing_changes(*fitted(kind), given(kind, **other), settings, (ValueError, TypeError))


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("step", [1, 4])
@pytest.mark.parametrize("kind", ALL)
def test_a_fit_that_is_broken_off_leaves_every_answer_and_attribute(kind, step, error, monkeypatch):
    """In the middle of the learning, and in that of a second member."""
    estimator, ask = fitted(kind)
    left = 1 if kind is HopfieldRetriever else step

    def interrupt(*_, **__):
        nonlocal left
        left -= 1
        if not left:
            raise error("in the middle")

    where = (AdaptiveHopfield, "fit") if kind is HopfieldRetriever else (torch.optim.AdamW, "step")
    monkeypatch.setattr(*where, interrupt)
    check_that_nothing_changes(estimator, ask, given(kind), {}, error)
    assert not left


@pytest.mark.parametrize("kind", ALL)
def test_a_fit_that_succeeds_leaves_nothing_of_the_one_before(kind):
    estimator, _ = fitted(kind)
    assert estimator.fit(**given(kind)) is estimator
    assert estimator.n_features_in_ == 4 and list(estimator.feature_names_in_) == list("abcd")
    narrow = {name: np.asarray(value)[:, :2] if np.ndim(value) == 2 else value for name, value in given(kind).items()}
    estimator.fit(**narrow)
    assert estimator.n_features_in_ == 2 and not hasattr(estimator, "feature_names_in_")
