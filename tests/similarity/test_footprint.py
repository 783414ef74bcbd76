from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop import memory_budget
from ahop.similarity import Adaptive, Distance, Dot, Manhattan, footprint, k_optimal

BASES = [Distance(), Dot(), Manhattan()]
# Whole numbers make ties common, and sums exact.
values = st.integers(-3, 3).map(float)


@st.composite
def pairs(draw):
    dim = draw(st.integers(1, 10))
    vector = st.lists(values, min_size=dim, max_size=dim)
    return (torch.tensor(draw(vector), dtype=torch.float64) for _ in range(2))


@pytest.mark.parametrize("base", BASES, ids=lambda b: b.name)
@given(pair=pairs())
def test_the_footprint_is_the_best_over_all_subsets(base, pair):
    pattern, query = pair
    terms = base.terms(pattern, query).tolist()
    sizes = range(1, len(terms) + 1)
    best = [max(sum(subset) for subset in combinations(terms, size)) for size in sizes]
    assert footprint(pattern, query, base).tolist() == best
    assert [k_optimal(pattern, query, k, base).item() for k in sizes] == best


def test_k_beyond_the_dimensions_is_refused():
    with pytest.raises(ValueError, match="k must be between 1 and 3, the number of dimensions; got 4"):
        k_optimal(torch.ones(3), torch.ones(3), k=4)


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def learned(dim, seed=0, **options):
    similarity = Adaptive(dim, **options).double()
    with torch.no_grad():
        similarity.weight.copy_(noise(*similarity.weight.shape, seed=seed))
        if similarity.deviation is not None:
            similarity.deviation.copy_(noise(*similarity.deviation.shape, seed=seed + 1))
    return similarity


