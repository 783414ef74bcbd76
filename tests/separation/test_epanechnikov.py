import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop.separation import Epanechnikov, Softmax

CORNERS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)


def reaching(reach):
    return Epanechnikov(beta=2 / reach**2)


def memory_of(patterns, reach, **options):
    return ahop.AssociativeMemory(patterns, "distance", reaching(reach), **options)


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def means_of_sets(patterns):
    """The mean of every set of patterns, and which patterns are in each."""
    sets = torch.tensor(list(itertools.product([False, True], repeat=len(patterns)))[1:])
    return sets.to(patterns) @ patterns / sets.sum(1, keepdim=True), sets


def crowd(count, dim, seed):
    """Patterns in a box, and how far the nearest two are apart."""
    patterns = torch.rand(count, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return patterns, torch.pdist(patterns).min().item()


def memories(patterns, reach):
    """All local minima of the energy: means of some patterns that these reach, and no others do."""
    means, sets = means_of_sets(patterns)
    near = (patterns - means[:, None]).norm(dim=-1) < reach
    return means[(near == sets).all(1)]


def within(points, others):
    """Which of the points are among the others."""
    return (torch.cdist(points, others) < 1e-6).any(1)


def test_its_energy_is_that_of_the_paper():
    patterns, states, beta = noise(6, 3), 0.3 * noise(5, 3, seed=1), 0.4
    memory = ahop.AssociativeMemory(patterns, "distance", Epanechnikov(beta))
    heights = torch.relu(1 - beta / 2 * torch.cdist(states, patterns).square())
    torch.testing.assert_close(memory.energy(states), -heights.sum(1).log() / beta)


@settings(max_examples=6)
@given(seed=st.integers(0, 9999), reach=st.floats(0.5, 3.0))
def test_its_step_goes_down_the_gradient_and_its_energy_never_rises(seed, reach):
    patterns = noise(7, 3, seed=seed)
    memory = memory_of(patterns, reach)
    states = (patterns[:5] + 0.2 * noise(5, 3, seed=seed + 1)).requires_grad_()
    energy = memory.energy(states)
    (slope,) = torch.autograd.grad(energy.sum(), states)
    step = memory.retrieve(states).detach() - states.detach()
    # The step is the gradient times the density, which is the energy's own, over the number in reach.
    counts = (torch.cdist(states.detach(), patterns) < reach).sum(1).clamp_min(1)
    density = (-memory.separation.beta * energy.detach()).exp()
    torch.testing.assert_close(step, -slope * (density / counts)[:, None])
    assert bool((memory.energy(states + step) <= energy + 1e-9).all())


def test_a_stored_pattern_is_an_exact_fixed_point_if_all_others_are_out_of_its_reach():
    patterns = noise(40, 5)
    nearest = (torch.cdist(patterns, patterns) + torch.eye(40) * 9).amin(1)
    reach = 1.001 * nearest.median().item()
    memory, alone = memory_of(patterns, reach), nearest > reach
    assert (memory.retrieve(patterns) == patterns).all(1).tolist() == alone.tolist() and 5 < int(alone.sum()) < 35
    # In one step from anywhere in the part of its reach that is its own.
    near = patterns[alone] + (nearest[alone] - reach)[:, None] * torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
    assert torch.equal(memory.retrieve(near), patterns[alone])


def test_the_corners_of_a_square_are_kept_and_nine_new_memories_emerge():
    """The middles of the sides, the centre, and the means of any three corners."""
    memory, expected = memory_of(CORNERS, 0.9), memories(CORNERS, 0.9)
    assert len(expected) == 13 and bool(within(CORNERS, expected).all())
    torch.testing.assert_close(memory.retrieve(expected), expected)
    axis = torch.linspace(-0.5, 1.5, 21, dtype=torch.float64)
    starts = torch.cartesian_prod(axis, axis)
    starts = starts[(memory.recall(starts).probabilities > 0).squeeze(1)]
    rest = memory.retrieve(starts, steps=None)
    assert bool(within(rest, expected).all()) and bool(within(expected, rest).all())
    # All are local minima: no other state around them is as low.
    around = expected[:, None] + 0.01 * noise(20, 2)
    assert bool((memory.energy(around) > memory.energy(expected)[:, None]).all())
    # Gaussians of that width have one memory, the centre; narrow ones have the corners, and nothing new.
    wide, narrow = (ahop.AssociativeMemory(CORNERS, "distance", Softmax(beta)) for beta in (1 / 0.9**2, 30.0))
    torch.testing.assert_close(wide.retrieve(CORNERS, steps=None), torch.full_like(CORNERS, 0.5), atol=1e-3, rtol=0)
    kept = narrow.retrieve(starts, steps=None)
    assert bool((torch.cdist(kept, CORNERS) < 1e-3).any(1)[(starts - 0.5).abs().amin(1) > 1e-6].all())


@settings(max_examples=6)
@given(seed=st.integers(0, 999), reach=st.floats(0.4, 1.5))
def test_states_come_to_rest_at_memories_and_nowhere_else(seed, reach):
    patterns = torch.rand(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2
    memory, expected = memory_of(patterns, reach), memories(patterns, reach)
    starts = patterns.repeat(4, 1) + 0.3 * noise(24, 2, seed=seed + 1)
    known = (torch.cdist(starts, patterns) < reach).any(1)
    rest = memory.retrieve(starts, steps=None)
    assert bool(within(rest[known], expected).all())
    torch.testing.assert_close(rest[~known], starts[~known])


@pytest.mark.parametrize("dim", [2, 4])
@pytest.mark.parametrize("count", [4, 6, 8, 10])
def test_for_some_reach_every_pattern_is_kept_and_further_memories_emerge_between_them(count, dim):
    for seed in range(3):
        patterns, nearest = crowd(count, dim, seed)
        emerged = []
        # Beyond a half of the least distance, there is the middle of these two. Up to its 0.86, no other reaches it.
        for share in (0.4, 0.6, 0.85, 0.99):
            memory, expected = memory_of(patterns, share * nearest), memories(patterns, share * nearest)
            assert bool(within(patterns, expected).all())
            torch.testing.assert_close(memory.retrieve(expected), expected)
            rest = memory.retrieve(expected + 1e-4 * nearest * noise(len(expected), dim, seed=seed), steps=None)
            assert within(rest, expected).double().mean() > 0.9
            emerged.append(int((~within(expected, patterns)).sum()))
        assert emerged[0] == 0 and min(emerged[1:]) > 0
        lost = memory_of(patterns, 1.01 * nearest)
        assert (lost.retrieve(patterns) != patterns).any(1).sum() >= 2


@pytest.mark.parametrize("dim", [2, 4])
@pytest.mark.parametrize("count", [4, 6, 8, 10])
def test_with_softmax_no_memory_emerges_as_long_as_every_pattern_is_kept(count, dim):
    for seed in range(3):
        patterns, nearest = crowd(count, dim, seed)
        means, sets = means_of_sets(patterns)
        means = means[sets.sum(1) <= 3]
        starts = torch.cat([patterns, means + 0.01 * nearest * noise(*means.shape, seed=seed)])
        kept, emerged = [], []
        for width in (0.1, 0.2, 0.3, 0.4, 0.45, 0.7, 1.0, 1.5):
            memory = ahop.AssociativeMemory(patterns, "distance", Softmax(1 / (2 * (width * nearest) ** 2)))
            rest = memory.retrieve(starts, steps=None, tolerance=1e-6, max_steps=5000)
            # Gaussians keep no pattern exactly: a tenth of the way to the nearest other is near enough.
            near = 0.1 * nearest
            kept.append(bool(((rest[:count] - patterns).norm(dim=1) < near).all()))
            emerged.append(bool((torch.cdist(rest, patterns) > near).all(1).any()))
        assert kept[:4] == [True] * 4 and not any(kept[5:])
        assert not any(emerged[:4]) and emerged[5:].count(True) >= 2
        assert not any(all(both) for both in zip(kept, emerged, strict=True))


def test_a_stranger_has_no_probability_and_stays_where_it_is():
    memory = memory_of(CORNERS, 0.5)
    # One step to the origin would find the first corner there.
    strangers = torch.tensor([[5.0, 5.0], [-1.0, 0.0]], dtype=torch.float64)
    found = memory.recall(strangers, k=4)
    assert not found.probabilities.any() and bool((found.indices == -1).all())
    assert not memory.weights(strangers).any()
    for steps in (1, 3, None):
        assert torch.equal(memory.retrieve(strangers, steps), strangers)
    energy = memory.energy(strangers.requires_grad_())
    (slope,) = torch.autograd.grad(energy.sum(), strangers)
    assert torch.isfinite(energy).all() and not slope.any()
    assert bool((energy > memory.energy(CORNERS).max()).all())


def test_a_recall_names_the_patterns_within_reach_and_no_others():
    found = memory_of(CORNERS, 1.1).recall([[0.2, 0.1], [0.4, 0.3], [5.0, 5.0]], k=4)
    assert found.indices.tolist() == [[0, 1, 2, -1], [0, 1, 2, 3], [-1, -1, -1, -1]]
    assert torch.equal(found.indices == -1, found.probabilities == 0)
    assert torch.equal(found.probabilities.sort(-1, descending=True).values, found.probabilities)


def test_who_is_taken_for_a_stranger_was_not_found_by_any_measure():
    memory = memory_of(CORNERS, 0.5)
    # The last pattern is where an index of -1 would lead.
    samples = ahop.variants.Samples(torch.tensor([[0.1, 0.0], [5.0, 5.0]]), torch.tensor([0, 3]))
    assert ahop.metrics.first_choice_accuracy(memory, samples) == 0.5
    assert ahop.metrics.top_k_accuracy(memory, samples, k=4) == 0.5
    assert ahop.metrics.calibration_error(memory, samples) < 1e-6


def test_a_stranger_reads_out_no_value():
    memory = memory_of(CORNERS, 0.5, values=torch.ones(4, 3))
    assert memory.retrieve([[0.1, 0.0], [5.0, 5.0]]).tolist() == [[1.0] * 3, [0.0] * 3]


def test_a_state_of_a_layer_that_no_pattern_reaches_stays_where_it_is_and_reads_out_zero():
    layer = ahop.nn.Hopfield(similarity="distance", separation=reaching(0.5), scaling=1.0, update_steps_max=3).double()
    states = torch.tensor([[5.0, 5.0], [0.9, 0.2]], dtype=torch.float64)
    heads = layer._project(layer._check((CORNERS, states, CORNERS), None, None))
    torch.testing.assert_close(layer._settle(heads)[0, 0], torch.stack([states[0], CORNERS[1]]))
    torch.testing.assert_close(layer((CORNERS, states, CORNERS)), torch.stack([0 * states[0], CORNERS[1]]))


@given(seed=st.integers(0, 9999))
def test_probabilities_are_shares_of_the_density_in_the_order_of_scores(seed):
    scores = -noise(4, 6, seed=seed).square()
    heights = torch.relu(1 + 0.7 / 2 * scores)
    likely = Epanechnikov(0.7).double().probabilities(scores)
    torch.testing.assert_close(likely * heights.sum(1, keepdim=True), heights)


def test_gradients_are_right():
    separation = Epanechnikov(0.7, learn=True).double()
    scores = torch.tensor([[-0.3, -1.0, -4.0], [-0.9, -5.0, -7.0]], dtype=torch.float64, requires_grad=True)
    for function in (separation.conjugate, separation.probabilities):
        torch.autograd.gradcheck(lambda scores, _, f=function: f(scores), (scores, separation.log_beta))


@pytest.mark.parametrize("scale", [1e-30, 1e-8, 1e8, 1e30])
def test_scores_of_any_size_and_temperature_give_numbers(scale):
    scores = scale * torch.tensor([[0.0, -1.0, -2.0], [-1.0, -2.0, -3.0]])
    for beta in (1e-20, 1.0, 1e20):
        separation = Epanechnikov(beta)
        for found in (separation(scores), separation.probabilities(scores)):
            assert bool(((found.sum(-1) - 1).abs() < 1e-6)[0]) and torch.isfinite(found).all()
        assert torch.isfinite(separation.conjugate(scores)).all()


def test_a_prior_is_refused():
    with pytest.raises(ValueError, match=r"prior needs a separation that can weigh patterns by it, .* 'epanechnikov'"):
        memory_of(CORNERS, 1.0, prior=[1, 1, 1, 1])


def test_the_reach_is_what_its_docstring_says():
    separation = Epanechnikov(0.5)
    reach = math.sqrt(2 / 0.5)
    scores = -torch.tensor([0.999 * reach, 1.001 * reach]).square()
    assert separation(scores).tolist() == [1.0, 0.0]
