import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop.similarity import Cosine, Decomposable, Distance, Dot, Euclidean, Manhattan, Similarity, Unified

FIXED = [Dot(), Distance(), Manhattan(), Unified(torch.tensor([0.3, -1.0, 2.0, 0.0]))]


def table(count, seed=0, dim=4):
    return torch.randn(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("similarity", FIXED, ids=lambda s: s.name)
@given(count=st.integers(1, 7), queries=st.integers(0, 5), seed=st.integers(0, 1000), masked=st.booleans())
def test_a_decomposable_similarity_is_the_sum_of_its_observed_terms(similarity, count, queries, seed, masked):
    similarity = similarity.double()
    patterns, asked = table(count, seed), table(queries, seed + 1)
    observed = table(queries, seed + 2) > 0 if masked else None
    terms = similarity.terms(patterns, asked[:, None])
    expected = (terms if observed is None else terms * observed[:, None]).sum(-1)
    torch.testing.assert_close(similarity(patterns, asked, observed), expected)


@pytest.mark.parametrize("similarity", [*FIXED, Cosine(), Euclidean()], ids=lambda s: s.name)
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_right(similarity, masked):
    observed = table(2, 5) > -0.5 if masked else None
    patterns, queries = table(3).requires_grad_(), table(2, 1).requires_grad_()
    torch.autograd.gradcheck(lambda p, q: similarity.double()(p, q, observed), (patterns, queries))


def test_distance_keeps_its_digits_far_from_the_origin():
    patterns = torch.randn(5, 16) + 1000
    far = Distance()(patterns, patterns[:2] + 0.1)
    near = Distance()(patterns.double(), patterns[:2].double() + 0.1)
    torch.testing.assert_close(far.double(), near, atol=0.02, rtol=1e-3)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("masked", [False, True])
def test_euclidean_is_the_root_of_the_distance(kind, masked):
    patterns, queries = table(5), table(3, 1) + 100
    observed = table(3, 2) > 0 if masked else None
    expected = -(-Distance()(patterns, queries, observed)).sqrt()
    found = Euclidean()(patterns.to(kind), queries.to(kind), observed)
    torch.testing.assert_close(found.double(), expected, rtol=0.02 if kind == torch.bfloat16 else 1e-5, atol=0.0)


@pytest.mark.parametrize("masked", [False, True])
def test_euclidean_has_a_slope_where_query_and_pattern_are_one(masked):
    patterns, queries = table(3), table(3).requires_grad_()
    Euclidean()(patterns, queries, torch.ones(3, 4, dtype=torch.bool) if masked else None).sum().backward()
    assert queries.grad.isfinite().all()


def test_cosine_ignores_length_and_unobserved_dimensions():
    patterns = torch.tensor([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]])
    scores = Cosine()(patterns, torch.tensor([[7.0, 0.0, 3.0]]), torch.tensor([[True, True, False]]))
    torch.testing.assert_close(scores, torch.tensor([[1.0, 0.0]]))


def test_cosine_of_a_zero_vector_is_zero():
    assert Cosine()(torch.zeros(1, 3), torch.ones(1, 3)).item() == 0


def test_unified_similarity_is_the_distance_after_the_bias_is_taken_away():
    patterns, queries, bias = table(5), table(3, 1), table(1, 2)[0]
    unified = Unified(2 * bias)(patterns, queries)
    debiased = Distance()(patterns, queries - bias)
    difference = unified - debiased
    torch.testing.assert_close(difference, difference[:, :1].expand_as(difference))


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown similarity 'dott'; known: .*distance, dot"):
        Similarity.of("dott")


def test_a_new_similarity_needs_its_terms_and_nothing_else():
    class Agreement(Decomposable):
        def terms(self, patterns, queries):
            return (patterns * queries > 0).to(patterns.dtype)

    scores = Similarity.of("agreement")(torch.tensor([[1.0, 1.0], [1.0, -1.0]]), torch.tensor([[2.0, -1.0]]))
    assert scores.tolist() == [[1.0, 2.0]]
    del Similarity.members["agreement"]
