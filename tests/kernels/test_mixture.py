import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ahop.similarity import Likelihood
from ahop.similarity.families.independent import terms


def likelihood(dim, components, seed):
    made = Likelihood(dim, components, shifted=bool(seed % 2))
    generator = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator)
    return made


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 99), st.integers(1, 70), st.integers(1, 3), st.booleans())
def test_scores_of_the_compiled_way_are_those_of_the_definition(seed, dim, components, masked):
    similarity, generator = likelihood(dim, components, seed), torch.Generator().manual_seed(seed)
    patterns, queries = torch.randn(13, dim, generator=generator), 2 * torch.randn(5, dim, generator=generator)
    observed = torch.rand(5, dim, generator=generator) < 0.6 if masked else None
    with torch.no_grad():
        fast = similarity(patterns, queries, observed)
        assert similarity._scored(patterns, None, queries, observed) is not None
        exact = similarity.double()(patterns.double(), queries.double(), observed)
    torch.testing.assert_close(fast.double(), exact, rtol=1e-5, atol=1e-4)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 99), st.integers(1, 70), st.integers(1, 3), st.booleans())
def test_sums_over_pairs_are_those_of_the_definition_however_small_a_share_is(seed, dim, components, masked):
    similarity, generator = likelihood(dim, components, seed), torch.Generator().manual_seed(seed)
    # Most pairs are out of the question: powers and shares lie far below what a float32 holds with all its digits.
    similarity.log_sigma.data -= 2
    queries, candidates = 2 * torch.randn(5, dim, generator=generator), torch.randn(20, dim, generator=generator)
    shares = (-60 * torch.rand(20, generator=generator)).exp()
    observed = torch.rand(5, dim, generator=generator) < 0.6 if masked else None
    found = []
    for kind in (torch.float32, torch.float64):
        similar, rows = similarity.to(kind), [queries.to(kind), candidates.to(kind)]
        evidence = terms.Evidence(*rows, torch.arange(20) % 5, torch.zeros(20, dtype=kind), observed)
        with torch.no_grad():
            moments, *rest = terms._gathered(evidence, similar, shares.to(kind), evidence.explained(similar))
        found.append([one.double() for one in (*(sums for noise in moments for sums in noise), *rest)])
    for ours, exact in zip(*found, strict=True):
        torch.testing.assert_close(ours, exact, rtol=1e-4, atol=1e-5)


def test_what_a_float_does_not_hold_goes_the_long_way():
    similarity = likelihood(4, 1, 0)
    similarity.log_sigma.data.fill_(-40.0)
    similarity.mask_logits.data.fill_(-60.0)
    similarity.bias.data.zero_()
    similarity.gain.data.fill_(1.0)
    patterns = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert similarity._scored(patterns, None, patterns, None) is None
        assert similarity(patterns, patterns).argmax(1).equal(torch.arange(6))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_no_queries_and_no_patterns_have_no_scores(shape):
    queries, patterns = shape
    with torch.no_grad():
        assert likelihood(4, 1, 0)(torch.zeros(patterns, 4), torch.zeros(queries, 4)).shape == shape
