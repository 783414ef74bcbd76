"""What a memory is asked in every way that it offers, of random arguments: sound answers, or errors of one line."""

import copy
import functools
import re
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop

DIM, COUNT = 4, 12
WORKS = ["recall", "coverage", "prior", "match", "ask", "verify", "restore", "retrieve", "familiarity"]
# Most numbers are meant; the others are out of range, of another kind, or none.
SHARES = 5 * [0.0, 0.05, 0.5, 0.9, 1.0, None] + [-0.1, 1.5, float("nan"), "much"]
NUMBERS = 5 * [1, 2, 3, COUNT] + [0, -1, COUNT + 1, 1.5, None, "all"]
PRIORS = [*3 * ["counts", "mask", "sparse"], "nothing", "negative", "nan", "narrow"]
TRUTHS = [*3 * ["known", "some"], "strangers", "nobody", "wrong", "short"]
ARGUMENTS = re.compile(r"\b(queries|k|coverage|reject|prior|room|count|answers|wanted|observed|restore)\b")


@st.composite
def cases(draw):
    """How a memory came to be, and what it is asked, one thing after another; numbers come from the seed."""
    work = st.fixed_dictionaries(
        {
            "work": st.sampled_from(WORKS),
            "rows": st.sampled_from([0, 1, 7, 30, 30]),
            "far": st.sampled_from([0.1, 0.1, 1.0, 30.0, 1e6]),
            "missing": st.sampled_from([0.0, 0.0, 0.3, 1.0]),
            "k": st.sampled_from(NUMBERS),
            "share": st.sampled_from(SHARES),
            "reject": st.sampled_from([*10 * [None], *SHARES]),
            "prior": st.sampled_from(PRIORS),
            "room": st.sampled_from([*5 * ["one", "many", "each"], "none", *NUMBERS]),
            "truth": st.sampled_from(TRUTHS),
        }
    )
    return {
        "seed": draw(st.integers(0, 10**6)),
        "learned": draw(st.sampled_from(["nothing", "labels", "labels", "labels", "no labels", "far off"])),
        "works": draw(st.lists(work, min_size=1, max_size=4)),
    }


@functools.cache
def made(learned):
    """A memory and its patterns; each is learned once."""
    draw = torch.Generator().manual_seed(0)
    patterns, origins = torch.randn(COUNT, DIM, generator=draw), torch.arange(30) % COUNT
    queries = patterns[origins] + (1e3 if learned == "far off" else 0.2) * torch.randn(30, DIM, generator=draw)
    memory = ahop.BayesianHopfield(patterns, values=torch.eye(COUNT) if learned == "labels" else None)
    if learned != "nothing":
        memory.fit(queries, origins if learned == "labels" else None, hidden_causes=0, verbose=False)
    return memory, patterns


def prior_of(kind, random, count):
    table = random.integers(0, 4, (count, COUNT)).astype(float)
    table[:, 0] += kind != "nothing"
    if kind in ("nothing", "negative", "nan") and count:
        table[-1] = {"nothing": 0.0, "negative": -1.0, "nan": np.nan}[kind]
    return {
        "mask": lambda: table > 1.5 if count == 0 else np.maximum(table > 1.5, np.arange(COUNT) == 0),
        "sparse": lambda: torch.as_tensor(table).to_sparse(),
        "narrow": lambda: table[:, 1:],
    }.get(kind, lambda: table)()


def sound(indices, probabilities, shape, ordered=True):
    """Answers in range and best first, and nothing where there is none. Where nothing was found, the order is a guess,
    of which probabilities know nothing."""
    assert indices.shape == probabilities.shape and tuple(indices.shape[:-1]) == shape
    none, used = indices == -1, indices[indices >= 0]
    assert bool((none | (indices >= 0)).all()) and bool((used < COUNT).all())
    assert bool(torch.isfinite(probabilities).all()) and bool((probabilities >= 0).all())
    assert not bool(probabilities[none].any()) and bool((probabilities.sum(-1) <= 1 + 1e-4).all())
    for row in indices.reshape(-1, indices.shape[-1]).tolist():
        named = [index for index in row if index >= 0]
        assert len(set(named)) == len(named) and row == named + [-1] * (len(row) - len(named))
    assert not ordered or indices.shape[-1] == 0 or bool((probabilities.diff(dim=-1) <= 1e-6).all())


