import math

import pytest
import torch

import ahop
from ahop.memories import Memory
from ahop.separation import Softmax


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def made(patterns, **options):
    return ahop.create("f-hop", patterns, **options)


def exact(patterns, queries, beta):
    return -torch.logsumexp(-beta / 2 * torch.cdist(queries, patterns) ** 2, 1) / beta


def error(features, seed):
    """Of the energy near patterns, of which several lie close together."""
    patterns, beta = noise(60, 6, seed=seed), 0.3
    queries = patterns[:30] + 0.2 * noise(30, 6, seed=seed + 1)
    memory = made(patterns, features=features, beta=beta, seed=seed)
    return (memory.energy(queries) - exact(patterns, queries, beta)).square().mean().sqrt().item()


def test_the_error_falls_as_the_root_of_the_features():
    few, many = (sum(error(features, seed) for seed in range(8)) for features in (512, 8192))
    assert many / few == pytest.approx(1 / 4, rel=0.3)


@pytest.mark.parametrize("beta", [1.0, 4.0, 16.0])
def test_the_same_features_have_a_worse_sum_the_larger_beta_and_in_the_end_a_useless_one(beta):
    """It is wrong by what its features are, whatever beta, but away from patterns it falls exponentially with beta."""
    wrong = []
    for seed in range(3):
        patterns = 0.3 * noise(200, 8, seed=seed)
        queries = patterns[:50] + 0.3 * noise(50, 8, seed=seed + 1)
        found = made(patterns, features=2000, beta=beta, seed=seed).energy(queries)
        wrong.append((beta * (exact(patterns, queries, beta) - found)).expm1().abs())
    least, most = {1.0: (0, 0.05), 4.0: (0.05, 0.3), 16.0: (1.5, math.inf)}[beta]
    assert least < torch.cat(wrong).median().item() < most


@pytest.mark.parametrize("beta", [0.3, 2.0, 16.0])
def test_a_step_is_the_gradient_of_the_energy_as_autograd_has_it(beta):
    patterns = noise(5, 4)
    memory = made(patterns, beta=beta)
    state = (patterns + 0.1 * noise(5, 4, seed=1)).requires_grad_()
    (slope,) = torch.autograd.grad(memory.energy(state).sum(), state)
    torch.testing.assert_close(memory.retrieve(state), state - slope)


def test_with_many_features_a_step_is_that_of_distances_and_softmax():
    patterns, beta = noise(5, 4), 1.0
    queries = patterns + 0.2 * noise(5, 4, seed=1)
    plain = ahop.AssociativeMemory(patterns, "distance", Softmax(beta / 2))
    gaps = [
        (made(patterns, features=features, beta=beta).retrieve(queries) - plain.retrieve(queries)).abs().max()
        for features in (200, 200_000)
    ]
    assert gaps[1] < 0.02 < gaps[0]


def test_the_energy_never_rises_not_even_in_noise():
    memory = made(noise(40, 5), features=60, beta=20.0)
    state = noise(50, 5, seed=1)
    energy = memory.energy(state)
    for _ in range(5):
        state = memory.retrieve(state)
        assert bool((memory.energy(state) <= energy).all())
        energy = memory.energy(state)


def test_a_step_that_is_too_long_is_shortened():
    memory = made(noise(40, 5), features=60, beta=20.0)
    state = noise(50, 5, seed=1).requires_grad_()
    energy = memory.energy(state)
    (slope,) = torch.autograd.grad(energy.sum(), state)
    rises = memory.energy(state - slope) > energy
    assert bool(rises.any()) and bool((memory.energy(memory.retrieve(state)) < energy)[rises].all())


def test_a_state_rests_beside_its_pattern_as_far_as_the_docstring_says():
    patterns, beta, features = noise(10, 16) / 4, 60.0, 8000
    found = made(patterns, beta=beta, features=features).retrieve(patterns + 0.05 * noise(10, 16, seed=1) / 4, steps=10)
    expected = math.sqrt(16 * 10 / beta / features)
    assert (found - patterns).norm(dim=1).median().item() == pytest.approx(expected, rel=0.4)


