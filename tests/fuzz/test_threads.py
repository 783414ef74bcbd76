"""Threads that add, remove, learn, ask, copy, save and load in any order: all that is seen is of one moment."""

import contextlib
import copy
import itertools
import pickle
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from unittest import mock

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import cluster
from tests.memories.test_threads import DIM, FIRST, MEMORIES, of_one_moment, pairs
from tests.memories.test_threads import given as additions

import ahop
from ahop.index import shard, shards
from ahop.index.stores import FaissStore, over
from ahop.similarity.codes import NoCodesError

WORKS = ["add", "remove", "fit", "partial_fit", "recall", "retrieve", "familiarity", "copy", "save", "load"]
BASE = 2 * len(FIRST)


@st.composite
def cases(draw):
    """What is worked at, and what each thread does to it, in order; numbers come from the seed."""
    works = st.lists(st.sampled_from(WORKS), min_size=1, max_size=8)
    return {
        "seed": draw(st.integers(0, 10**6)),
        "kind": draw(st.sampled_from([*MEMORIES, "index", "store", "shards"])),
        "threads": draw(st.lists(works, min_size=2, max_size=4)),
    }


class World:
    """One memory, and whatever stands between it and those who ask."""

    def __init__(self, case, folder):
        self.kind, self.folder = case["kind"], folder
        random = torch.Generator().manual_seed(case["seed"])
        self.rows = iter((torch.rand(10**3, DIM, generator=random) - 0.6).split(1))
        self.memory = MEMORIES.get(self.kind, ahop.BayesianHopfield)(pairs(FIRST))
        # With a noise that codes can follow.
        self.queries = pairs(FIRST[:4]) + 0.08 * torch.randn(8, DIM, generator=torch.Generator().manual_seed(1))
        if self.kind == "binary":
            self.queries = self.queries.sign()
        self.asked = self.memory
        if self.kind == "index":
            self.asked = self.memory.index()
        elif self.kind == "store":
            width = self.memory.as_inner_product(0.1).encode_patterns(self.memory.patterns[:1]).shape[1]
            self.asked = over(self.memory, FaissStore(width))
        elif self.kind == "shards":
            self.asked = self.grows = shards.Shards(self.memory, 2)
        self.grows = self.asked if self.kind == "shards" else self.memory

    def add(self):
        new = additions(self.memory, pairs(next(self.rows)))
        self.grows.add(**{key: value for key, value in new.items() if value is not None})

    def remove(self):
        # Behind the first ones stand at least those that this thread has added.
        self.grows.remove([BASE, BASE + 1])

    def fit(self):
        learns = self.kind in ("shards", "index") or self.memory.learns
        # A database would have to be told.
        if learns and self.kind != "store":
            quietly = {"hidden_causes": 0, "verbose": False}
            options = {"kernel": {"steps": 2}, "each its own": {}}.get(self.kind, quietly)
            self.grows.fit(self.queries, torch.arange(len(self.queries)), **options)

    def partial_fit(self):
        if self.kind in ("learned", "index"):
            self.memory.partial_fit(self.queries, torch.arange(len(self.queries)))

    def recall(self):
        found = self.asked.recall(self.queries, k=3)
        assert found.indices.shape == found.probabilities.shape == (len(self.queries), 3)
        assert found.indices.min() >= 0 and found.indices.max() < BASE + 64
        assert (found.probabilities >= 0).all() and (found.probabilities.sum(1) < 1 + 1e-3).all()
        if self.kind in ("universal", "learned", "index", "store", "shards"):
            # One that was added since may lie nearer by chance.
            first = found.indices[:, 0]
            assert ((first == torch.arange(len(self.queries))) | (first >= BASE)).all()

    def retrieve(self):
        width = DIM if self.memory.values is None else 2
        assert self.memory.retrieve(self.queries, steps=2).shape == (len(self.queries), width)
        assert self.memory.weights(self.queries).shape[1] % 2 == 0

    def familiarity(self):
        if isinstance(self.memory, ahop.BayesianHopfield):
            assert torch.isfinite(self.memory.familiarity(self.queries)).all()

    def copy(self):
        assert of_one_moment(copy.deepcopy(self.memory)) and of_one_moment(pickle.loads(pickle.dumps(self.memory)))

    def save(self):
        (self.asked if self.kind == "index" else self.memory).save(self.folder)

    def load(self):
        self.save()
        loaded = ahop.load(self.folder)
        memory = loaded.memory if self.kind == "index" else loaded
        assert of_one_moment(memory) and len(loaded) == len(memory)
        loaded.recall(self.queries, k=3)


def check(case):
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        mock.patch.object(shard, "cluster", lambda: cluster),
        mock.patch.object(shards, "cluster", lambda: cluster),
    ):
        # Two steps are few, and learning is said to be unfinished.
        warnings.filterwarnings("ignore", "the fit was still improving")
        world = World(case, Path(folder))
        wrong, left = [], itertools.count()
        start = threading.Barrier(len(case["threads"]))

        def run(works):
            try:
                start.wait(30)
                own = 0
                for work in works:
                    if work == "remove" and not own:
                        continue
                    # What was learned of few queries may be too sharp for codes, and is refused then.
                    with contextlib.suppress(NoCodesError):
                        getattr(world, work)()
                        own += {"add": 1, "remove": -1}.get(work, 0)
                for _ in range(own):
                    next(left)
            except BaseException as error:
                wrong.append(error)

        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        threads = [threading.Thread(target=run, args=(works,)) for works in case["threads"]]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(before)
        if wrong:
            raise wrong[0]
        with contextlib.suppress(NoCodesError):
            world.recall()
            world.load()
        assert len(world.grows) == BASE + 2 * next(left)
        if world.kind == "shards":
            world.grows.close()


@settings(max_examples=6)
@given(case=cases())
def test_whatever_threads_do_at_once_all_that_is_seen_is_of_one_moment(case):
    pytest.importorskip("faiss", reason="needs ahop[index]")
    check(case)