def ask(memory, work, queries, origins, random, seen):
    """One call, and what must hold of its answer."""
    name, count = work["work"], len(queries)
    if name in ("recall", "coverage", "prior"):
        options = {"reject": work["reject"], "observed": seen}
        if name == "coverage":
            options["coverage"] = work["share"]
        else:
            options["k"] = work["k"]
        if name == "prior":
            options["prior"] = prior_of(work["prior"], random, count)
        found = memory.recall(queries, **options)
        guessed = name == "prior" and float(memory.similarity.doubt) == 1
        sound(found.indices, found.probabilities, (count,), ordered=not guessed)
        refused = (found.indices == -1).all(1)
        assert not bool(refused.any()) or work["reject"] is not None
        if name == "prior":
            allowed = torch.as_tensor(np.asarray(prior_of_dense(options["prior"]))) > 0
            rows, places = (found.indices >= 0).nonzero().T
            assert bool(allowed[rows, found.indices[rows, places]].all())
        return
    if name == "match":
        room = {"one": 1, "many": COUNT, "each": random.integers(0, 3, COUNT), "none": np.zeros(COUNT, int)}
        seats = room.get(work["room"], work["room"])
        found = memory.match(queries, seats, reject=work["reject"], observed=seen)
        sound(found.indices[:, None], found.probabilities[:, None], (count,))
        sound(found.second[:, None], found.second_probabilities[:, None], (count,))
        assert bool((found.probabilities + found.second_probabilities + found.strangers <= 1 + 1e-3).all())
        taken = torch.bincount(found.indices[found.indices >= 0], minlength=COUNT)
        assert bool((taken <= torch.as_tensor(seats)).all()) and found.room == int(np.broadcast_to(seats, COUNT).sum())
        assert len(str(found)) > 0
        return
    if name == "ask":
        for question in memory.ask(queries, work["k"], seed=3, observed=seen):
            assert 0 <= question.row < count and len(question.candidates) == 3
            sound(torch.tensor([question.candidates]), torch.tensor([question.probabilities]), (1,))
        return
    if name == "verify":
        truth = {
            "known": origins.tolist(),
            "some": [None if place % 2 else one for place, one in enumerate(origins.tolist())],
            "strangers": [ahop.STRANGER] * count,
            "nobody": [None] * count,
            "wrong": [COUNT] * count,
            "short": origins.tolist()[1:],
        }[work["truth"]]
        told = memory.verify(queries, truth, wanted=work["share"], observed=seen)
        assert 0 <= told.right <= told.labels <= count and 0 <= told.interval[0] <= told.interval[1] <= 1
        assert told.verdict in ("PASS", "WARN", "FAIL") and len(str(told)) > 0
        return
    told = getattr(memory, name)(queries, observed=seen)
    assert bool(torch.isfinite(told).all())
    width = {"familiarity": (), "retrieve": (memory.readouts.shape[1],)}.get(name, (DIM,))
    assert tuple(told.shape) == (count, *width)


def prior_of_dense(prior):
    return prior.to_dense() if isinstance(prior, torch.Tensor) else prior


def check(case):
    random = np.random.default_rng(case["seed"])
    with warnings.catch_warnings():
        # That nothing was found is said and no mistake.
        warnings.simplefilter("ignore", UserWarning)
        memory, patterns = copy.deepcopy(made(case["learned"]))
        for work in case["works"]:
            origins = torch.as_tensor(random.integers(0, COUNT, work["rows"]))
            noise = torch.as_tensor(random.normal(size=(work["rows"], DIM))).float()
            queries = patterns[origins] + work["far"] * noise
            queries[torch.as_tensor(random.random(queries.shape) < work["missing"])] = torch.nan
            before = {name: value.clone() for name, value in memory.state_dict().items()}
            try:
                ask(memory, work, queries, origins, random, "not-nan" if work["missing"] else None)
            except ValueError as error:
                assert "\n" not in str(error) and ARGUMENTS.search(str(error)), error
                now = memory.state_dict()
                assert now.keys() == before.keys() and all(torch.equal(now[name], before[name]) for name in now)


@settings(max_examples=15)
@given(cases())
def test_whatever_a_memory_is_asked_its_answers_are_sound(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=600)
@given(cases())
def test_whatever_memories_are_asked_their_answers_are_sound(case):
    check(case)
