import os
import subprocess
import sys
from contextlib import contextmanager
from decimal import Decimal

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ahop._progress import progress
from ahop.estimators import HopfieldClassifier, HopfieldRegressor
from ahop.similarity import Adaptive, Cosine, Decomposable
from ahop.similarity.mahalanobis import Mahalanobis

SMALL = {"width": 16, "epochs": 10, "cases_per_step": 256}
# A row twice is not seen by itself, but by its twin: training goes another way, as with all that learns in batches.
TWINS = {
    "check_sample_weight_equivalence_on_dense_data": "rows are drawn in batches",
}


@pytest.mark.slow
@parametrize_with_checks([HopfieldClassifier(**SMALL)], expected_failed_checks=lambda estimator: TWINS)
def test_it_is_an_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [HopfieldRegressor(**SMALL), HopfieldClassifier(**SMALL, readout="mlp", cases="sampled")],
    expected_failed_checks=lambda estimator: TWINS,
)
def test_so_is_a_regressor_and_one_with_another_readout(estimator, check):
    check(estimator)


def people(count=400, seed=0):
    """A table with all that tables have: numbers, categories, missing values, a constant."""
    draw = np.random.default_rng(seed)
    age, pay, town = draw.uniform(18, 90, count), draw.lognormal(3, 1, count), draw.choice(["x", "y", "z"], count)
    wealth = (age > 50).astype(int) ^ (town == "y")
    frame = pd.DataFrame({"age": age, "pay": pay, "town": pd.Categorical(town), "planet": "earth", "eyes": 2})
    frame.loc[draw.random(count) < 0.1, "pay"] = np.nan
    frame.loc[draw.random(count) < 0.05, "town"] = None
    return frame, np.array(["poor", "rich"])[wealth]


@pytest.fixture(scope="module")
def fitted():
    return HopfieldClassifier(width=32, random_state=0).fit(*people())


def test_a_frame_goes_in_as_it_is(fitted):
    frame, labels = people(seed=1)
    assert fitted.score(frame, labels) > 0.9
    likely = fitted.predict_proba(frame)
    np.testing.assert_allclose(likely.sum(1), 1, atol=1e-9)
    assert fitted.feature_names_in_.tolist() == list(frame)


def test_an_unseen_category_is_answered(fitted):
    frame, _ = people(20, seed=1)
    likely = fitted.predict_proba(frame.assign(town="nowhere", planet="mars"))
    assert np.isfinite(likely).all()
    # The town decides, so that without it nobody can be sure.
    assert likely.max(1).mean() < fitted.predict_proba(frame).max(1).mean()


def test_it_says_which_cases_a_decision_rests_on(fitted):
    frame, labels = people()
    found = fitted.recall(frame[:10], k=400)
    np.testing.assert_allclose(found.weights.sum(1), 1)
    assert (np.diff(found.weights) <= 0).all()
    assert (found.targets == labels[found.indices]).all()
    rich = (found.weights * (found.targets == "rich")).sum(1)
    # The temperature that calibrates comes on top.
    odds = (np.log(rich) - np.log1p(-rich)) / fitted.memories_[0].temperature
    np.testing.assert_allclose(fitted.predict_proba(frame[:10])[:, 1], 1 / (1 + np.exp(-odds)), atol=1e-5)
    # Nothing is as like a row as itself.
    assert (fitted.recall(frame).indices[:, 0] == np.arange(len(frame))).mean() > 0.9


def test_it_says_which_columns_mattered(fitted):
    frame, _ = people(seed=1)
    mattered = fitted.explain(frame)
    typical = mattered.abs().mean()
    assert min(typical["age"], typical["town"]) > 3 * typical["pay"]
    assert typical["planet"] == pytest.approx(0, abs=1e-9)
    assert typical["eyes"] == pytest.approx(0, abs=1e-6)


