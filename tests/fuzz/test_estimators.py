"""Estimators against the oracle: what they answer is the readout of their cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

from ahop.estimators import HopfieldClassifier, HopfieldRegressor, HopfieldRetriever


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "rows": draw(st.integers(4, 30)),
        "columns": draw(st.integers(1, 5)),
        "classes": draw(st.integers(2, 3)),
        "similarity": draw(st.sampled_from(["euclidean", "distance", "dot"])),
        "weighted": draw(st.booleans()),
        "scale": draw(st.sampled_from([1e-12, 1e-6, 1.0, 1e6, 1e12])),
        "offset": draw(st.sampled_from([0.0, 0.0, 3e3, -1e6])),
    }


def check(case):
    """Nothing is learned of the rows, so that cases are compared as they are, after the columns were scaled."""
    random = np.random.default_rng(case["seed"])
    x = (random.normal(size=(case["rows"], case["columns"])) + case["offset"]) * case["scale"]
    asked = (random.normal(size=(5, case["columns"])) + case["offset"]) * case["scale"]
    weights = random.uniform(0.5, 2, case["rows"]) if case["weighted"] else None
    labels = np.arange(case["rows"]) % case["classes"]
    values = random.normal(size=case["rows"])
    plain = {
        "similarity": case["similarity"],
        "embedding": "columns",
        "scaling": "standard",
        "epochs": 1,
        "random_state": 0,
    }
    classifier = HopfieldClassifier(**plain).fit(x, labels, sample_weight=weights)
    regressor = HopfieldRegressor(**plain).fit(x, values, sample_weight=weights)
    spread = x.std(0)
    # A value far from all others counts as four standard deviations away.
    stored, queries = (((some - x.mean(0)) / spread).clip(-4, 4) for some in (x, asked))
    for model in (classifier, regressor):
        (memory,) = model.memories_
        beta = float(memory.network.log_beta.exp())
        share = 0.0 if weights is None else np.log(weights / weights.mean())
        count = stored.shape[1]
        table = [beta * oracle.similarity(case["similarity"], stored, q, np.ones(count, bool)) + share for q in queries]
        read = np.stack([oracle.softmax(row) for row in table])
        if model is classifier:
            likely = np.maximum(read @ np.eye(case["classes"])[labels], 1e-7) ** (1 / memory.temperature)
            expected = likely / likely.sum(1, keepdims=True)
            np.testing.assert_allclose(model.predict_proba(asked), expected, atol=1e-3)
        else:
            np.testing.assert_allclose(model.predict(asked), read @ values, atol=5e-3)
    recalled = classifier.recall(asked, k=2)
    assert (recalled.weights[:, 0] >= recalled.weights[:, 1]).all()
    assert (recalled.targets == labels[recalled.indices]).all()

    retriever = HopfieldRetriever("u-hop", options={"similarity": "distance", "separation": "softmax"}).fit(stored)
    weights_of = np.stack([oracle.softmax(-((stored - q) ** 2).sum(1)) for q in queries])
    np.testing.assert_allclose(retriever.transform(queries), weights_of @ stored, atol=1e-6)
    assert (retriever.kneighbors(queries, 1)[1][:, 0] == weights_of.argmax(1)).all()


@settings(max_examples=8)
@given(cases())
def test_estimators_read_out_their_cases(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=200)
@given(cases())
def test_many_estimators_read_out_their_cases(case):
    check(case)
