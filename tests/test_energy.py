import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop.energy import descend, unified_step
from ahop.separation import Entmax, KSubsets, Normmax, Softmax, Sparsemax
from ahop.similarity import Unified

SLACK = 1e-9
NEW = ("normmax", "ksubsets", "epanechnikov")


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def falls(memory, state, step, times=6):
    energy = memory.energy(state)
    for _ in range(times):
        state = step(state).detach()
        lower = memory.energy(state)
        assert bool((lower <= energy + SLACK * energy.abs().clamp_min(1)).all())
        energy = lower
    return energy


@given(seed=st.integers(0, 9999), beta=st.sampled_from([0.1, 1.0, 10.0]), prior=st.booleans())
def test_energies_of_continuous_networks_never_rise(seed, beta, prior):
    patterns = noise(7, 5, seed=seed)
    counts = {"prior": noise(7, seed=seed + 3).abs()} if prior else {}
    kernel = ahop.KernelHopfield(patterns, separation=Entmax(1.5, beta), **counts)
    torch.nn.init.normal_(kernel.modulation.phi, generator=torch.Generator().manual_seed(seed))
    networks = [
        ahop.ModernHopfield(patterns, beta=beta, **counts),
        ahop.SparseHopfield(patterns, beta=beta, **counts),
        kernel,
    ]
    for memory in networks:
        falls(memory, 3 * noise(4, 5, seed=seed + 1), memory.retrieve)


@settings(max_examples=3)
@given(seed=st.integers(0, 9999))
def test_energies_of_sparse_weights_and_of_sets_never_rise(seed):
    patterns = noise(7, 5, seed=seed)
    for separation in (Normmax(1.3, 0.1), Normmax(3.0), KSubsets(3, 10.0)):
        memory = ahop.AssociativeMemory(patterns, "dot", separation)
        falls(memory, 3 * noise(4, 5, seed=seed + 1), memory.retrieve, times=4)


@pytest.mark.parametrize(
    "separation", [Softmax(1.7), Sparsemax(0.4), Entmax(1.3, 0.6), Normmax(1.3, 0.3), KSubsets(3, 0.4)], ids=repr
)
def test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it(separation):
    patterns, states = noise(7, 5), noise(20, 5, seed=1).requires_grad_()
    memory = ahop.AssociativeMemory(patterns, "dot", separation.double())
    (slope,) = torch.autograd.grad(memory.energy(states).sum(), states)
    torch.testing.assert_close(memory.retrieve(states), states - slope, atol=1e-6, rtol=0)
    # Blends, of which a gradient says more than of exact weights.
    weights = memory.weights(states)
    assert ((weights > 0.01) & (weights < 0.99)).any(1).double().mean() > 0.7


@given(seed=st.integers(0, 9999), count=st.integers(1, 12), dim=st.integers(1, 15))
def test_the_classical_energy_never_rises_under_asynchronous_updates(seed, count, dim):
    memory = ahop.ClassicalHopfield(noise(count, dim, seed=seed).sign(), update="asynchronous", seed=seed)
    falls(memory, noise(5, dim, seed=seed + 1).sign(), memory.retrieve, times=4)


@given(seed=st.integers(0, 9999), scale=st.sampled_from([0.0, 1.0, 10.0]))
def test_the_unified_energy_never_rises_and_keeps_its_bound(seed, scale):
    patterns, b = noise(6, 4, seed=seed) * 3, noise(4, seed=seed + 1) * scale
    memory = ahop.AssociativeMemory(patterns, Unified(b), Softmax())
    start = 5 * noise(5, 4, seed=seed + 2)
    lowest = falls(memory, start, lambda x: unified_step(memory, x))
    bound = -torch.tensor(6.0).log() - b.square().sum() / 4
    assert bool((memory.energy(start) >= bound - SLACK).all())
    assert bool((lowest >= bound - 1e-6).all())


def test_the_unified_energy_is_the_formula_of_the_corrected_proof():
    patterns, b, x = noise(6, 4), noise(4, seed=1), noise(5, 4, seed=2)
    memory = ahop.AssociativeMemory(patterns, Unified(b), Softmax())
    rows = 2 * patterns + b
    constants = -patterns @ b - patterns.square().sum(1)
    expected = x.square().sum(1) - torch.logsumexp(x @ rows.T + constants, 1)
    torch.testing.assert_close(memory.energy(x), expected)


def test_energies_are_those_of_the_table():
    signs, x = noise(4, 6).sign(), noise(3, 6, seed=1).sign()
    overlaps = x @ signs.T
    torch.testing.assert_close(ahop.ClassicalHopfield(signs).energy(x), -0.5 * overlaps.square().sum(1))
    torch.testing.assert_close(ahop.DenseHopfield(signs, k=2).energy(x), -(overlaps**3).sum(1))
    torch.testing.assert_close(ahop.ExponentialHopfield(signs).energy(x), -overlaps.exp().sum(1).log())
    adaptive = ahop.AdaptiveHopfield(signs)
    torch.testing.assert_close(adaptive.energy(x), -torch.logsumexp(adaptive.scores(x), 1))