def test_reasons_have_the_names_of_what_was_asked(fitted):
    frame, labels = people()
    some = frame[3:5].set_axis(["ann", "bob"])
    mattered = fitted.explain(some)
    assert list(mattered) == list(frame) and list(mattered.index) == ["ann", "bob"]
    found = fitted.recall(some, k=3)
    cases = found.frame(frame)
    assert list(cases) == ["weight", "target", *frame] and len(cases) == 6
    assert cases.loc[(1, 2), "age"] == frame["age"].iloc[found.indices[1, 2]]
    assert cases.loc[(1, 2), "target"] == labels[found.indices[1, 2]]
    assert cases.loc[1, "weight"].tolist() == found.weights[1].tolist()
    assert list(found.frame(frame[["age"]].rename(columns={"age": "weight"}))) == ["weight", "target", "weight_of_case"]
    for wrong, kind in ((frame.to_numpy(), "ndarray"), (frame[:1], "1 rows")):
        with pytest.raises(ValueError, match=f"table must be the DataFrame that fit was given.*got {kind}"):
            found.frame(wrong)


def test_reasons_for_an_array_are_an_array():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    classifier = HopfieldClassifier(width=8, epochs=1, random_state=0).fit(rows, rows[:, 0] > 0)
    assert isinstance(classifier.explain(rows), np.ndarray)


@pytest.mark.parametrize("similarity", ["euclidean", "distance", "dot", "kernel", "adaptive", "likelihood", Cosine()])
@pytest.mark.parametrize(
    "readout", [{"readout": "mlp", "cases": "kmeans", "n_cases": 32}, pytest.param({}, marks=pytest.mark.slow)]
)
def test_every_similarity_learns(similarity, readout):
    classifier = HopfieldClassifier(similarity=similarity, width=16, random_state=0, epochs=50, **readout)
    assert classifier.fit(*people()).score(*people(seed=1)) > 0.8


class Gap(Decomposable):
    """A similarity that nobody has told the library of."""

    name = "gap of the tables"

    def terms(self, patterns, queries):
        return -(patterns - queries).abs()


@pytest.mark.parametrize("similarity", ["mahalanobis", Mahalanobis(8), "gap of the tables", Gap()])
@pytest.mark.parametrize("kind", [HopfieldClassifier, HopfieldRegressor])
def test_any_similarity_serves_by_name_and_by_object(kind, similarity, tmp_path):
    rows = np.random.default_rng(0).normal(size=(80, 2))
    labels = (rows[:, 0] > 0).astype(int)
    estimator = kind(similarity=similarity, width=8, epochs=20, random_state=0).fit(rows, labels)
    assert ((estimator.predict(rows) > 0.5) == labels).mean() > 0.9
    joblib.dump(estimator, tmp_path / "kept")
    np.testing.assert_array_equal(joblib.load(tmp_path / "kept").predict(rows), estimator.predict(rows))


@pytest.mark.parametrize(
    ("embedding", "cases"),
    [
        pytest.param("periodic", "sampled", marks=pytest.mark.slow),
        pytest.param("periodic", "all", marks=pytest.mark.slow),
        pytest.param("linear", "kmeans", marks=pytest.mark.slow),
        ("columns", "all"),
        ("columns", "kmeans"),
    ],
)
def test_every_embedding_and_choice_of_cases(embedding, cases):
    rows = np.random.default_rng(0).normal(size=(300, 3))
    labels = (rows[:, 0] + rows[:, 1] > 0).astype(int)
    classifier = HopfieldClassifier(embedding=embedding, cases=cases, n_cases=100, random_state=0, width=16)
    assert classifier.fit(rows, labels).score(rows, labels) > 0.85
    assert len(classifier.case_indices_) == (300 if cases == "all" else pytest.approx(100, abs=10))
    assert (classifier.recall(rows, k=2).targets == labels[classifier.recall(rows, k=2).indices]).all()


