import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop.similarity import Likelihood, Transformed

GENERATOR = torch.Generator().manual_seed(0)
PATTERNS, QUERIES = (torch.rand(count, 12, generator=GENERATOR) for count in (9, 5))


@given(st.floats(0.01, 100.0), st.floats(-5.0, 5.0))
def test_a_scale_of_its_own_forgets_gain_and_offset(gain, offset):
    similarity = Transformed(Likelihood(12), own_scale=True)
    expected = similarity(PATTERNS.double(), QUERIES.double())
    found = similarity(PATTERNS.double(), gain * QUERIES.double() + offset)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_ranks_forget_whatever_keeps_the_order():
    similarity = Transformed(Likelihood(12), "rank")
    assert torch.equal(similarity(PATTERNS, QUERIES), similarity(PATTERNS, QUERIES.exp()))
    tied = torch.tensor([[1.0, 1.0, 2.0, 0.0]])
    seen = Transformed(Likelihood(4), "rank").view(tied)
    assert seen[0, 0] == seen[0, 1] and seen[0, 3] < seen[0, 0] < seen[0, 2]


@pytest.mark.parametrize("scale", ["as it is", "logarithm", "square root", "rank"])
@pytest.mark.parametrize("own_scale", [False, True])
def test_units_do_not_matter_once_they_are_followed(scale, own_scale):
    similarity = Transformed(Likelihood(12), scale, own_scale, low=-0.1)
    other = similarity.rescaled(1e3, 7.0)
    torch.testing.assert_close(
        other(1e3 * PATTERNS + 7, 1e3 * QUERIES + 7), similarity(PATTERNS, QUERIES), rtol=1e-3, atol=1e-2
    )
    assert torch.isfinite(similarity.stranger(PATTERNS, QUERIES)).all()
    assert similarity.describe().startswith("Values" if scale == "as it is" else "Each value")


def test_codes_are_the_scores_of_what_is_seen():
    similarity = Transformed(Likelihood(12), "logarithm")
    with torch.no_grad():
        codes = similarity.codes(PATTERNS, 0.001)
        scores = similarity(PATTERNS, QUERIES)
        products = codes.encode_queries(QUERIES) @ codes.encode_patterns(PATTERNS).T
        torch.testing.assert_close(codes(PATTERNS, QUERIES), products)
    gap = products - scores
    assert float((gap - gap.mean(1, keepdim=True)).abs().max()) < 0.02


def test_missing_values_have_no_scale_of_their_own():
    mask = torch.ones(5, 12, dtype=torch.bool)
    mask[0, 0] = False
    with pytest.raises(ValueError, match="observed must be None"):
        Transformed(Likelihood(12), own_scale=True)(PATTERNS, QUERIES, mask)
    assert torch.isfinite(Transformed(Likelihood(12), "square root")(PATTERNS, QUERIES, mask)).all()
    with pytest.raises(ValueError, match="scale must be one of"):
        Transformed(Likelihood(12), "cube")


def test_it_is_saved_and_loaded(tmp_path):
    memory = ahop.BayesianHopfield(PATTERNS, similarity=Transformed(Likelihood(12), "square root", True, -1.0, 2.0))
    memory.save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).scores(QUERIES), memory.scores(QUERIES))
