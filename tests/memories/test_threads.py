"""Threads that add, remove, learn, ask and save at once: every answer and every file is of one moment."""

import copy
import itertools
import pickle
import sys
import threading
import time

import pytest
import torch

import ahop
from ahop.similarity import Adaptive

DIM = 8
# Patterns come and go in pairs of opposites, each with values and a prior of its own: so a moment can be told.
FIRST = torch.rand(20, DIM, generator=torch.Generator().manual_seed(0)) - 0.6


def pairs(rows):
    return torch.stack([rows, -rows], 1).flatten(0, 1)


def values_of(patterns):
    return patterns[:, :2] * 3


def prior_of(patterns):
    return patterns[:, 0].abs()


def of_one_moment(memory):
    patterns = memory.patterns
    assert len(patterns) % 2 == 0 and torch.equal(patterns[0::2], -patterns[1::2])
    if memory.values is not None:
        assert torch.equal(memory.values, values_of(patterns))
    if memory.prior is not None:
        torch.testing.assert_close(memory.prior, prior_of(patterns))
    if isinstance(memory.similarity, Adaptive) and memory.similarity.deviation is not None:
        assert len(memory.similarity.deviation) == memory.similarity.patterns == len(patterns)
    return True


MEMORIES = {
    "values": lambda rows: ahop.ModernHopfield(rows, beta=4.0, values=values_of(rows), prior=prior_of(rows)),
    "universal": lambda rows: ahop.UniversalHopfield(rows, values=values_of(rows)),
    "binary": lambda rows: ahop.DenseHopfield(rows.sign()),
    "each its own": lambda rows: ahop.AssociativeMemory(
        rows, Adaptive(DIM, patterns=len(rows)), "softmax", prior=prior_of(rows)
    ),
    "kernel": lambda rows: ahop.KernelHopfield(rows, values=values_of(rows)),
    "learned": lambda rows: ahop.BayesianHopfield(rows, values=values_of(rows)),
}


def at_once(works, seconds):
    """Do each of these over and over, in a thread of its own; what went wrong first is raised."""
    end, wrong, done = time.monotonic() + seconds, [], [0] * len(works)

    def run(place, work):
        try:
            for turn in itertools.count():
                if wrong or (time.monotonic() > end and all(done)):
                    return
                work(turn)
                done[place] += 1
        except BaseException as error:
            wrong.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=run, args=(place, work)) for place, work in enumerate(works)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if wrong:
        raise wrong[0]


def given(memory, rows):
    """What to add to it."""
    rows = rows.sign() if isinstance(memory, ahop.DenseHopfield) else rows
    values = None if memory.values is None else values_of(rows)
    return {"patterns": rows, "values": values, "prior": None if memory.prior is None else prior_of(rows)}


@pytest.mark.filterwarnings("ignore:the fit was still improving")
@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("seconds", [0.1, pytest.param(20.0, marks=pytest.mark.slow)])
def test_every_answer_copy_and_file_of_a_memory_is_that_of_one_moment(tmp_path, name, seconds):
    memory = MEMORIES[name](pairs(FIRST))
    queries = pairs(FIRST[:4]) + (0 if name == "binary" else 0.01)
    queries = queries.sign() if name == "binary" else queries
    origins = torch.arange(len(queries))

    def change(turn):
        rows = torch.rand(3, DIM, generator=torch.Generator().manual_seed(turn + 1)) - 0.6
        memory.add(**given(memory, pairs(rows)))
        # The first stay, and others may have come behind them.
        memory.remove([40, 41, 42, 43, 44, 45])

    def learn(turn):
        if memory.learns:
            options = {"kernel": {"steps": 2}, "learned": {"hidden_causes": 0, "verbose": False}}
            memory.fit(queries, origins, **options.get(name, {}))

    def ask(turn):
        found = memory.recall(queries, k=3)
        assert found.indices.min() >= 0 and found.indices.max() < 40 + 12
        if name in ("universal", "learned"):
            assert torch.equal(found.indices[:, 0], origins)
        assert (found.probabilities.sum(1) < 1 + 1e-4).all() and (found.probabilities >= 0).all()
        weights = memory.weights(queries)
        assert weights.shape[1] in (40, 46, 52)
        if name != "binary":
            torch.testing.assert_close(weights.sum(1), torch.ones(8))
        assert memory.retrieve(queries, steps=2).shape == (8, DIM if memory.values is None else 2)

    def keep(turn):
        memory.save(tmp_path / name)
        loaded = ahop.load(tmp_path / name)
        assert of_one_moment(loaded)
        loaded.recall(queries)
        assert of_one_moment(copy.deepcopy(memory)) and of_one_moment(pickle.loads(pickle.dumps(memory)))

    # What is imported on first use is imported before.
    for work in (learn, ask, keep):
        work(0)
    at_once([change, change, learn, ask, keep, keep], seconds)
    assert of_one_moment(memory) and len(memory) == 40


