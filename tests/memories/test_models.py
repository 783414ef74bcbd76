import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import ahop
from ahop.memories import Memory
from ahop.memories.names import known_names
from ahop.metrics import retrieval_accuracy
from ahop.similarity import Adaptive, Distance, Dot, Manhattan
from ahop.variants import Mixed, Noisy


def noise(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def flipped(patterns, share, seed=1):
    flip = torch.rand(patterns.shape, generator=torch.Generator().manual_seed(seed)) < share
    return torch.where(flip, -patterns, patterns)


@pytest.mark.parametrize("update", ["synchronous", "asynchronous"])
def test_the_classical_network_recalls_a_few_patterns_from_flipped_bits(update):
    patterns = noise(20, 400).sign()
    memory = ahop.ClassicalHopfield(patterns, update=update)
    restored = memory.retrieve(flipped(patterns, 0.1), steps=None)
    assert (restored == patterns).all(1).float().mean() > 0.95


def test_the_dense_network_recalls_where_the_classical_one_fails():
    patterns = noise(200, 100).sign()
    queries = flipped(patterns, 0.1)
    share = {}
    for memory in (
        ahop.ClassicalHopfield(patterns),
        ahop.DenseHopfield(patterns, k=3),
        ahop.ExponentialHopfield(patterns),
    ):
        restored = memory.retrieve(queries, steps=5)
        share[memory.name] = (restored == patterns).all(1).float().mean().item()
    assert share["hop"] == 0
    assert share["d-hop"] > 0.9
    assert share["e-hop"] > 0.99


def test_dense_of_power_one_is_the_classical_network():
    patterns, queries = noise(5, 31).sign(), noise(8, 31, seed=1).sign()
    classical, dense = ahop.ClassicalHopfield(patterns), ahop.DenseHopfield(patterns, k=1)
    assert torch.equal(classical.retrieve(queries), dense.retrieve(queries))


def test_a_unit_that_nothing_drives_stays_as_it_is():
    memory = ahop.ClassicalHopfield(torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, -1.0]]))
    # Equal overlaps with both patterns leave the last two units undriven.
    assert memory.retrieve(torch.tensor([1.0, 1.0, 1.0, -1.0])).tolist() == [1, 1, 1, -1]


def test_binary_networks_read_out_binary_values():
    patterns, values = noise(5, 40).sign(), noise(5, 7).sign()
    for kind in (ahop.ClassicalHopfield, ahop.DenseHopfield, ahop.ExponentialHopfield):
        memory = kind(patterns, values=values)
        assert memory.retrieve(flipped(patterns, 0.05), steps=3)[0].tolist() == values[0].tolist()


def test_units_that_nobody_observed_are_still_up_or_down():
    memory = ahop.ClassicalHopfield(torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, -1.0, -1.0]]))
    answer = memory.retrieve([1.0, 1.0, torch.nan, torch.nan], observed="not-nan")
    assert answer.abs().tolist() == [1, 1, 1, 1]


def test_an_even_power_recalls_by_weight():
    memory = ahop.DenseHopfield(torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, -1.0, -1.0]]), k=2)
    indices, probabilities = memory.recall([-1.0, 1.0, 1.0, 1.0], k=2)
    assert indices.tolist() == [1, 0]
    assert probabilities.tolist() == pytest.approx([0.8, 0.2])


def test_binary_networks_refuse_other_patterns():
    with pytest.raises(ValueError, match="patterns of a ClassicalHopfield must be -1 or"):
        ahop.ClassicalHopfield(torch.ones(2, 2)).add(torch.rand(1, 2))
    with pytest.raises(ValueError, match="values of a ClassicalHopfield must be -1 or"):
        ahop.ClassicalHopfield(torch.ones(2, 2), values=torch.rand(2, 2))
    with pytest.raises(ValueError, match="patterns of a DenseHopfield must be -1 or"):
        ahop.DenseHopfield(torch.rand(3, 4))
    with pytest.raises(ValueError, match="update must be one of 'synchronous', 'asynchronous', got 'random'"):
        ahop.ClassicalHopfield(torch.ones(3, 4), update="random")


@given(seed=st.integers(0, 999))
def test_adaptive_networks_start_as_their_base_networks_bit_for_bit(seed):
    patterns, queries = noise(7, 6, seed=seed, dtype=torch.float64), noise(3, 6, seed=seed + 1, dtype=torch.float64)
    pairs = [
        (ahop.AdaptiveHopfield(patterns, bases=["dot"]), ahop.ModernHopfield(patterns)),
        (ahop.AdaptiveHopfield(patterns, bases=["dot"], separation="sparsemax"), ahop.SparseHopfield(patterns)),
        (ahop.AdaptiveHopfield(patterns, bases=["manhattan"], separation="argmax"), ahop.UniversalHopfield(patterns)),
        (
            ahop.AdaptiveHopfield(patterns, bases=["distance"]),
            ahop.UniversalHopfield(patterns, similarity="distance", separation="softmax"),
        ),
    ]
    for adaptive, base in pairs:
        assert torch.equal(adaptive.retrieve(queries), base.retrieve(queries))


