import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop.memories import Oracle
from ahop.variants import Biased, Compose, Either, Masked, Mixed, Noisy, Scaled
from ahop.variants.channel import SHARP, _log_subsets

PATTERNS = torch.rand(40, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1
ALL = [
    Noisy(0.3),
    Noisy(torch.linspace(0, 1, 12)),
    Biased(0.5, seed=1),
    Biased(torch.linspace(-1, 1, 12)),
    Masked(0.4),
    Masked(count=5, fill=0.0),
    Masked(torch.linspace(0, 0.9, 12), fill=(-2.0, 0.5)),
    Masked(0.3, exact=True),
    Compose([Masked(0.3, fill=0.5), Noisy(0.2), Biased(0.3), Masked(0.2)]),
    Mixed(0.3, 0.2, 0.4),
    Mixed(0.3, 0.2, 0.4, preset="literal"),
    Mixed(0.3, 0.2, 0.4, preset="std"),
    Mixed(0.3, 0.2, 0.4, preset="calibrated"),
    Compose([Masked(0.3, fill="salt-pepper"), Scaled(0.5), Noisy(0.2), Scaled(torch.linspace(-2, -1, 12))]),
    Either([Noisy(1.0), Masked(0.7)], weights=[0.3, 0.7]),
]


@pytest.mark.parametrize("variant", ALL, ids=lambda v: v.name)
def test_samples_come_from_stored_patterns(variant):
    queries, origins = variant.sample(PATTERNS, 7)
    assert queries.shape == (7, 12)
    assert queries.dtype == PATTERNS.dtype
    assert origins.shape == (7,)
    assert variant.log_likelihood(PATTERNS, queries).shape == (7, 40)
    assert torch.isfinite(variant.log_likelihood(PATTERNS, queries)).all()


@pytest.mark.parametrize("variant", ALL, ids=lambda v: v.name)
def test_the_oracle_is_calibrated_on_what_the_variant_draws(variant):
    # With the true likelihood, the probability of the first choice is how often it is right.
    patterns = PATTERNS[:, :12]
    queries, origins = variant.sample(patterns, 4000, generator=torch.Generator().manual_seed(1))
    indices, probabilities = Oracle(patterns, variant).recall(queries)
    right = (indices.squeeze(1) == origins).double()
    assert right.mean().item() == pytest.approx(probabilities.double().mean().item(), abs=0.025)


def test_draws_repeat_with_the_seed_and_differ_from_call_to_call():
    first, second = Mixed(0.3, 0.3, 0.3, seed=5), Mixed(0.3, 0.3, 0.3, seed=5)
    one = first.sample(PATTERNS, 5).queries
    assert torch.equal(one, second.sample(PATTERNS, 5).queries)
    assert not torch.equal(one, first.sample(PATTERNS, 5).queries)
    given = [first.sample(PATTERNS, 5, torch.Generator().manual_seed(3)).queries for _ in range(2)]
    assert torch.equal(*given)


def test_a_bias_is_drawn_once_for_a_world():
    world = Biased(0.5, seed=2)
    queries, origins = world.sample(PATTERNS, 50)
    shifts = queries - PATTERNS[origins]
    torch.testing.assert_close(shifts, shifts[:1].expand_as(shifts))
    torch.testing.assert_close(shifts[0].abs(), torch.full((12,), 0.5))
    assert len(shifts[0].sign().unique()) == 2


def masked_by_exactly(rate, dim):
    queries, _ = Masked(rate, exact=True, fill=5.0).sample(torch.zeros(1, dim), 20)
    (count,) = (queries == 5).sum(1).unique().tolist()
    return count


@given(rate=st.floats(0, 1), dim=st.integers(1, 40))
def test_an_exact_mask_hits_that_many_rounded_down(rate, dim):
    assert rate * dim - 1 < masked_by_exactly(rate, dim) <= rate * dim + 1e-6


@given(dim=st.integers(1, 40), data=st.data())
def test_an_exact_mask_loses_none_to_rounding(dim, data):
    count = data.draw(st.integers(0, dim))
    assert masked_by_exactly(count / dim, dim) == count


def test_presets_are_those_of_the_table():
    zero = torch.zeros(1, 4000)
    table = (
        *(("published", 0.3, 0.6), ("calibrated", 0.375, 0.58)),
        *(("literal", 0.3**0.5, 0.4), ("std", 0.3, 0.4)),
    )
    for preset, deviation, shift in table:
        world = Mixed(0.0, 0.3, 0.4, preset=preset)
        off = world.sample(zero, 1).queries[0]
        assert off.abs().mean().item() == pytest.approx(
            (Noisy(deviation).sample(zero, 1).queries[0] + shift).abs().mean().item(), abs=0.03
        )
    # Masked values come after the bias in one order, before it in the other.
    for preset, reach in (("published", 1.0), ("calibrated", 1.0), ("std", 1.9), ("literal", 1.9)):
        values = Mixed(1.0, 0.0, 0.9, preset=preset).sample(zero, 1).queries[0]
        assert values.abs().max().item() == pytest.approx(reach, abs=0.01)


def gaussian(x, sigma):
    return math.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))