def meanwhile(monkeypatch, memory, **new):
    """Let patterns come and go while the similarity of a memory learns."""
    fit = type(memory.similarity).fit

    def interrupted(self, *args, **options):
        memory.add(0.5 * FIRST[:2], **new)
        memory.remove([1])
        return fit(self, *args, **options)

    monkeypatch.setattr(type(memory.similarity), "fit", interrupted)


@pytest.mark.slow
def test_what_is_learned_of_each_pattern_follows_those_that_come_and_go_meanwhile(monkeypatch):
    alone, memory = (ahop.AdaptiveHopfield(FIRST, isolated=True) for _ in range(2))
    origins = torch.arange(240) % 20
    queries = FIRST[origins] * torch.tensor([4.0, -1.0]).repeat(DIM // 2)
    queries = queries + 0.1 * torch.randn(240, DIM, generator=torch.Generator().manual_seed(1))
    wanted = alone.fit(queries, origins).similarity.deviation
    meanwhile(monkeypatch, memory)
    memory.fit(queries, origins)
    found = memory.similarity.deviation
    assert torch.equal(found[0], wanted[0]) and torch.equal(found[1:19], wanted[2:]) and wanted.abs().max() > 0
    assert len(found) == len(memory) == 21 and not found[19:].any()


def test_a_learned_prior_follows_patterns_that_come_and_go_meanwhile(monkeypatch):
    memory = ahop.BayesianHopfield(FIRST)
    meanwhile(monkeypatch, memory)
    memory.fit(FIRST[[0, 2, 2, 3]], [0, 2, 2, 3], learn_prior=True, hidden_causes=0)
    assert memory.prior.tolist() == [2, 3, 2, *[1] * 18]
    assert memory.recall(FIRST[:1]).indices.item() == 0


def test_a_fit_that_breaks_off_leaves_what_came_and_went_meanwhile(monkeypatch):
    memory = ahop.BayesianHopfield(FIRST)
    monkeypatch.setattr(type(memory.similarity), "fit", lambda *args, **options: 1 / 0)
    meanwhile(monkeypatch, memory)
    before = memory.similarity
    with pytest.raises(ZeroDivisionError):
        memory.fit(FIRST)
    assert len(memory) == 21 and memory.similarity is before and memory.report is None


def test_sets_of_a_coverage_are_of_the_patterns_that_there_were(monkeypatch):
    origins = torch.arange(60) % 20
    queries = FIRST[origins] + 0.2 * torch.randn(60, DIM, generator=torch.Generator().manual_seed(1))
    memory = ahop.BayesianHopfield(FIRST)
    memory.verify(queries, origins)
    wanted = memory.recall(queries, coverage=0.9)
    furthest = type(memory.similarity).furthest

    def interrupted(self, coverage):
        memory.remove([0])
        return furthest(self, coverage)

    monkeypatch.setattr(type(memory.similarity), "furthest", interrupted)
    found = memory.recall(queries, coverage=0.9)
    assert len(memory) == 19 and torch.equal(found.indices, wanted.indices)


def test_a_shallow_copy_grows_by_itself():
    memory = ahop.BayesianHopfield(FIRST)
    other = copy.copy(memory)
    other.add(FIRST)
    assert len(memory) == 20 and len(other) == 40 and other.similarity is memory.similarity


def test_what_nobody_would_ever_ask_for_is_not_all_that_is_left():
    memory = ahop.ModernHopfield(FIRST[:3], prior=[1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="indices must leave at least one pattern of positive prior"):
        memory.remove([0])
    assert len(memory) == 3
