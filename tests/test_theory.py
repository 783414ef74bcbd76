import pytest
import torch

import ahop
from ahop import energy, theory
from ahop.memories import Oracle
from ahop.similarity import Distance, Unified
from ahop.variants import Biased, Masked, Mixed, Noisy

GENERATOR = torch.Generator().manual_seed(0)
PATTERNS = (torch.rand(300, 24, generator=GENERATOR) * 2 - 1).double()


@pytest.mark.parametrize(
    "variant",
    [
        Noisy(0.6),
        Noisy(0.3 + torch.rand(24, generator=GENERATOR)),
        pytest.param(Masked(0.6, exact=True), marks=pytest.mark.slow),
        Biased(0.8),
    ],
    ids=["noise", "noise unlike by dimension", "mask", "bias"],
)
def test_the_optimal_similarity_agrees_with_the_oracle_on_every_query(variant):
    queries = variant.sample(PATTERNS, 2000).queries
    optimal = theory.optimal_similarity(variant, 24).double()
    assert theory.agreement(optimal, Oracle(PATTERNS, variant), queries) == 1.0


@pytest.mark.parametrize("variant", [Noisy(0.2 + 2 * torch.rand(24, generator=GENERATOR)), Masked(0.8), Biased(0.8)])
def test_a_plain_distance_does_not(variant):
    queries = variant.sample(PATTERNS, 1000).queries
    assert theory.agreement(Distance(), Oracle(PATTERNS, variant), queries) < 0.99


def test_no_closed_form_for_mixtures():
    for variant in (Mixed(0.3, 0.3, 0.3), Masked(0.3, fill="salt-pepper")):
        with pytest.raises(ValueError, match=r"variant must be Noisy, .* no closed form is known for M"):
            theory.optimal_similarity(variant, 24)


@pytest.mark.parametrize("size", [0.0, 0.5, 2.0])
def test_the_unified_energy_falls_along_the_step_and_keeps_its_bound(size):
    b = size * torch.randn(24, generator=GENERATOR).double()
    memory = ahop.AssociativeMemory(PATTERNS, Unified(b), "softmax")
    state = 3 * torch.randn(200, 24, generator=GENERATOR).double()
    bound = theory.energy_bound(memory)
    before = memory.energy(state)
    for _ in range(20):
        state = energy.unified_step(memory, state)
        after = memory.energy(state)
        assert (after <= before + 1e-9).all()
        assert (after >= bound).all()
        before = after


def test_the_bound_is_for_unified_similarities():
    with pytest.raises(ValueError, match="energy_bound needs a memory with Unified similarity, got 'dot'"):
        theory.energy_bound(ahop.ModernHopfield(PATTERNS))
