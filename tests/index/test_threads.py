"""Threads and processes at one index: every answer and every folder is that of one moment."""

import os

import pytest
import torch
from tests.index.models import COUNT, DIM, drawn, memory_of
from tests.memories.test_threads import at_once

import ahop
from ahop.index import storage


def opposites(count, seed):
    rows = drawn(count, DIM, seed=seed)
    return torch.stack([rows, -rows], 1).flatten(0, 1)


@pytest.mark.parametrize("seconds", [0.2, pytest.param(30.0, marks=pytest.mark.slow)])
def test_every_answer_and_every_saved_index_is_that_of_one_moment(tmp_path, seconds):
    memory, queries = memory_of("likelihood")
    memory.remove(torch.arange(100, COUNT))
    index, queries = memory.index(), queries[:8]

    def change(turn):
        memory.add(opposites(5, turn))
        memory.remove(torch.arange(100, 110))

    def learn(turn):
        seen = memory.patterns[:40] + 0.6 * drawn(40, DIM, seed=turn)
        memory.fit(seen, torch.arange(40), hidden_causes=0, verbose=False)

    def ask(turn):
        found = index.recall(queries, k=3)
        assert found.indices.min() >= 0 and found.indices.max() < 120
        assert (found.probabilities.sum(1) < 1 + 1e-4).all()

    def keep(turn):
        index.save(tmp_path)
        opened = ahop.load(tmp_path)
        added = opened.memory.patterns[100:]
        assert len(opened) == len(opened.engine) == len(opened.memory.patterns)
        assert torch.equal(added[0::2], -added[1::2])
        exact = opened.memory.recall_exactly(queries)
        torch.testing.assert_close(opened.recall(queries).probabilities, exact.probabilities, atol=0.02, rtol=0)

    # What is compiled on first use is compiled before.
    for work in (ask, keep):
        work(0)
    # A fit beside threads that never rest takes seconds.
    at_once([change, change, *[learn] * (seconds > 1), ask, keep, keep], seconds)
    assert len(memory) == len(index) == 100
    ahop.index.verify(tmp_path)


def test_of_a_memory_and_an_index_in_one_folder_the_last_one_wins(tmp_path):
    memory, _ = memory_of("likelihood")
    memory.save(tmp_path)
    memory.add(drawn(5, DIM, seed=1)).index().save(tmp_path)
    assert len(ahop.load(tmp_path)) == COUNT + 5
    memory.remove([0]).save(tmp_path)
    loaded = ahop.load(tmp_path)
    assert isinstance(loaded, ahop.BayesianHopfield) and len(loaded) == COUNT + 4
    assert [path.name for path in tmp_path.iterdir()] == ["memory.safetensors"]


@pytest.mark.parametrize("error", [None, "unable to open file <large.safetensors> in read-only mode"])
def test_an_index_that_is_saved_again_while_it_is_opened_is_opened_as_it_is_then(tmp_path, monkeypatch, error):
    memory, _ = memory_of("likelihood")
    index = memory.index()
    index.save(tmp_path)
    opened = storage.safetensors.safe_open

    def interrupted(*args):
        monkeypatch.undo()
        memory.remove([0])
        index.save(tmp_path)
        if error:  # As PyTorch says it, where the file goes away after its head was read.
            raise RuntimeError(error)
        return opened(*args)

    monkeypatch.setattr(storage.safetensors, "safe_open", interrupted)
    assert len(ahop.load(tmp_path)) == COUNT - 1


def test_what_killed_writers_of_an_index_left_long_ago_is_removed(tmp_path):
    memory, _ = memory_of("likelihood")
    old, young, other = (tmp_path / f"large-{token}.safetensors" for token in ("0" * 16, "f" * 16, "mine"))
    half = tmp_path / f".{old.name}-0123456789abcdef.part"
    for path in (old, young, other, half):
        path.touch()
    for path in (old, other, half):
        os.utime(path, (0, 0))
    memory.index().save(tmp_path)
    assert not old.exists() and not half.exists() and young.exists() and other.exists()
