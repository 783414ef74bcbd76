"""A squared distance is right to its own digits, however far apart patterns lie."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop.similarity import Distance, Euclidean, Mahalanobis
from ahop.similarity.squares import squared_distances


def worlds(seed, offset, shape=(), patterns=40, queries=12, dim=5, groups=2):
    """Groups of patterns with these gaps between them, and queries close to some."""
    generator = torch.Generator().manual_seed(seed)
    stored = torch.randn(*shape, patterns, dim, generator=generator)
    stored = stored + offset * torch.randint(groups, (*shape, patterns, 1), generator=generator)
    asked = stored[..., :queries, :] + 0.1 * torch.randn(*shape, queries, dim, generator=generator)
    return stored, asked, torch.rand(asked.shape, generator=generator) < 0.7


def by_differences(patterns, queries, observed=None):
    gaps = patterns.double().unsqueeze(-3) - queries.double().unsqueeze(-2)
    return (gaps if observed is None else gaps * observed.unsqueeze(-2)).square().sum(-1)


@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 30.0, 3e3, 1e6, 1e12]),
    st.sampled_from([(), (2,), (2, 3)]),
    st.sampled_from([2, 40]),
    st.booleans(),
)
def test_squares_are_right_however_far_apart_patterns_lie(seed, offset, shape, groups, masked):
    stored, asked, seen = worlds(seed, offset, shape, groups=groups)
    seen = seen if masked else None
    found, exact = squared_distances(stored, asked, seen), by_differences(stored, asked, seen)
    torch.testing.assert_close(found.double(), exact, rtol=2e-4, atol=0.0)
    with ahop.memory_budget(2**20):
        assert squared_distances(stored, asked, seen).equal(found)


@given(st.integers(0, 1000), st.sampled_from([0.0, 3e3, 1e6]), st.sampled_from([2, 40]), st.booleans())
def test_their_gradients_are_right_too(seed, offset, groups, masked):
    stored, asked, seen = worlds(seed, offset, (2,), groups=groups)
    seen = seen if masked else None
    gradients = []
    for sides in ((stored, asked), (stored.double(), asked.double())):
        sides = [side.requires_grad_() for side in sides]
        squares = squared_distances(*sides, seen) if len(gradients) == 0 else by_differences(*sides, seen)
        gradients.append(torch.autograd.grad(torch.exp(-squares).sum(), sides))
    for found, exact in zip(*gradients, strict=True):
        torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("similarity", [Distance(), Euclidean(), Mahalanobis(3)])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_gradients_pass_gradcheck(similarity, offset):
    stored, asked, _ = worlds(0, offset, patterns=6, queries=2, dim=3)
    stored, asked = stored.double().requires_grad_(), asked.double().requires_grad_()
    assert torch.autograd.gradcheck(similarity.double(), (stored, asked), atol=1e-4)


@pytest.mark.slow
def test_the_steps_of_a_compiler_and_of_many_at_once_are_right_too():
    torch._dynamo.reset()
    stored, asked, _ = worlds(0, 3e3, (3,))
    exact = by_differences(stored, asked)
    whole = torch.compile(squared_distances, fullgraph=True, backend="eager")
    torch.testing.assert_close(whole(stored, asked).double(), exact, rtol=1e-5, atol=1e-5)
    many = torch.func.vmap(squared_distances)(stored, asked)
    torch.testing.assert_close(many.double(), exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_compared_in_full(dtype):
    stored, asked, _ = worlds(0, 300.0)
    stored, asked = stored.to(dtype), asked.to(dtype)
    found, exact = squared_distances(stored, asked), by_differences(stored, asked)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact.to(dtype).double())
    with torch.autocast("cpu", dtype):
        wide = squared_distances(stored.float(), asked.float())
    torch.testing.assert_close(wide.double(), exact, rtol=2e-4, atol=0.0)


def test_ordinary_patterns_are_compared_by_the_product_alone(monkeypatch):
    def never(*_, **__):
        raise AssertionError("differences were taken")

    for name in ("of_pairs", "pairwise"):
        monkeypatch.setattr(f"ahop.similarity.squares.{name}", never)
    generator = torch.Generator().manual_seed(0)
    stored = torch.randn(500, 64, generator=generator)
    squared_distances(stored, stored + 0.3 * torch.randn(500, 64, generator=generator))
    # A stored pattern itself is one pair among many.
    with pytest.raises(AssertionError, match="differences"):
        squared_distances(stored, stored[:1])


@pytest.mark.parametrize("size", [0.0, 1e-30, 1e-12, 1.0, 1e30])
@pytest.mark.parametrize("asked", [0.0, 1e-30, 1.0, 1e30])
def test_a_distance_of_any_size_is_a_number(size, asked):
    stored = torch.tensor([[0.0, 0.0], [3.0, 4.0]]) * size
    query = torch.tensor([[0.0, 1.0]]) * asked
    exact = -by_differences(stored, query).sqrt()
    found = Euclidean()(stored.requires_grad_(), query.requires_grad_())
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-15 * max(size, asked))
    for gradient in torch.autograd.grad(found.sum(), (stored, query)):
        assert torch.isfinite(gradient).all()
