import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop.memories import Oracle
from ahop.variants import Compose, Correlated, Dropped, Gained, Growing, Noisy, Quantised, Rotated, Swapped

PATTERNS = torch.rand(40, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1
ALL = [
    Dropped(6, 0.3),
    Growing(0.1, 0.9),
    Correlated(0.8, 0.9),
    Rotated(45, 0.4, seed=3),
    Rotated(90, 0.4),
    Gained(0.2, 1.8, 0.4),
    Quantised(1.0, 0.4),
    Swapped(0.5, 0.3),
]
SMALL = [
    Dropped(1, 0.3),
    Growing(0.2, 0.5),
    Correlated(0.5, 0.8),
    Rotated(30, 0.3),
    Gained(0.5, 1.5, 0.3),
    Swapped(0.4, 0.3),
]


def name(variant):
    return variant.name


def doubles(*shape, seed=0):
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def log_gaussian(gaps, deviation):
    return -0.5 * (gaps / deviation).square() - math.log(deviation * math.sqrt(2 * math.pi))


@pytest.mark.parametrize("variant", ALL, ids=name)
def test_the_oracle_is_calibrated_and_no_other_memory_beats_it(variant):
    queries, origins = variant.sample(PATTERNS, 4000, generator=torch.Generator().manual_seed(1))
    oracle = Oracle(PATTERNS, variant)
    indices, probabilities = oracle.recall(queries)
    right = (indices.squeeze(1) == origins).double().mean().item()
    assert right == pytest.approx(probabilities.double().mean().item(), abs=0.025)
    for other in ("distance", "manhattan", "cosine", "dot"):
        memory = ahop.UniversalHopfield(PATTERNS, similarity=other)
        assert ahop.metrics.first_choice_accuracy(memory, (queries, origins)) <= right + 0.01


@pytest.mark.parametrize("variant", SMALL, ids=name)
def test_a_likelihood_integrates_to_one(variant):
    # Over the cells of a fine grid of queries of two dimensions, whatever the pattern.
    steps = (torch.arange(400, dtype=torch.float64) + 0.5) / 50 - 4
    grid = torch.cartesian_prod(steps, steps)
    total = variant.log_likelihood(doubles(3, 2), grid).exp().sum(0) / 50**2
    torch.testing.assert_close(total, torch.ones(3, dtype=torch.float64), atol=1e-3, rtol=0)


def test_probabilities_of_rounded_values_sum_to_one():
    levels = torch.arange(-8, 9, dtype=torch.float64) * 0.5
    total = Quantised(0.5, 0.4).log_likelihood(doubles(3, 2), torch.cartesian_prod(levels, levels)).exp().sum(0)
    torch.testing.assert_close(total, torch.ones(3, dtype=torch.float64), atol=1e-9, rtol=0)


def ways_to_swap(dim):
    """Every set of neighbours, by the first of each two, of which none share a place."""
    for chosen in itertools.product((False, True), repeat=dim - 1):
        if not any(one and other for one, other in itertools.pairwise(chosen)):
            yield [place for place, hit in enumerate(chosen) if hit]


@settings(max_examples=20, deadline=None)
@given(dim=st.integers(1, 6), rate=st.sampled_from([0.0, 0.3, 0.8, 1.0]), seed=st.integers(0, 99))
def test_swaps_are_summed_over_all_ways(dim, rate, seed):
    pattern, query = doubles(2, 1, dim, seed=seed)
    terms = []
    for swaps in ways_to_swap(dim):
        order, chance, place = list(range(dim)), 1.0, 0
        while place < dim:
            if place in swaps:
                order[place : place + 2] = place + 1, place
            chance *= 1.0 if place == dim - 1 else (rate if place in swaps else 1 - rate)
            place += 2 if place in swaps else 1
        if chance > 0:
            terms.append(log_gaussian(query - pattern[:, order], 0.3).sum() + math.log(chance))
    found = Swapped(rate, 0.3).log_likelihood(pattern, query)
    torch.testing.assert_close(found.squeeze(), torch.logsumexp(torch.stack(terms), 0))


@settings(max_examples=20, deadline=None)
@given(length=st.integers(1, 7), seed=st.integers(0, 99))
def test_a_block_is_summed_over_all_places(length, seed):
    pattern, query = doubles(2, 1, 7, seed=seed)
    terms = []
    for start in range(8 - length):
        kept = [i for i in range(7) if not start <= i < start + length]
        terms.append(log_gaussian((query - pattern)[0, kept], 0.3).sum() + length * math.log(0.5))
    expected = torch.logsumexp(torch.stack(terms), 0) - math.log(len(terms))
    torch.testing.assert_close(Dropped(length, 0.3).log_likelihood(pattern, query).squeeze(), expected)


def test_a_gain_is_integrated_as_quadrature_does():
    patterns, queries = doubles(5, 8), 3 * doubles(6, 8, seed=1)
    world = Gained(0.2, 1.8, 0.3)
    gains = torch.linspace(0.2, 1.8, 2001, dtype=torch.float64)
    grid = log_gaussian(queries[:, None, None] - gains[:, None] * patterns[:, None], 0.3).sum(-1)
    expected = torch.trapezoid(grid.exp(), gains, dim=-1).log() - math.log(1.6)
    torch.testing.assert_close(world.log_likelihood(patterns, queries), expected, atol=1e-4, rtol=1e-4)


def test_a_pattern_of_zeros_has_a_likelihood_under_a_gain():
    found = Gained(0.2, 1.8, 0.3).log_likelihood(torch.zeros(1, 4, dtype=torch.float64), doubles(3, 4))
    torch.testing.assert_close(found.squeeze(1), log_gaussian(doubles(3, 4), 0.3).sum(1))


def test_correlated_noise_is_scored_by_its_covariance():
    world = Correlated(0.7, 0.9)
    pattern, queries = doubles(1, 5), doubles(4, 5, seed=1)
    expected = torch.distributions.MultivariateNormal(pattern[0], world.covariance(5)).log_prob(queries)
    torch.testing.assert_close(world.log_likelihood(pattern, queries).squeeze(1), expected)


def test_a_block_of_neighbours_is_dropped_wherever_it_fits():
    hit = Dropped(3, 1e-4).sample(torch.full((1, 6), 9.0), 20000).queries <= 1
    assert (hit.sum(1) == 3).all()
    first = hit.long().argmax(1)
    assert hit.gather(1, first[:, None] + torch.arange(3)).all()
    assert torch.bincount(first).tolist() == pytest.approx([5000] * 4, rel=0.1)


def test_noise_grows_with_the_value():
    queries = Growing(0.1, 0.5).sample(torch.tensor([[0.0, -2.0]]), 20000).queries
    assert queries.std(0).tolist() == pytest.approx([0.1, 1.1], rel=0.03)


def test_neighbours_share_their_noise():
    world = Correlated(0.5, 0.8)
    noise = world.sample(torch.zeros(1, 4), 20000).queries
    torch.testing.assert_close(noise.T.cov(), world.covariance(4).float(), atol=0.01, rtol=0)


@pytest.mark.parametrize("dim", [2, 7])
def test_a_rotation_keeps_lengths_and_turns_by_its_angle(dim):
    rotation = Rotated(60, 0.1, seed=2).rotation(dim)
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(dim, dtype=torch.float64))
    assert torch.linalg.det(rotation).item() == pytest.approx(1)
    # Half of each vector's part in a plane is left of it where it was.
    assert torch.trace(rotation).item() == pytest.approx(dim // 2 + dim % 2)


def test_every_query_has_a_gain_of_its_own():
    queries = Gained(0.5, 1.5, 1e-4).sample(torch.ones(1, 6), 20000).queries
    assert (queries.std(1) < 1e-3).all()
    gains = queries.mean(1)
    assert gains.mean().item() == pytest.approx(1, abs=0.01)
    assert (gains.min().item(), gains.max().item()) == pytest.approx((0.5, 1.5), abs=0.01)


def test_values_are_rounded_to_steps():
    queries = Quantised(0.5, 0.4).sample(PATTERNS, 50).queries
    torch.testing.assert_close(2 * queries, (2 * queries).round())


def test_neighbours_change_places_at_their_rate():
    pattern = torch.arange(6.0)[None]
    places = Swapped(0.3, 1e-4).sample(pattern, 20000).queries.round()
    assert (places.sort(1).values == pattern).all()
    assert ((places - pattern).abs() <= 1).all()
    # The second place is free to change with the third unless the first did.
    assert (places[:, 0] == 1).float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert (places[:, 1] == 2).float().mean().item() == pytest.approx(0.7 * 0.3, abs=0.02)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dropped(0, 0.1), "length must be an integer of at least 1, got 0"),
        (lambda: Dropped(13, 0.1).sample(PATTERNS, 1), "length must be at most the number of dimensions, 12; got 13"),
        (lambda: Growing(0.1, -1), "slope must be a positive and finite number, got -1"),
        (lambda: Correlated(0.1, 1.0), "correlation must be a number in 0 to 0.999, got 1.0"),
        (lambda: Rotated(200, 0.1), "degrees must be a number in -180 to 180, got 200"),
        (lambda: Gained(2.0, 1.0, 0.1), "low must be less than high, got 2.0 and 1.0"),
        (lambda: Quantised(0.5, 0.0), "noise must be a positive and finite number, got 0.0"),
        (lambda: Swapped(1.5, 0.1), "rate must be a number in 0 to 1, got 1.5"),
        (
            lambda: Compose([Noisy(0.1), Swapped(0.5, 0.1)]).log_likelihood(PATTERNS, PATTERNS),
            "Swapped cannot be scored inside a composition",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