@settings(max_examples=20)
@given(seed=st.integers(0, 999), name=st.sampled_from(["m-hop", "s-hop", "k-hop", "a-hop", "g-hop"]))
def test_descent_lowers_any_energy(seed, name):
    memory = ahop.create(name, noise(5, 4, seed=seed), **scattered(seed, 5, 4) if name == "g-hop" else {})
    start = 2 * noise(3, 4, seed=seed + 1)
    end = descend(memory, start, steps=20)
    assert bool((memory.energy(end) <= memory.energy(start) + SLACK).all())
    assert bool((memory.energy(end) < memory.energy(start)).any())


def scattered(seed, *shape):
    return {"spread": noise(*shape, seed=seed + 7).exp()}


def biased(seed):
    """A g-hop with a spread, a bias and noise; it, what its queries vary by and what is stored where they lie."""
    memory = ahop.GaussianHopfield(noise(6, 3, seed=seed), **scattered(seed, 6, 3))
    memory.similarity.bias.data.copy_(noise(3, seed=seed + 1))
    memory.similarity.log_noise.data.copy_(noise(3, seed=seed + 2) - 1)
    variance = memory.spread**2 + memory.similarity.noise.detach() ** 2
    return memory, variance, memory.patterns + memory.similarity.bias.detach()


@settings(max_examples=6)
@given(seed=st.integers(0, 9999))
def test_the_energy_of_patterns_that_scatter_is_the_evidence_and_falls_along_the_mean_by_precisions(seed):
    memory, variance, placed = biased(seed)
    states = 2 * noise(5, 3, seed=seed + 3)
    gaps = states[:, None] - placed
    evidence = (-0.5 * (gaps.square() / variance + (2 * torch.pi * variance).log()).sum(-1)).logsumexp(1)
    torch.testing.assert_close(memory.energy(states), -evidence)
    (slope,) = torch.autograd.grad(memory.energy(states.requires_grad_()).sum(), states)
    states = states.detach()
    torch.testing.assert_close(slope, (memory.weights(states)[..., None] * gaps / variance).sum(1))

    def step(state):
        precision = memory.weights(state)[..., None] / variance
        return (precision * placed).sum(1) / precision.sum(1)

    falls(memory, states, step)
    assert torch.autograd.gradcheck(memory.energy, states.requires_grad_())


def test_what_is_read_out_of_patterns_that_scatter_is_the_posterior_mean_and_no_step_of_descent():
    memory, _, placed = biased(0)
    torch.testing.assert_close(memory.retrieve(placed), memory.weights(placed) @ memory.patterns)
    assert bool((memory.energy(memory.retrieve(placed)) > memory.energy(placed)).any())


def test_a_memory_that_keeps_no_patterns_is_descended_as_it_computes():
    patterns = noise(3, 2)
    memory = ahop.FourierHopfield(2, beta=4.0).add(patterns)
    end = descend(memory, patterns.double() + 0.2)
    assert end.dtype == memory.frequencies.dtype
    assert bool((memory.energy(end) < memory.energy(patterns + 0.2)).all())


def test_no_step_of_a_descent_is_longer_than_its_stride():
    memory = ahop.ClassicalHopfield(noise(5, 4).sign())
    start = noise(3, 4, seed=1)
    end = descend(memory, start, steps=10, stride=0.01)
    assert bool(((end - start).norm(dim=-1) <= 0.1 + 1e-9).all())
    assert bool((memory.energy(end) < memory.energy(start)).all())


def test_the_same_parts_have_the_same_energy_everywhere():
    patterns, states = noise(6, 4), noise(3, 4, seed=1)
    for similarity in ("dot", "distance", "manhattan", "cosine"):
        for separation in ("softmax", "sparsemax", "entmax", "argmax", "exponential", "identity", "power", *NEW):
            base = ahop.AssociativeMemory(patterns, similarity, separation).energy(states)
            universal = ahop.UniversalHopfield(patterns, similarity=similarity, separation=separation).energy(states)
            torch.testing.assert_close(universal, base)
            layer = ahop.nn.Hopfield(similarity=similarity, separation=separation).double()
            torch.testing.assert_close(layer.energy((patterns, states, patterns))[0], base)
    dot = ahop.AssociativeMemory(patterns, "dot", "softmax").energy(states)
    torch.testing.assert_close(ahop.ModernHopfield(patterns).energy(states), dot)
    sparse = ahop.AssociativeMemory(patterns, "dot", "sparsemax").energy(states)
    torch.testing.assert_close(ahop.SparseHopfield(patterns).energy(states), sparse)
    torch.testing.assert_close(ahop.KernelHopfield(patterns).energy(states), dot)


def test_where_there_is_no_step_it_says_so():
    with pytest.raises(ValueError, match="unified_step needs a memory with Unified similarity, got 'dot'"):
        unified_step(ahop.ModernHopfield(torch.eye(3)), torch.ones(3))