@pytest.mark.slow
def test_members_take_turns_with_the_held_out_part(monkeypatch):
    held_out = []
    member = HopfieldClassifier._member

    def watched(self, rows, stored, held, *rest):
        held_out.append(held)
        return member(self, rows, stored, held, *rest)

    monkeypatch.setattr(HopfieldClassifier, "_member", watched)
    classifier = HopfieldClassifier(**SMALL, members=7, random_state=0).fit(*people(200))
    assert len(classifier.memories_) == 7
    assert sorted(np.concatenate(held_out[:5])) == list(range(200))
    labels = people(200)[1]
    for held in held_out:
        assert (labels[held] == "rich").mean() == pytest.approx((labels == "rich").mean(), abs=0.05)


@pytest.mark.slow
def test_probabilities_are_calibrated():
    draw = np.random.default_rng(0)
    rows = draw.uniform(-1, 1, (3000, 2))
    chances = 1 / (1 + np.exp(-4 * rows[:, 0]))
    labels = (draw.random(3000) < chances).astype(int)
    classifier = HopfieldClassifier(random_state=0).fit(rows[:1000], labels[:1000])
    likely = classifier.predict_proba(rows[1000:])[:, 1]
    assert np.abs(likely - chances[1000:]).mean() < 0.08
    bins = np.digitize(likely, [0.2, 0.4, 0.6, 0.8])
    for part in range(5):
        assert likely[bins == part].mean() == pytest.approx(labels[1000:][bins == part].mean(), abs=0.1)


def test_weights():
    draw = np.random.default_rng(0)
    rows, labels = draw.normal(size=(300, 2)), np.arange(300) % 3
    classifier = HopfieldClassifier(**SMALL, random_state=0)
    weights = np.where(labels == 2, 0.0, np.where(labels == 1, 9.0, 1.0))
    likely = classifier.fit(rows, labels, sample_weight=weights).predict_proba(rows).mean(0)
    np.testing.assert_allclose(likely, [0.1, 0.9, 0.0], atol=0.03)
    assert not (labels[classifier.case_indices_] == 2).any()
    some = labels != 2
    uneven = np.r_[np.zeros(90), np.ones(10)]
    balanced = HopfieldClassifier(**SMALL, class_weight="balanced", random_state=0)
    likely = balanced.fit(rows[some][:100], uneven).predict_proba(rows).mean(0)
    np.testing.assert_allclose(likely, 0.5, atol=0.15)


def test_a_row_that_counts_nothing_is_not_there():
    draw = np.random.default_rng(0)
    rows, values = draw.normal(size=(120, 2)), draw.normal(size=120)
    weights = np.ones(120)
    weights[7] = 0.0
    regressor = HopfieldRegressor(**SMALL, random_state=0)
    answers = []
    for value in (0.0, 1e9):
        values[7] = value
        answers.append(regressor.fit(rows, values, sample_weight=weights).predict(rows))
    np.testing.assert_array_equal(*answers)
    large = regressor.fit(rows, values, sample_weight=weights * 1e307).predict(rows)
    np.testing.assert_allclose(large, answers[0], atol=1e-4)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answers():
    frame, labels = people(150)
    answers = [
        HopfieldClassifier(**SMALL, members=2, random_state=4).fit(frame, labels).predict_proba(frame) for _ in "ab"
    ]
    np.testing.assert_array_equal(*answers)


def test_labels_that_are_held_out_are_not_learned_from():
    draw = np.random.default_rng(0)
    rows, labels = draw.normal(size=(400, 3)), draw.integers(0, 2, 400)
    # Nothing to learn: a memory that had seen what it is tried on would find a temperature that makes it sure.
    classifier = HopfieldClassifier(random_state=0, width=16).fit(rows, labels)
    assert classifier.predict_proba(draw.normal(size=(200, 3))).max() < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("order", ["as they come", "sorted"])
def test_the_order_of_rows_does_not_matter(order, monkeypatch):
    monkeypatch.setattr("ahop.estimators.training._EVALUATED_ROWS", 50)
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(2000, 2))
    labels = (draw.random(2000) < 1 / (1 + np.exp(-3 * rows[:, 0]))).astype(int)
    if order == "sorted":
        rows, labels = rows[np.argsort(labels)], np.sort(labels)
    classifier = HopfieldClassifier(random_state=0).fit(rows, labels)
    assert 0.7 < classifier.memories_[0].temperature < 1.4