def test_a_state_that_is_far_from_everything_stays_where_it_is():
    memory, far = made(noise(10, 4), beta=5.0), torch.full((1, 4), 50.0, dtype=torch.float64)
    assert torch.equal(memory.retrieve(far, steps=None), far)
    assert memory.energy(far).item() == pytest.approx(-math.log(memory.noise) / 5)
    # Of what is nothing but noise, 84 % lie below one standard deviation.
    energy = memory.energy(50 + 50 * noise(1000, 4, seed=1))
    assert (energy == energy.max()).double().mean().item() == pytest.approx(0.84, abs=0.03)


def test_what_was_added_can_be_subtracted_again_in_any_order():
    first, then = noise(30, 4), noise(20, 4, seed=1)
    grown = made(first).add(then[:7]).add(then[7:])
    torch.testing.assert_close(grown.total, made(torch.cat([then, first])).total)
    torch.testing.assert_close(grown.remove(first).total, made(then).total, atol=1e-10, rtol=0)
    assert len(grown) == 20 and grown.total.dtype == grown.float().total.dtype == torch.float64


def test_its_size_does_not_grow_with_what_is_stored(tmp_path):
    sizes = []
    for count in (10, 1000):
        made(noise(count, 4), features=64).save(tmp_path)
        sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert sizes[0] == sizes[1]


def test_what_is_loaded_answers_like_what_was_saved_and_goes_on(tmp_path):
    patterns, more = noise(10, 4), noise(3, 4, seed=1)
    memory = made(patterns, features=512, beta=3.0, seed=5)
    memory.save(tmp_path)
    loaded = ahop.load(tmp_path)
    assert type(loaded) is Memory.named("f-hop") and len(loaded) == 10
    assert torch.equal(loaded.retrieve(patterns), memory.retrieve(patterns))
    assert torch.equal(loaded.add(more).total, memory.add(more).total)


def test_blocks_change_no_answer(monkeypatch):
    patterns = noise(40, 4)
    whole = made(patterns)
    monkeypatch.setattr("ahop.memories.fourier.split", lambda count, each: [slice(0, 3), slice(3, count)])
    parts = made(patterns)
    torch.testing.assert_close(parts.total, whole.total)
    torch.testing.assert_close(parts.retrieve(patterns, steps=2), whole.retrieve(patterns, steps=2))
    torch.testing.assert_close(parts.energy(patterns), whole.energy(patterns))


def test_queries_of_any_shape_none_included():
    memory = made(noise(5, 4).float())
    assert memory.retrieve(torch.rand(2, 3, 4)).shape == (2, 3, 4) and memory.energy(torch.rand(4)).shape == ()
    assert memory.retrieve(torch.empty(0, 4)).shape == (0, 4) and memory.energy(torch.empty(0, 4)).shape == (0,)
    assert memory.retrieve([0.0] * 4).dtype == torch.float32


@pytest.mark.parametrize("name", ["recall", "plot", "patterns"])
def test_what_needs_the_patterns_is_not_there_and_says_what_is(name):
    memory = made(noise(5, 4))
    assert not hasattr(memory, name)
    with pytest.raises(AttributeError, match=rf"f-hop has no {name}, since it keeps no patterns: retrieve\(queries\)"):
        getattr(memory, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        memory.nothing  # noqa: B018


def test_bad_input_is_refused_and_nothing_changes():
    memory = ahop.FourierHopfield(4)
    with pytest.raises(ValueError, match="the memory must store patterns before it is asked, got none"):
        memory.retrieve(torch.ones(4))
    memory.add(torch.eye(4))
    before = memory.total
    with pytest.raises(ValueError, match=r"patterns must have 4 values each, got shape \(2, 3\)"):
        memory.add(torch.ones(2, 3))
    with pytest.raises(ValueError, match="patterns must be at most 4, as many as are stored; got 5"):
        memory.remove(torch.ones(5, 4))
    with pytest.raises(ValueError, match=r"patterns must be closer to zero, or beta smaller: torch\.float32 rounds"):
        memory.add(torch.full((1, 4), 1e9))
    with pytest.raises(ValueError, match="queries must be closer to zero"):
        memory.retrieve(torch.full((1, 4), 1e38))
    with pytest.raises(ValueError, match="queries must have 4 values each, like the 4 stored patterns; got shape"):
        memory.energy(torch.ones(3))
    with pytest.raises(ValueError, match="features must be even, a cosine and a sine each; got 7"):
        ahop.FourierHopfield(4, features=7)
    assert memory.total is before and len(memory) == 4
