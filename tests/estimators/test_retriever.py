import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ahop
from ahop.estimators import HopfieldRetriever
from ahop.similarity import Adaptive


@parametrize_with_checks(
    [HopfieldRetriever(), HopfieldRetriever("a-hop"), HopfieldRetriever("u-hop", options={"similarity": "distance"})]
)
def test_it_is_an_estimator(estimator, check):
    check(estimator)


@pytest.fixture
def world():
    patterns = torch.rand(60, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1
    corruption = ahop.variants.Mixed(mask=0.3, noise=0.3, bias=0.3)
    return patterns.numpy(), corruption.sample(patterns, 150), corruption.sample(patterns, 100)


@pytest.mark.parametrize("model", ["a-hop", pytest.param("b-hop", marks=pytest.mark.slow)])
def test_it_learns_what_alike_means(world, model):
    patterns, seen, test = world
    plain = HopfieldRetriever(model).fit(patterns)
    learned = HopfieldRetriever(model).fit(patterns, queries=seen.queries.numpy(), origins=seen.origins.numpy())
    right = [
        float((retriever.kneighbors(test.queries.numpy())[1][:, 0] == test.origins.numpy()).mean())
        for retriever in (plain, learned)
    ]
    assert right[1] > right[0]


@pytest.mark.slow
def test_it_learns_without_labels(world):
    patterns, seen, test = world
    retriever = HopfieldRetriever("b-hop").fit(patterns, queries=seen.queries.numpy())
    chances, indices = retriever.kneighbors(test.queries.numpy(), n_neighbors=3)
    assert chances.shape == indices.shape == (100, 3)
    assert np.all(np.diff(chances) <= 0)
    assert (indices[:, 0] == test.origins.numpy()).mean() > 0.9


def test_missing_values_are_filled_in():
    rows = np.random.default_rng(0).normal(size=(20, 8))
    holes = rows.copy()
    holes[:, ::2] = np.nan
    retriever = HopfieldRetriever("u-hop", options={"similarity": "distance"}, missing=True).fit(rows)
    np.testing.assert_allclose(retriever.transform(holes), rows)
    with pytest.raises(ValueError, match="contains NaN"):
        retriever.set_params(missing=False).transform(holes)


def test_it_works_with_others(tmp_path):
    rows = np.random.default_rng(0).normal(3, 5, size=(30, 6))
    both = make_pipeline(StandardScaler(), HopfieldRetriever("u-hop", options={"similarity": "distance"}))
    answer = both.fit_transform(rows)
    np.testing.assert_allclose(answer, StandardScaler().fit_transform(rows))
    joblib.dump(both, tmp_path / "both.joblib")
    np.testing.assert_array_equal(joblib.load(tmp_path / "both.joblib").transform(rows), answer)
    assert clone(both).get_params()["hopfieldretriever__options"] == {"similarity": "distance"}


def test_it_gives_frames_where_they_are_wanted():
    import pandas

    frame = pandas.DataFrame(np.eye(3), columns=["a", "b", "c"])
    retriever = HopfieldRetriever(options={"beta": 50.0}).set_output(transform="pandas")
    answer = retriever.fit(frame).transform(frame)
    assert list(answer) == ["a", "b", "c"]
    np.testing.assert_allclose(answer.to_numpy(), np.eye(3), atol=1e-3)


def test_options_that_cannot_be():
    with pytest.raises(ValueError, match="unknown model 'z-hop'"):
        HopfieldRetriever("z-hop").fit(np.eye(3))
    with pytest.raises(ValueError, match=r"options must be a dictionary of the network's arguments, got \[1\]"):
        HopfieldRetriever(options=[1]).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"options must be arguments of 'm-hop': .* argument 'cats'"):
        HopfieldRetriever(options={"cats": 1}).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"steps must be an integer of at least 1, got 1\.5"):
        HopfieldRetriever(steps=1.5).fit(np.eye(3))
    with pytest.raises(ValueError, match="device must be one that PyTorch can use here, got 'abacus'"):
        HopfieldRetriever(device="abacus").fit(np.eye(3))
    with pytest.raises(ValueError, match=r"n_neighbors must be an integer of at least 1, got 1\.5"):
        HopfieldRetriever(n_neighbors=1.5).fit(np.eye(3)).kneighbors(np.eye(3))
    with pytest.raises(ValueError, match="n_neighbors must be between 1 and 3, the stored rows; got 4"):
        HopfieldRetriever(n_neighbors=4).fit(np.eye(3)).kneighbors(np.eye(3))
    with pytest.raises(ValueError, match="origins must come with queries, got origins alone"):
        HopfieldRetriever("a-hop").fit(np.eye(3), origins=[0])
    with pytest.raises(ValueError, match="Input queries contains NaN"):
        HopfieldRetriever("b-hop").fit(np.eye(3), queries=np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="observed must leave some entries to learn from"):
        HopfieldRetriever("b-hop", missing=True).fit(np.eye(3), queries=np.full((2, 3), np.nan))


@pytest.mark.parametrize("steps", [0, 1.5, "two"])
def test_steps_that_are_set_after_the_fit_are_checked_too(steps):
    retriever = HopfieldRetriever().fit(np.eye(3)).set_params(steps=steps)
    with pytest.raises(ValueError, match="steps must be an integer of at least 1, got"):
        retriever.transform(np.eye(3))


@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_a_kernel_learns_from_the_stored_rows_alone():
    rows = np.random.default_rng(0).normal(size=(20, 6))
    assert HopfieldRetriever("k-hop").fit(rows).memory_.report is not None
    assert HopfieldRetriever("k2-hop").fit(rows).memory_.report is None


def test_what_the_caller_gave_does_not_learn(world):
    patterns, _, _ = world
    similarity = Adaptive(16)
    before = similarity.order_weights().detach().clone()
    retriever = HopfieldRetriever("u-hop", options={"similarity": similarity}).fit(patterns)
    assert retriever.memory_.similarity is not similarity
    torch.testing.assert_close(similarity.order_weights(), before)


@pytest.mark.slow
def test_examples_with_missing_values_are_learned_from():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 8))
    origins = rng.integers(40, size=100)
    queries = rows[origins] + 3 + 0.1 * rng.normal(size=(100, 8))
    queries[rng.random(queries.shape) < 0.2] = np.nan
    retriever = HopfieldRetriever("b-hop", missing=True).fit(rows, queries=queries, origins=origins)
    assert (retriever.kneighbors(queries)[1][:, 0] == origins).mean() > 0.95
