"""Memories that doubt some queries: answers are those of the blended probabilities, in their order."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop

COUNT, QUERIES = 7, 20


def doubting(kind, doubt, prior):
    patterns = torch.randn(COUNT, 3, generator=torch.Generator().manual_seed(0))
    memory = {"b-hop": ahop.BayesianHopfield, "g-hop": ahop.GaussianHopfield}[kind](patterns, prior=prior)
    memory.similarity.doubt.fill_(doubt)
    return memory


def blended(memory, queries, doubt, prior):
    """By the definition, in float64 NumPy: ``(n, N)``."""
    likely = memory.similarity(memory.patterns, queries).double().detach().exp().numpy() * prior
    prior = prior / prior.sum(-1, keepdims=True)
    return (1 - doubt) * likely / likely.sum(-1, keepdims=True) + doubt * prior


@pytest.mark.parametrize("kind", ["b-hop", "g-hop"])
@given(seed=st.integers(0, 10**6), doubt=st.sampled_from([0.0, 0.1, 0.7]), own=st.booleans(), each=st.booleans())
def test_answers_are_the_most_probable_patterns_best_first(kind, seed, doubt, own, each):
    random = np.random.default_rng(seed)
    counts = random.integers(1, 9, COUNT).astype(float) if own else np.ones(COUNT)
    context = random.integers(1, 9, (QUERIES, COUNT)).astype(float) if each else np.ones((QUERIES, COUNT))
    memory = doubting(kind, doubt, counts if own else None)
    queries = torch.as_tensor(random.normal(size=(QUERIES, 3))).float()
    expected = blended(memory, queries, doubt, counts * context)
    found = memory.recall(queries, 3, prior=context if each else None)
    best = -np.sort(-expected, axis=1)[:, :3]
    np.testing.assert_allclose(found.probabilities, best, atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(expected, found.indices.numpy(), 1), best, atol=1e-5)


@pytest.mark.parametrize("kind", ["b-hop", "g-hop"])
@pytest.mark.parametrize("own", [None, torch.arange(1.0, COUNT + 1)])
@pytest.mark.parametrize("context", [None, torch.arange(COUNT, 0.0, -1).expand(QUERIES, -1) ** 2])
def test_where_nothing_was_found_the_best_guess_comes_first_and_is_as_likely_as_the_prior_says(kind, own, context):
    memory = doubting(kind, 1.0, own)
    queries = torch.randn(QUERIES, 3, generator=torch.Generator().manual_seed(1))
    found = memory.recall(queries, 3, prior=context)
    prior = torch.ones(QUERIES, COUNT) * (1 if own is None else own) * (1 if context is None else context)
    prior = prior / prior.sum(1, keepdim=True)
    assert found.indices.equal((memory.similarity(memory.patterns, queries) + prior.log()).topk(3).indices)
    torch.testing.assert_close(found.probabilities, prior.gather(1, found.indices))


def test_by_codes_candidates_come_in_the_order_of_their_probabilities():
    prior = torch.ones(COUNT).index_fill(0, torch.tensor([2]), 50.0)
    memory = doubting("b-hop", 0.99, prior)
    found = memory.index().recall(torch.randn(QUERIES, 3, generator=torch.Generator().manual_seed(1)), COUNT)
    assert bool((found.indices[:, 0] == 2).all()) and bool((found.probabilities.diff(dim=1) <= 0).all())


def test_patterns_that_are_never_asked_for_come_last_however_much_is_doubted():
    queries = torch.randn(QUERIES, 3, generator=torch.Generator().manual_seed(1))
    for doubt in (0.0, 0.1, 1.0):
        found = doubting("b-hop", doubt, [1, 2, 0, 3, 1, 1, 1]).recall(queries, COUNT)
        assert bool((found.indices[:, -1] == 2).all()) and not bool(found.probabilities[:, -1].any())