@pytest.mark.parametrize("epochs", [1, 2, 3, 5, 9, 10, 11, 20])
def test_any_number_of_steps(epochs):
    rows, labels = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    assert HopfieldClassifier(epochs=epochs, width=4).fit(rows, labels).predict(rows).shape == (12,)


@pytest.mark.parametrize("cases", ["sampled", "kmeans"])
@pytest.mark.parametrize("readout", ["labels", "mlp"])
def test_very_few_cases(cases, readout):
    rows, labels = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    for seed in range(4):
        settings = {**SMALL, "cases": cases, "readout": readout, "n_cases": 2, "random_state": seed}
        assert np.isfinite(HopfieldClassifier(**settings).fit(rows, labels).predict_proba(rows)).all()
    alike = HopfieldClassifier(**{**settings, "n_cases": 50}).fit(np.ones((200, 2)), labels)
    np.testing.assert_allclose(alike.predict_proba(rows), 0.5, atol=0.3)


@pytest.mark.slow
def test_small_and_odd_tables():
    frame, labels = people(10)
    classifier = HopfieldClassifier(random_state=0).fit(frame, labels)
    assert classifier.predict(frame).shape == (10,)
    alike = HopfieldClassifier(random_state=0).fit(frame, ["one"] * 10)
    assert alike.predict_proba(frame).tolist() == [[1.0]] * 10
    nothing = HopfieldClassifier(random_state=0).fit(np.full((150, 2), np.nan), np.arange(150) % 2)
    np.testing.assert_allclose(nothing.predict_proba([[1.0, 2.0]]), 0.5, atol=0.1)
    rare = np.r_[np.zeros(148), 1, 2].astype(int)
    assert HopfieldClassifier(**SMALL).fit(np.arange(150.0)[:, None], rare).predict_proba([[3.0]]).shape == (1, 3)


def test_a_list_keeps_numbers_and_words_apart():
    """1 and "1", which NumPy would make one word, say opposite things."""
    rows = [[1, 0.5], ["1", 0.5]] * 20
    classifier = HopfieldClassifier(**SMALL, categorical_features=[0], random_state=0).fit(rows, [0, 1] * 20)
    assert classifier.score(rows, [0, 1] * 20) == 1


@pytest.mark.parametrize("labels", [[1, "1"], [True, "True"], ["a", float("nan")], ["a", b"a"]])
def test_labels_that_only_read_alike_are_not_merged(labels):
    rows = np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match="y must hold labels of one kind"):
        HopfieldClassifier().fit(rows, labels * 4)
    for y in (np.array(labels * 4, dtype=object), pd.Series(labels * 4, dtype=object)):
        with pytest.raises(ValueError, match=r"y must (hold labels of one kind|have no missing values)"):
            HopfieldClassifier().fit(rows, y)


def test_what_the_caller_gave_does_not_learn():
    similarity = Adaptive(16)
    before = similarity.order_weights().detach().clone()
    torch.manual_seed(3)
    HopfieldClassifier(**SMALL, similarity=similarity).fit(*people(30))
    after = torch.rand(())
    torch.testing.assert_close(similarity.order_weights(), before)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(()))


@pytest.mark.slow
def test_it_works_with_others(tmp_path):
    frame, labels = people()
    pipeline = make_pipeline(FunctionTransformer(), HopfieldClassifier(**SMALL, random_state=0))
    assert cross_val_score(pipeline, frame, labels, cv=2).min() > 0.6
    search = GridSearchCV(HopfieldClassifier(**SMALL, random_state=0), {"blocks": [0, 1]}, cv=2, n_jobs=1)
    found = search.fit(frame, labels).best_estimator_
    assert search.best_score_ > 0.6
    joblib.dump(found, tmp_path / "table.joblib")
    again = joblib.load(tmp_path / "table.joblib")
    np.testing.assert_array_equal(again.predict_proba(frame), found.predict_proba(frame))
    assert not hasattr(clone(found), "memories_")
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame.rename(columns={"age": "years"}))


