"""What all separations that maximise a regularised score share: that they do, and from which lead on it is exact."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop.separation import Argmax, Entmax, Epanechnikov, Identity, KSubsets, Normmax, Softmax, Sparsemax

FAMILY = [
    Softmax(1.7),
    Sparsemax(0.8),
    Entmax(1.3, 2.0),
    Normmax(1.3),
    Normmax(2.0, 0.5),
    Normmax(5.0),
    KSubsets(3, 2.0),
]
EXACT = [Sparsemax(0.8), Entmax(1.3, 2.0), Entmax(1.5), Normmax(1.3), Normmax(2.0, 0.5), Normmax(5.0), KSubsets(2, 3.0)]


def scores(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def other_weights(total, count, seed, many=50):
    """Means of corners: points of what the weights may be, ``(many, count)``."""
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(many, 4, count, generator=generator).argsort(-1) < total
    shares = torch.rand(many, 4, 1, generator=generator, dtype=torch.float64)
    return (corners * shares / shares.sum(1, keepdim=True)).sum(1)


@pytest.mark.parametrize("separation", FAMILY, ids=repr)
@settings(max_examples=5)
@given(seed=st.integers(0, 9999), count=st.integers(3, 9))
def test_no_other_weights_have_a_higher_regularised_score(separation, seed, count):
    separation, given = separation.double(), 2 * scores(count, seed=seed)
    weights, others = separation(given).detach(), other_weights(separation.total, count, seed)
    own = weights @ given - separation.regulariser(weights)
    assert bool((others @ given - separation.regulariser(others) <= own + 1e-9).all())
    torch.testing.assert_close(separation.conjugate(given), own)


@pytest.mark.parametrize("separation", FAMILY, ids=repr)
def test_weights_stay_as_they_are_when_all_scores_move_alike(separation):
    separation, given = separation.double(), scores(5, 7, seed=0)
    torch.testing.assert_close(separation(given + 2.5), separation(given))
    torch.testing.assert_close(separation.conjugate(given + 2.5), separation.conjugate(given) + 2.5 * separation.total)


@pytest.mark.parametrize("separation", EXACT, ids=repr)
@settings(max_examples=5)
@given(seed=st.integers(0, 9999), count=st.integers(3, 9))
def test_from_the_margin_on_weights_are_exact_and_before_it_they_are_not(separation, seed, count):
    separation, k = separation.double(), separation.total
    lead = separation.margin / separation.beta.item()
    given = -scores(count, seed=seed).abs()
    given[k:] -= given[k:].max()
    for share, exact in ((1 + 1e-9, True), (1 - 1e-3, False)):
        given[:k] += share * lead - given[:k].min()
        weights = separation(given)
        assert (weights.tolist() == [1.0] * k + [0.0] * (count - k)) == exact
        assert weights.sum().item() == pytest.approx(k)


@pytest.mark.parametrize("separation", [*EXACT[:-1], KSubsets(1, 3.0)], ids=repr)
def test_one_step_retrieves_a_pattern_exactly_where_it_leads_by_the_margin(separation):
    patterns, beta = scores(6, 20, seed=0), separation.beta.item()
    overlaps = patterns @ patterns.T
    leads = overlaps.diagonal() - (overlaps - torch.eye(6) * 1e9).amax(1)
    # Patterns this much larger lead by the margin, all of them.
    patterns = patterns * math.sqrt((1 + 1e-9) * separation.margin / (beta * leads.min().item()))
    memory = ahop.AssociativeMemory(patterns, "dot", separation)
    assert torch.equal(memory.retrieve(patterns), memory.patterns)
    smaller = ahop.AssociativeMemory(0.9 * patterns, "dot", separation)
    assert not torch.equal(smaller.retrieve(0.9 * patterns), smaller.patterns)


def test_margins_are_those_that_are_published():
    assert [Sparsemax().margin, Normmax(1.3).margin, Normmax(5.0).margin, KSubsets(4).margin] == [1.0] * 4
    assert Entmax(1.5).margin == 2 and Entmax(1.25, learn_alpha=True).margin == pytest.approx(4, rel=1e-4)
    assert Argmax().margin == 0
    assert all(part.margin == math.inf for part in (Softmax(1e6), Identity(), Epanechnikov()))


def test_normmax_is_the_evener_among_the_patterns_it_keeps_the_larger_alpha_is():
    leads = torch.linspace(0.01, 0.9, 20, dtype=torch.float64)
    scores = torch.stack([leads, 0 * leads], 1)
    best = torch.stack([Normmax(alpha).double()(scores)[:, 0] for alpha in (1.2, 2.0, 3.0, 5.0)])
    assert bool((best.diff(dim=0) <= 0).all()) and bool((best > 0.5).all())