def test_noise_scores_as_a_gaussian():
    sigma = torch.tensor([0.5, 2.0])
    score = Noisy(sigma).log_likelihood([[1.0, -1.0]], [[0.2, 1.0]])
    assert score.item() == pytest.approx(math.log(gaussian(0.8, 0.5)) + math.log(gaussian(2.0, 2.0)), abs=1e-5)


def test_a_mask_keeps_the_factor_of_what_it_did_not_hit():
    score = Masked(0.3).log_likelihood([[0.5, 0.5]], [[0.5, 0.1]])
    kept = 0.7 * gaussian(0, SHARP) + 0.3 / 2
    assert score.item() == pytest.approx(math.log(kept) + math.log(0.3 / 2), abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(count=st.integers(0, 9), seed=st.integers(0, 999), noise=st.sampled_from([0.0, 0.05, 0.4]))
def test_an_exact_count_is_scored_as_the_sum_over_all_subsets(count, seed, noise):
    generator = torch.Generator().manual_seed(seed)
    pattern, other = torch.rand(2, 1, 9, dtype=torch.float64, generator=generator) * 2 - 1
    query = torch.where(torch.rand(9, generator=generator) < 0.5, pattern, other)
    world = Compose([Noisy(noise), Masked(count=count)])
    deviation = max(noise, SHARP)
    kept = (query - pattern)[0] / deviation
    kept = -0.5 * kept.square() - math.log(deviation * math.sqrt(2 * math.pi))
    subsets = [
        sum(math.log(0.5) if i in subset else kept[i] for i in range(9))
        for subset in itertools.combinations(range(9), count)
    ]
    expected = torch.logsumexp(torch.stack([torch.as_tensor(one) for one in subsets]), 0) - math.log(len(subsets))
    found = world.log_likelihood(pattern, query).item()
    assert found == pytest.approx(expected.item(), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize(("dtype", "off"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_counts_of_all_sizes_add_up_to_independent_masks(dtype, off):
    # The generating function of the count at 1, where no count alone could be held without logarithms.
    kept, filled = torch.randn(2, 150, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype) * 30
    each = torch.stack([_log_subsets(kept, filled, count) for count in range(151)])
    together = torch.logaddexp(kept, filled).sum()
    assert torch.isfinite(each).all()
    assert torch.logsumexp(each, 0).item() == pytest.approx(together.item(), rel=off)


def test_an_exact_count_of_an_image_is_scored_exactly():
    # Alike in all dimensions, every subset is as likely as any other, however unlikely all of them are.
    for kept, filled in ((0.0, 0.0), (-3.0, 4.0), (2.0, -9.0)):
        score = _log_subsets(torch.full((784,), kept), torch.full((784,), filled), 470)
        expected = math.log(math.comb(784, 470)) + 470 * filled + 314 * kept
        assert score.item() == pytest.approx(expected, rel=1e-5)


def test_the_oracle_keeps_its_digits_far_from_the_origin():
    patterns = 0.1 * PATTERNS + 1000
    world = Noisy(0.01)
    test = world.sample(patterns, 100)
    assert ahop.metrics.retrieval_accuracy(Oracle(patterns, world), test) > 0.98


def test_a_density_that_is_blurred_meets_the_closed_form():
    def draw(shape, generator):
        return torch.rand(shape, generator=generator) * 2 - 1

    blurred = Compose([Masked(1.0, fill=draw, density=lambda x: (x.abs() <= 1) / 2), Noisy(0.2)])
    closed = Compose([Masked(1.0), Noisy(0.2)])
    x = torch.linspace(-1.8, 1.8, 50)[:, None]
    torch.testing.assert_close(
        blurred.log_likelihood([[0.0]], x), closed.log_likelihood([[0.0]], x), atol=0.15, rtol=0.02
    )


def test_a_bias_can_be_an_array():
    assert Biased([1.0, -1.0]).sample(torch.zeros(1, 2), 1).queries.tolist() == [[1.0, -1.0]]


def test_a_function_can_fill_masks_when_its_density_is_known():
    def draw(shape, generator):
        return torch.randn(shape, generator=generator)

    def density(x):
        return torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)

    world = Compose([Masked(0.5, fill=draw, density=density), Noisy(0.5)])
    queries, origins = world.sample(PATTERNS, 2000)
    indices, probabilities = Oracle(PATTERNS, world).recall(queries)
    right = (indices.squeeze(1) == origins).float().mean().item()
    assert right == pytest.approx(probabilities.mean().item(), abs=0.03)
    with pytest.raises(ValueError, match="density must be given to score a mask that fills by a function"):
        Masked(0.5, fill=draw).log_likelihood(PATTERNS, PATTERNS)


@pytest.mark.slow
def test_no_fixed_memory_beats_the_oracle():
    patterns = torch.rand(300, 32, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Mixed(0.4, 0.4, 0.4)
    test = world.sample(patterns, 500)
    ceiling = ahop.metrics.retrieval_accuracy(Oracle(patterns, world), test)
    for name in ("m-hop", "u-hop"):
        assert ahop.metrics.retrieval_accuracy(ahop.create(name, patterns), test) < ceiling


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Noisy(-0.1), "sigma must not be negative"),
        (lambda: Noisy(torch.ones(3)).sample(PATTERNS, 1), "sigma must be one number or one per dimension, 12"),
        (lambda: Masked(), "one of rate and count must be given"),
        (lambda: Masked(1.5), "rate must be between 0 and 1, got 1.5"),
        (lambda: Masked(count=13).sample(PATTERNS, 1), "count must be at most the number of dimensions, 12; got 13"),
        (lambda: Masked(count=-1), "count must be an integer, not negative, got -1"),
        (lambda: Masked(0.1, fill="normal"), "fill must be 'uniform', 'salt-pepper', a number"),
        (lambda: Masked(0.1, fill=(1.0, 0.0)), "fill must be a pair"),
        (lambda: Masked(torch.rand(12), exact=True), "rate must be one number for an exact count"),
        (
            lambda: Mixed(0.1, preset="paper"),
            "preset must be one of 'published', 'calibrated', 'literal', 'std', got 'paper'",
        ),
        (lambda: Mixed(1.5), "mask must be at most 1, got 1.5"),
        (lambda: Noisy(1.0).log_likelihood(PATTERNS, PATTERNS[0]), "queries must be a matrix"),
        (lambda: Mixed(noise=-1), "noise must not be negative"),
        (lambda: Scaled(0.0), "gain must not be zero"),
        (lambda: Either([]), "choices must be a list of at least one variant"),
        (lambda: Either([Noisy(1.0)], weights=[1.0, 2.0]), "weights must be one positive number per choice, 1"),
        (lambda: Compose([Either([Noisy(1.0)])]).log_likelihood(PATTERNS, PATTERNS), "Either cannot be scored inside"),
        (lambda: Compose([]), "steps must be a list of at least one variant"),
        (lambda: Noisy(1.0).sample(PATTERNS, -1), "n must be an integer of at least 0, got -1"),
        (lambda: Noisy(1.0).log_likelihood(PATTERNS, torch.ones(1, 3)), "queries must have 12 values each"),
        (lambda: Noisy(1.0).log_likelihood(torch.ones(2, 24), PATTERNS), "queries must have 24 values each"),
        (
            lambda: Noisy(1.0).log_likelihood(PATTERNS, PATTERNS, spread=torch.ones(40, 3)),
            r"spread must be \(40, 12\), like patterns; got \(40, 3\)",
        ),
        (lambda: Oracle(PATTERNS, Noisy(1.0)).scores(PATTERNS, observed="not-nan"), "observed is not supported"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
