import math

import pytest
import torch

import ahop
from ahop.separation import Power, Softmax
from ahop.theory import sequence_capacity


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def signs(*shape, seed=0):
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)) * 2.0 - 1


def right(dim, count, separation, seed=0):
    """The share of transitions that are right in every unit."""
    states = signs(int(count) + 1, dim, seed=seed)
    memory = ahop.SequenceHopfield(states[:-1], values=states[1:], separation=separation)
    asked = torch.randperm(int(count), generator=torch.Generator().manual_seed(seed))[:300]
    return (memory.retrieve(states[asked]) == states[asked + 1]).all(1).double().mean().item()


@pytest.mark.parametrize(("dim", "k"), [(100, 2), (200, 2), (50, 3)])
def test_powers_know_as_many_transitions_as_the_paper_derives(dim, k):
    capacity = sequence_capacity(dim, k)
    expected = math.exp(-1 / math.sqrt(4 * math.pi * math.log(dim)))
    assert right(dim, capacity, Power(k)) == pytest.approx(expected, abs=0.06)
    assert right(dim, capacity / 2, Power(k)) > 0.98
    assert right(dim, capacity * 2, Power(k)) < 0.5


def test_the_classical_rule_knows_as_many_too_on_average():
    share = sum(right(100, sequence_capacity(100, 1), "identity", seed) for seed in range(40)) / 40
    assert share == pytest.approx(math.exp(-1 / math.sqrt(4 * math.pi * math.log(100))), abs=0.12)


@pytest.mark.parametrize("dim", [10, 12, 14])
def test_what_the_exponential_knows_grows_exponentially(dim):
    # It does not fail in one place, as powers do.
    capacity = sequence_capacity(dim)
    assert right(dim, capacity / 8, "exponential") > 0.95
    assert right(dim, capacity, "exponential") > 0.85
    assert sequence_capacity(dim + 2) > 3.5 * capacity


@pytest.mark.parametrize("separation", ["exponential", Power(3), Power(2)])
def test_a_sequence_is_replayed_from_a_damaged_hint_and_its_end_stays(separation):
    tune = signs(30, 128)
    memory = ahop.SequenceHopfield(tune, separation=separation)
    hint = torch.where(torch.rand(128, generator=torch.Generator().manual_seed(1)) < 0.15, -tune[4], tune[4])
    states = memory.replay(hint, 28)
    assert torch.equal(states[:25], tune[5:]) and bool((states[25:] == tune[-1]).all())


def test_a_step_is_the_sum_of_the_definition():
    tune, state = signs(9, 15).double(), signs(4, 15, seed=1).double()
    following = torch.cat([tune[1:], tune[-1:]])
    for separation, weigh in ((Power(3), lambda s: (s / 15) ** 3), ("exponential", lambda s: (s - 15).exp())):
        memory = ahop.SequenceHopfield(tune, separation=separation)
        assert torch.equal(memory.retrieve(state), (weigh(state @ tune.T) @ following).sign())


def test_several_sequences_do_not_run_into_each_other():
    first, then = signs(10, 96), signs(15, 96, seed=1)
    memory = ahop.SequenceHopfield(first).add(then)
    states = memory.replay(torch.stack([first[0], then[0]]), 14)
    assert torch.equal(states[0, :9], first[1:]) and torch.equal(states[1], then[1:])
    assert bool((states[0, 9:] == first[-1]).all())


def test_a_cycle_goes_round_so_no_energy_falls_along_it():
    tune = signs(5, 64)
    memory = ahop.SequenceHopfield(tune, values=tune.roll(-1, 0))
    assert torch.equal(memory.replay(tune[0], 10), torch.cat([tune.roll(-1, 0)] * 2))
    assert memory.energy(memory.replay(tune[0], 10))[-1] == memory.energy(tune[0])
    assert memory.energy(tune).max() < memory.energy(signs(20, 64, seed=1)).min()


def test_several_steps_of_retrieval_first_find_where_they_are():
    tune = signs(12, 60)
    memory = ahop.SequenceHopfield(tune)
    hint = torch.cat([tune[3, :40], -tune[3, 40:]])
    assert torch.equal(memory.retrieve(hint, steps=3), tune[4])
    assert memory.recall(hint).indices.item() == 3


@pytest.mark.parametrize("dwell", [1, 3, 5])
def test_states_stay_as_long_as_the_dwell_says(dwell):
    tune = signs(6, 100)
    memory = ahop.SequenceHopfield(tune)
    places = memory.recall(memory.replay(tune[0], 6 * dwell, dwell=dwell)).indices.squeeze(1)
    assert places.tolist() == [0] * (dwell - 1) + [place for place in range(1, 6) for _ in range(dwell)] + [5]


def test_real_states_are_replayed_as_they_are():
    path = torch.stack([torch.linspace(0, 6, 40).cos(), torch.linspace(0, 6, 40).sin()], 1)
    memory = ahop.SequenceHopfield(path, similarity="distance", separation=Softmax(1000.0), binary=False)
    states = memory.replay(path[0] + 0.02, 39)
    torch.testing.assert_close(states, path[1:], atol=0.02, rtol=0)


def test_saved_sequences_are_replayed_alike(tmp_path):
    made = [
        ahop.create("q-hop", signs(8, 32), separation=Power(2)).add(signs(3, 32, seed=1)),
        ahop.SequenceHopfield(noise(8, 5).double(), similarity="distance", separation="softmax", binary=False),
    ]
    for memory in made:
        memory.save(tmp_path)
        loaded, start = ahop.load(tmp_path), memory.patterns[:2]
        assert type(loaded) is ahop.SequenceHopfield and loaded.binary == memory.binary
        assert torch.equal(loaded.replay(start, 5), memory.replay(start, 5))


def test_queries_of_any_shape_in_blocks_of_any_size(monkeypatch):
    memory = ahop.SequenceHopfield(signs(8, 32))
    queries = signs(2, 3, 32, seed=1)
    whole, slow = memory.replay(queries, 4), memory.replay(queries, 4, dwell=2)
    assert whole.shape == (2, 3, 4, 32) and memory.replay(torch.empty(0, 32), 4).shape == (0, 4, 32)
    monkeypatch.setattr("ahop.memories.sequence.split", lambda count, each: [slice(0, 2), slice(2, count)])
    assert torch.equal(memory.replay(queries, 4), whole) and torch.equal(memory.replay(queries, 4, dwell=2), slow)


def test_bad_input_is_refused_and_nothing_changes():
    memory = ahop.SequenceHopfield(signs(4, 6))
    with pytest.raises(ValueError, match=r"patterns of a SequenceHopfield must be -1 or \+1, got other values"):
        memory.add(noise(2, 6))
    with pytest.raises(ValueError, match=r"values must have 6 numbers each, as the next states; got shape \(2, 5\)"):
        memory.add(signs(2, 6), values=signs(2, 5))
    with pytest.raises(ValueError, match=r"values must have 6 numbers each, as the next states; got shape \(4, 5\)"):
        ahop.SequenceHopfield(signs(4, 6), values=signs(4, 5))
    with pytest.raises(ValueError, match="steps must be an integer of at least 1, got 0"):
        memory.replay(signs(6), 0)
    with pytest.raises(ValueError, match="dwell must be None where states are real-valued, got 2"):
        ahop.SequenceHopfield(noise(4, 6), binary=False).replay(noise(6), 3, dwell=2)
    assert len(memory) == 4