@pytest.mark.slow
def test_a_large_table_answers_like_a_small_one(monkeypatch):
    rows, labels = np.random.default_rng(0).normal(size=(500, 3)), np.arange(500) % 2
    classifier = HopfieldClassifier(**SMALL, random_state=0).fit(rows, labels)
    whole = classifier.predict_proba(rows)
    monkeypatch.setattr("ahop.estimators.cases._BLOCK", 64)
    classifier.memories_ = [type(m)(m.network, m.rows, m.temperature) for m in classifier.memories_]
    # Blocks, and nothing kept between them.
    monkeypatch.setattr("ahop.estimators.cases.budget", lambda: 32_000)
    # Now it is large, and answers in float32.
    np.testing.assert_allclose(classifier.predict_proba(rows), whole, atol=1e-4)
    assert classifier.memories_[0]._kept is None
    perceptron = HopfieldClassifier(**SMALL, readout="mlp", cases="sampled", n_cases=100).fit(rows, labels)
    assert perceptron.predict(rows).shape == (500,)


MANY_ROWS = """
import resource, sys
import numpy as np
from ahop import _progress
from ahop.estimators import HopfieldClassifier

_progress.PATIENCE = 0.0

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

draw = np.random.default_rng(0)
rows = draw.normal(size=(int(sys.argv[1]), 4)).astype(np.float32)
labels = (rows[:, 0] * rows[:, 1] > 0).astype(int)
before = peak()
settings = dict(width=16, embedding="linear", blocks=1, scaling="standard", learning_rate=3e-3)
classifier = HopfieldClassifier(**settings, epochs=1, batch_size=512, cases_per_step=512, random_state=0, verbose=True)
asked = draw.normal(size=(int(sys.argv[2]), 4)).astype(np.float32)
right = classifier.fit(rows, labels).score(asked, (asked[:, 0] * asked[:, 1] > 0).astype(int))
print(right, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "asked", "most"),
    [
        # All scores would have 400 MB, beside 230 for PyTorch to begin with.
        (10_000, 10_000, 400),
        # The table has 16 MB; its vectors would have 64, and all scores 1.2 GB.
        (1_000_000, 300, 1000),
    ],
)
def test_many_rows_need_little_memory(rows, asked, most):
    terminal = {**os.environ, "FORCE_COLOR": "1"}
    command = [sys.executable, "-c", MANY_ROWS, str(rows), str(asked)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=terminal)
    right, mebibytes = map(float, run.stdout.split())
    assert right > 0.8
    assert mebibytes < most
    assert "fit" in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("verbose", [True, False])
def test_progress_is_shown_if_asked_for(monkeypatch, verbose):
    bars = []

    @contextmanager
    def watched(title, total, *, show):
        assert show is verbose
        with progress(title, total, show=show) as bar:
            yield bar
        bars.append((title, total, bar._done))

    monkeypatch.setattr("ahop.estimators.tables.progress", watched)
    rows, labels = people(80)
    for settings in ({"epochs": None, "patience": 1}, {"readout": "mlp", "cases": "sampled", "n_cases": 50}):
        classifier = HopfieldClassifier(**{**SMALL, **settings}, members=2, verbose=verbose)
        classifier.fit(rows, labels).predict(rows)
        assert bars == [("fit", 2, pytest.approx(2)), ("predict", 2, pytest.approx(2))]
        bars.clear()


@pytest.mark.slow
def test_a_regressor():
    draw = np.random.default_rng(0)
    frame, _ = people(800)
    values = 1000 + 50 * np.sin(frame["age"] / 10) + 30 * (frame["town"] == "y") + draw.normal(size=800)
    regressor = HopfieldRegressor(random_state=0, epochs=20).fit(frame[:600], values[:600])
    assert regressor.score(frame[600:], values[600:]) > 0.9
    found = regressor.recall(frame[600:610], k=600)
    np.testing.assert_allclose((found.weights * found.targets).sum(1), regressor.predict(frame[600:610]), rtol=1e-6)
    assert (found.targets == values.to_numpy()[found.indices]).all()
    mattered = regressor.explain(frame[600:]).abs().mean()
    assert mattered["age"] > mattered["town"] > 3 * mattered["pay"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "guess"}, "unknown similarity 'guess'; known: "),
        ({"similarity": Adaptive(3)}, "similarity must be for 128 dimensions, got one for 3"),
        ({"readout": "vote"}, "readout must be one of 'labels', 'mlp', got 'vote'"),
        ({"readout": "mlp"}, 'cases must be "sampled" or "kmeans" for readout "mlp"'),
        ({"cases": "some"}, "cases must be one of 'all', 'sampled', 'kmeans', got 'some'"),
        ({"embedding": "deep"}, "embedding must be one of 'periodic', 'linear', 'columns', got 'deep'"),
        ({"epochs": 0}, "epochs must be an integer of at least 1, got 0"),
        ({"n_cases": 1}, "n_cases must be an integer of at least 2, got 1"),
        ({"epochs": 1.5}, "epochs must be an integer of at least 1, got 1.5"),
        ({"cases_per_step": None}, "cases_per_step must be an integer of at least 1, got None"),
        ({"dropout": 2.0}, "dropout must be a number in 0 to 0.99, got 2.0"),
        ({"column_dropout": 1.0}, "column_dropout must be a number in 0 to 0.99, got 1.0"),
        ({"learning_rate": -1.0}, "learning_rate must be a number in 1e-12 to 1000, got -1.0"),
        ({"frequency_scale": np.nan}, "frequency_scale must be a number in 0 to 1e\\+06, got nan"),
        ({"dropout": None}, "dropout must be a number in 0 to 0.99, got None"),
        ({"learning_rate": "fast"}, "learning_rate must be a number in 1e-12 to 1000, got 'fast'"),
        ({"device": "abacus"}, "device must be one that PyTorch can use here, got 'abacus'"),
        (
            {"class_weight": {"poor": -1.0, "rich": 1.0}},
            "weights of samples and classes must be finite and not negative",
        ),
        ({"validation_fraction": 0.9}, "validation_fraction must be a number in 0 to 0.5, got 0.9"),
    ],
)
def test_what_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        HopfieldClassifier(**options).fit(*people(20))


def test_what_cannot_be_asked(fitted):
    frame, labels = people(20)
    for k in (0, 2.0, True):
        with pytest.raises(ValueError, match=f"k must be an integer of at least 1, got {k}"):
            fitted.recall(frame, k=k)
    with pytest.raises(ValueError, match="k must be between 1 and 400, the cases; got 401"):
        fitted.recall(frame, k=401)
    for missing in (None, np.nan, pd.NA, pd.NaT, Decimal("NaN"), np.datetime64("NaT")):
        with pytest.raises(ValueError, match="y must have no missing values"):
            HopfieldClassifier().fit(frame, pd.Series(["a", missing] * 10, dtype=object))
    with pytest.raises(ValueError, match="y must hold labels of one kind"):
        HopfieldClassifier().fit(frame, np.array(["a", 1] * 10, dtype=object))
    with pytest.raises(ValueError, match="y must hold numbers"):
        HopfieldRegressor().fit(frame, ["a", "b"] * 10)
    with pytest.raises(ValueError, match="y has numbers too large to be squared"):
        HopfieldRegressor().fit(frame, np.arange(20) * 1e200)
    with pytest.raises(ValueError, match="columns of X must have different names"):
        fitted.predict(frame.rename(columns={"age": "pay"}))
    with pytest.raises(ValueError, match="X must be finite where it is not missing, got infinity"):
        fitted.predict(frame.assign(age=np.inf))
    with pytest.raises(ValueError, match=r"X must have rows and columns, got shape \(0, 5\)"):
        fitted.predict(frame[:0])
    with pytest.raises(ValueError, match="at least 2 rows of positive weight, got n_samples = 1"):
        HopfieldClassifier().fit(frame, labels, sample_weight=np.eye(20)[0])