@pytest.mark.parametrize("base", BASES, ids=lambda b: b.name)
@pytest.mark.parametrize("options", [{}, {"sort": False}, {"matrix": "identity"}, {"patterns": 9}], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_it_starts_as_its_base_bit_for_bit(base, options, masked):
    patterns, queries = noise(9, 13), noise(5, 13, seed=1)
    observed = noise(5, 13, seed=2) > 0 if masked else None
    adaptive = Adaptive(13, [base], **options).double()
    assert torch.equal(adaptive(patterns, queries, observed), base(patterns, queries, observed))


@given(dim=st.integers(1, 9), count=st.integers(1, 5), asked=st.integers(0, 4), seed=st.integers(0, 999))
def test_it_is_the_weighted_sum_of_footprints(dim, count, asked, seed):
    patterns, queries = noise(count, dim, seed=seed), noise(asked, dim, seed=seed + 1)
    similarity = learned(dim, seed)
    expected = sum(
        footprint(patterns, queries[:, None], base) @ weight
        for base, weight in zip(similarity.bases, similarity.weight, strict=True)
    )
    torch.testing.assert_close(similarity(patterns, queries), expected)


@given(dim=st.integers(1, 9), seed=st.integers(0, 999))
def test_plain_weights_multiply_the_sorted_terms_and_unsorted_ones_the_dimensions(dim, seed):
    patterns, queries = noise(3, dim, seed=seed), noise(2, dim, seed=seed + 1)
    terms = Distance().terms(patterns, queries[:, None])
    for sort in (True, False):
        similarity = learned(dim, seed, bases=["distance"], sort=sort, matrix="identity")
        expected = (terms.sort(descending=True).values if sort else terms) @ similarity.weight[0]
        torch.testing.assert_close(similarity(patterns, queries), expected)


def test_a_matrix_takes_the_place_of_the_running_sum():
    patterns, queries, matrix = noise(3, 6), noise(2, 6, seed=1), noise(6, 6, seed=2)
    similarity = learned(6, bases=["dot"], matrix=matrix)
    terms = Dot().terms(patterns, queries[:, None]).sort(descending=True).values
    torch.testing.assert_close(similarity(patterns, queries), terms @ matrix.T @ similarity.weight[0])


@pytest.mark.parametrize("matrix", ["cumulative", "identity"])
def test_a_learnable_matrix_starts_where_the_fixed_one_stands(matrix):
    patterns, queries = noise(3, 6), noise(2, 6, seed=1)
    fixed, free = (learned(6, matrix=matrix, learn_matrix=learn) for learn in (False, True))
    torch.testing.assert_close(fixed(patterns, queries), free(patterns, queries))
    assert "matrix_values" in dict(free.named_parameters())


def test_each_pattern_can_have_weights_of_its_own():
    patterns, queries = noise(4, 6), noise(3, 6, seed=1)
    similarity = learned(6, patterns=4)
    for k in range(4):
        alone = Adaptive(6).double()
        alone.set_order_weights(similarity.order_weights() + similarity.deviation[k])
        torch.testing.assert_close(similarity(patterns, queries)[:, k : k + 1], alone(patterns[k : k + 1], queries))


@pytest.mark.parametrize("options", [{}, {"sort": False}, {"patterns": 3}], ids=str)
def test_unobserved_dimensions_change_nothing(options):
    patterns, queries = noise(3, 8), noise(4, 8, seed=1)
    observed = noise(4, 8, seed=2) > -0.3
    similarity = learned(8, **options)
    other = torch.where(observed, queries, noise(4, 8, seed=3))
    torch.testing.assert_close(similarity(patterns, queries, observed), similarity(patterns, other, observed))


def test_a_fully_observed_query_scores_as_one_without_a_mask():
    patterns, queries = noise(3, 8), noise(4, 8, seed=1)
    similarity = learned(8)
    everything = torch.ones(4, 8, dtype=torch.bool)
    torch.testing.assert_close(similarity(patterns, queries, everything), similarity(patterns, queries))


def test_missing_dimensions_stretch_the_weights_over_those_observed():
    # Half the dimensions, each with its twin observed: ranks 1 and 2 of 4 share what rank 1 of 2 gets.
    similarity = learned(4, bases=["distance"], matrix="identity")
    with torch.no_grad():
        similarity.weight.copy_(torch.tensor([[3.0, 3.0, 5.0, 5.0]]))
    pattern, query = torch.zeros(1, 4, dtype=torch.float64), torch.tensor([[1.0, 9.0, 2.0, 9.0]], dtype=torch.float64)
    observed = torch.tensor([[True, False, True, False]])
    assert similarity(pattern, query, observed).item() == -(3 * 1 + 5 * 4)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("options", [{}, {"patterns": 3}, {"learn_matrix": True}], ids=str)
def test_gradients_are_right(masked, options):
    similarity = learned(5, **options)
    observed = noise(2, 5, seed=4) > -0.5 if masked else None
    inputs = (noise(3, 5).requires_grad_(), noise(2, 5, seed=1).requires_grad_(), *similarity.parameters())
    torch.autograd.gradcheck(lambda p, q, *_: similarity(p, q, observed), inputs)


@pytest.mark.parametrize("grad", [False, True])
def test_scores_do_not_depend_on_the_budget(grad):
    patterns, queries = noise(300, 256), noise(20, 256, seed=1)
    similarity = learned(256)
    with torch.set_grad_enabled(grad):
        whole = similarity(patterns, queries)
        with memory_budget(2**20):
            torch.testing.assert_close(similarity(patterns, queries), whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bases": []}, "bases must be a list of at least one"),
        ({"bases": ["mahalanobis"]}, "base must be a decomposable similarity .*got 'mahalanobis'"),
        ({"bases": ["cosine"]}, "base must be a decomposable similarity .*got 'cosine'"),
        ({"matrix": "upper"}, "matrix must be 'cumulative', 'identity' or a .3, 3. tensor, got 'upper'"),
        ({"matrix": torch.ones(2, 3)}, r"matrix must be a \(3, 3\) tensor, got shape \(2, 3\)"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Adaptive(3, **arguments)