@pytest.mark.parametrize("base", [Dot(), Distance(), Manhattan()], ids=lambda b: b.name)
@pytest.mark.parametrize("separation", ["identity", "power", "exponential", "softmax", "entmax"])
def test_any_memory_equals_its_base_when_only_the_whole_footprint_counts(base, separation):
    patterns, queries = noise(7, 6, dtype=torch.float64), noise(3, 6, seed=1, dtype=torch.float64)
    plain = ahop.AssociativeMemory(patterns, base, separation)
    adaptive = ahop.AssociativeMemory(patterns, Adaptive(6, [base]), separation)
    assert torch.equal(adaptive.weights(queries), plain.weights(queries))


@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_a_kernel_network_starts_as_the_modern_one_and_learns():
    patterns = torch.rand(100, 16, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = Mixed(0.3, 0.3, 0.3)
    seen, test = world.sample(patterns, 300), world.sample(patterns, 300)
    memory = ahop.create("k2-hop", patterns)
    torch.testing.assert_close(memory.scores(test.queries), ahop.ModernHopfield(patterns).scores(test.queries))
    before = retrieval_accuracy(memory, test)
    assert retrieval_accuracy(memory.fit(*seen), test) > before + 0.05
    with pytest.raises(ValueError, match="queries and origins must both be given to fit the retrieval loss"):
        memory.fit(seen.queries)
    with pytest.raises(ValueError, match="queries must be at least 5"):
        memory.fit(seen.queries[:3], seen.origins[:3])


@pytest.mark.filterwarnings("ignore:the fit was still improving")
def test_the_separation_loss_needs_no_queries_and_falls():
    patterns = torch.rand(60, 8, generator=torch.Generator().manual_seed(0))
    memory = ahop.KernelHopfield(patterns)
    before = memory.modulation.separation_loss(patterns).item()
    assert memory.fit().report.loss < before - 0.1


def test_the_adaptive_network_refuses_to_learn_without_labels():
    with pytest.raises(ValueError, match="queries and origins must both be given: a-hop learns from labelled pairs"):
        ahop.AdaptiveHopfield(noise(3, 4)).fit(noise(5, 4))


def test_every_short_name_makes_its_network():
    signs = noise(4, 5).sign()
    for name in ("hop", "d-hop", "e-hop", "m-hop", "u-hop", "s-hop", "k-hop", "a-hop", "q-hop", "f-hop"):
        assert ahop.create(name, signs).name == name
    assert ahop.create("k2-hop", signs).loss == "retrieval"
    assert ahop.create("d-hop", signs, k=5).separation.k == 5


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax", "normmax", "ksubsets", "epanechnikov"])
def test_who_takes_a_separation_for_a_network_is_told_one_whose_energy_never_rises(name):
    patterns, queries = 0.6 * noise(12, 3, dtype=torch.float64), 0.8 * noise(200, 3, seed=1, dtype=torch.float64)
    with pytest.raises(ValueError, match="it is a separation: ") as told:
        ahop.create(name, patterns)
    memory = eval(str(told.value).split("separation: ")[1])
    moved = memory.retrieve(queries)
    assert not torch.equal(moved, queries)
    assert bool((memory.energy(moved) <= memory.energy(queries) + 1e-9).all())


def test_a_network_of_your_own_is_created_by_any_name(monkeypatch):
    monkeypatch.setattr(Memory, "members", dict(Memory.members))

    class Nearest(ahop.UniversalHopfield):
        name = "nearest stored"

    assert type(ahop.create("nearest stored", noise(4, 5))) is Nearest and "oracle" not in known_names()


def test_float64_memories_work_in_float64():
    patterns = noise(20, 6, dtype=torch.float64)
    memory = ahop.AdaptiveHopfield(patterns).fit(*Noisy(0.1).sample(patterns, 30))
    assert memory.scores(patterns).dtype == torch.float64
    assert memory.similarity.weight.dtype == torch.float64


def test_retrieval_is_differentiable_in_queries_and_patterns():
    patterns = noise(5, 4, dtype=torch.float64)
    for name in ("m-hop", "s-hop", "k-hop", "a-hop"):
        memory = ahop.create(name, patterns)
        query = noise(2, 4, seed=1, dtype=torch.float64).requires_grad_()
        torch.autograd.gradcheck(memory.retrieve, query)
