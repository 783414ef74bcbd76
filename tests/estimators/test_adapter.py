import joblib
import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from ahop import BayesianHopfield
from ahop.estimators import QueryAdapter

DRAW = np.random.default_rng(0)
# Items of six values by the old model, and of nine by the new one.
OLD = DRAW.normal(size=(300, 6)) * np.linspace(1, 2, 6)
NEW = OLD @ np.linalg.qr(DRAW.normal(size=(9, 6)))[0].T + 0.02 * DRAW.normal(size=(300, 9))
FIFTY, OTHERS = slice(0, 50), slice(50, 300)


def right(vectors, wanted):
    """The share whose nearest by cosine among all old vectors is the wanted one."""
    old = OLD / np.linalg.norm(OLD, axis=1, keepdims=True)
    return ((vectors @ old.T).argmax(1) == wanted).mean()


@parametrize_with_checks([QueryAdapter()])
def test_it_is_an_estimator(estimator, check):
    check(estimator)


def test_an_index_of_old_vectors_finds_the_items_of_new_ones():
    adapter = QueryAdapter().fit(NEW[FIFTY], OLD[FIFTY], library=OLD)
    assert right(adapter.transform(NEW[OTHERS]), np.arange(50, 300)) > 0.95
    assert (adapter.memory_.recall(NEW[OTHERS]).indices[:, 0].numpy() == np.arange(50, 300)).mean() > 0.95


def test_old_vectors_stand_once_in_the_order_of_the_library_and_after_it_what_is_new():
    twice = np.concatenate([np.arange(50), np.arange(50)])
    patterns = QueryAdapter().fit(NEW[twice], OLD[twice], library=OLD[:9:-1]).memory_.patterns
    np.testing.assert_array_equal(patterns, np.concatenate([OLD[:9:-1], OLD[:10]]))


@pytest.mark.slow
def test_rows_of_nan_are_items_that_nobody_knows():
    some = np.where(np.arange(300)[:, None] < 50, OLD, np.nan)
    assert right(QueryAdapter().fit(NEW, some, library=OLD).transform(NEW), np.arange(300)) > 0.95


@pytest.mark.slow
def test_no_pair_is_needed_where_there_are_enough_vectors():
    draw = np.random.default_rng(0)
    old = -np.log(draw.random((1500, 8))) * np.linspace(1, 2, 8)
    items = draw.permutation(1500)
    new = old[items] @ np.linalg.qr(draw.normal(size=(8, 8)))[0] + 0.03 * draw.normal(size=(1500, 8))
    found = QueryAdapter("l2").fit(new, library=old).transform(new)
    assert (np.square(found[:, None] - old).sum(-1).argmin(1) == items).mean() > 0.95


def test_it_is_what_the_memory_gives():
    adapter = QueryAdapter("inner").fit(NEW[FIFTY], OLD[FIFTY])
    memory = BayesianHopfield(adapter.memory_.patterns, similarity=adapter.memory_.similarity)
    np.testing.assert_array_equal(adapter.transform(NEW), memory.query_adapter("inner")(NEW).detach().numpy())


def test_what_was_trained_on_old_vectors_is_asked_with_new_ones_in_a_pipeline():
    labels = (OLD[:, 0] > 0).astype(int)
    trained = KNeighborsClassifier(metric="cosine").fit(OLD, labels)
    both = make_pipeline(Normalizer(), QueryAdapter(), FrozenEstimator(trained))
    both.fit(NEW[FIFTY], OLD[FIFTY], queryadapter__library=OLD)
    assert both.score(NEW[OTHERS], labels[OTHERS]) > trained.score(OLD[OTHERS], labels[OTHERS]) - 0.05


def test_it_is_kept_in_a_file(tmp_path):
    adapter = QueryAdapter().fit(NEW[FIFTY], OLD[FIFTY])
    joblib.dump(adapter, tmp_path / "adapter.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "adapter.joblib").transform(NEW), adapter.transform(NEW))


def test_where_no_map_is_found_it_is_refused_and_nothing_changes():
    adapter = QueryAdapter().fit(NEW[FIFTY], OLD[FIFTY])
    before = adapter.transform(NEW)
    with pytest.raises(ValueError, match=r"X must have a map to library .* from 40 rows, 0 of them with y"):
        adapter.fit(DRAW.normal(size=(40, 9)), library=OLD)
    np.testing.assert_array_equal(adapter.transform(NEW), before)


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(ValueError, match="metric must be one of"):
        QueryAdapter("euclidean").fit(NEW[FIFTY], OLD[FIFTY])
    with pytest.raises(ValueError, match="library must be given where y is None"):
        QueryAdapter().fit(NEW)
    with pytest.raises(ValueError, match="library and y must have at least two different rows; got 1 sample"):
        QueryAdapter().fit(NEW[:3], OLD[[0, 0, 0]])
    with pytest.raises(ValueError, match="library must have 6 columns, as y has; got 5"):
        QueryAdapter().fit(NEW[FIFTY], OLD[FIFTY], library=OLD[:, 1:])
