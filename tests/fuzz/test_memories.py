"""Every memory, against the oracle: types, units, places, shapes, masks, priors, values and budgets drawn at random."""

import contextlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

import ahop
from ahop.similarity import Adaptive, Likelihood

SIMILARITIES = ["dot", "distance", "euclidean", "manhattan", "cosine", "adaptive", "likelihood"]
SEPARATIONS = ["softmax", "sparsemax", "entmax", "normmax", "argmax", "exponential"]
DTYPES = {torch.float64: 1e-9, torch.float32: 3e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}


@st.composite
def cases(draw):
    """The settings of one call; numbers come from the seed."""
    return {
        "seed": draw(st.integers(0, 10**6)),
        "patterns": draw(st.integers(1, 40)),
        "dim": draw(st.integers(1, 20)),
        "shape": draw(st.sampled_from([(), (1,), (5,), (0,), (2, 3)])),
        "similarity": draw(st.sampled_from(SIMILARITIES)),
        "separation": draw(st.sampled_from(SEPARATIONS)),
        "beta": draw(st.sampled_from([1e-3, 0.5, 1.0, 8.0, 1e6])),
        "dtype": draw(st.sampled_from(list(DTYPES))),
        "scale": draw(st.sampled_from([1e-20, 1e-12, 1e-6, 1.0, 1.0, 1.0, 300.0, 1e6, 1e12, 1e18])),
        "place": draw(st.sampled_from(oracle.PLACES)),
        "masked": draw(st.booleans()),
        "prior": draw(st.sampled_from([None, "counts", "zeros"])),
        "values": draw(st.booleans()),
        "small": draw(st.booleans()),
    }


def part_of(case, random):
    """The similarity under test, and the same as a function of the oracle's, with how large its terms are."""
    name, dim = case["similarity"], case["dim"]
    if name == "adaptive":
        bases = ["distance", "dot", "manhattan"][: random.integers(1, 4)]
        part, weights = Adaptive(dim, bases), torch.as_tensor(random.normal(size=(len(bases), dim))).float()
        part.set_order_weights(weights)

        def footprints(own, *sides):
            weights = oracle.rows(own.order_weights().detach())
            size = sum(np.abs(u).max() * oracle.sizes(base, *sides) for base, u in zip(bases, weights, strict=True))
            return oracle.footprints(bases, weights, *sides), size

        return part, footprints
    if name == "likelihood":
        part = Likelihood(dim, int(random.integers(1, 3)), shifted=bool(random.integers(2)), centre=0.3)
        with torch.no_grad():
            for parameter in part.parameters():
                parameter.add_(torch.as_tensor(random.normal(size=parameter.shape)).float() * 0.3)

        def likelihood(own, *sides):
            scores = oracle.likelihood(own, *sides)
            return scores, np.abs(scores) + case["dim"]

        return part, likelihood
    return name, lambda own, *sides: (oracle.similarity(name, *sides), oracle.sizes(name, *sides))


def check(case):
    random = np.random.default_rng(case["seed"])
    dtype = case["dtype"]
    scale = case["scale"] if dtype in (torch.float32, torch.float64) and case["similarity"] != "likelihood" else 1.0
    # Halves hold no groups that are far apart, and a likelihood knows where its values lie.
    full = dtype in (torch.float32, torch.float64) and case["similarity"] != "likelihood"
    place = case["place"] if full or case["place"] in ("near", "twice", "zeros") else "anywhere"
    laid = oracle.lay(place, random, case["patterns"], case["shape"], case["dim"])
    patterns, queries = (torch.as_tensor(rows * scale).to(dtype) for rows in laid)
    seen = torch.as_tensor(random.random(queries.shape) < 0.7) if case["masked"] else None
    prior = None
    if case["prior"] is not None:
        prior = random.integers(1 if case["prior"] == "counts" else 0, 5, case["patterns"]).astype(float)
        prior[0] = 1.0
    values = torch.as_tensor(random.normal(size=(case["patterns"], 3))).to(dtype) if case["values"] else None
    alpha = float(random.uniform(1.1, 2.0))
    sharp = {"alpha": alpha, "beta": case["beta"]}
    settings_of = {"entmax": sharp, "normmax": sharp, "argmax": {}, "exponential": {}}
    separation = ahop.separation.Separation.of(
        case["separation"], **settings_of.get(case["separation"], {"beta": case["beta"]})
    )
    part, scored = part_of(case, random)
    memory = ahop.AssociativeMemory(patterns, part, separation, values=values, prior=prior)
    with ahop.memory_budget(2**20) if case["small"] else contextlib.nullcontext(), torch.no_grad():
        scores = memory.scores(queries, observed=seen)
        weights = memory.weights(queries, observed=seen)
        k = int(random.integers(1, case["patterns"] + 1))
        found = memory.recall(queries, k, observed=seen)
        answer = memory.retrieve(queries, observed=seen)

    shape, close = tuple(case["shape"]), DTYPES[torch.float32 if dtype != torch.float64 else dtype]
    assert scores.shape == weights.shape == (*shape, case["patterns"])
    assert found.indices.shape == found.probabilities.shape == (*shape, k)
    assert answer.shape == (*shape, 3 if case["values"] else case["dim"]) and answer.dtype == dtype
    stored, asked = oracle.rows(patterns.double()), oracle.rows(queries.double()).reshape(-1, case["dim"])
    masks = np.ones(asked.shape, bool) if seen is None else seen.numpy().reshape(asked.shape)
    # A temperature has the digits of float32.
    beta = float(memory.separation.inverse_temperature)
    if not len(asked):
        return
    flat = [oracle.rows(t.double()).reshape(len(asked), -1) for t in (scores, weights, found.probabilities, answer)]
    picked = found.indices.reshape(-1, k).numpy()
    for row, (query, mask) in enumerate(zip(asked, masks, strict=True)):
        exact, terms = scored(memory.similarity, stored, query, mask)
        ruled_out = np.zeros(len(exact), bool)
        if prior is not None:
            logs = oracle.log_prior(prior)
            ruled_out = ~np.isfinite(logs)
            added = np.where(ruled_out, 0.0, logs) / beta
            exact, terms = exact + added, terms + np.abs(added)
        rough = np.where(ruled_out, exact, flat[0][row])
        # Each score is right to the digits that its terms have.
        assert (np.abs(rough - exact) <= close * terms + np.finfo(np.float32).tiny).all()
        # From here on with the scores that the memory has: tiny errors times a large beta are no tiny errors.
        own, best = flat[0][row], np.zeros(len(exact))
        best[~ruled_out] = oracle.separate(case["separation"], own[~ruled_out], beta, alpha)
        # Rounding may decide between patterns that tie.
        np.testing.assert_allclose(flat[1][row], best, atol=2e-3, rtol=1e-2)
        assert not flat[1][row][ruled_out].any()
        assert len(set(picked[row])) == k and (np.diff(own[picked[row]]) <= 1e-6 * terms[picked[row]][1:]).all()
        np.testing.assert_allclose(flat[2][row], flat[1][row][picked[row]], atol=2e-3, rtol=1e-2)
        readout = oracle.rows((patterns if values is None else values).double())
        reach = np.abs(readout).max() + np.finfo(float).tiny
        np.testing.assert_allclose(flat[3][row] / reach, flat[1][row] @ readout / reach, atol=2 * DTYPES[dtype] + 2e-3)
        # The first choice is the oracle's wherever float64 can tell.
        allowed = np.where(ruled_out, -np.inf, exact)
        first, best = picked[row][0], allowed.argmax()
        assert allowed[first] >= allowed[best] - 1e-8 * (terms[first] + terms[best])


@settings(max_examples=120)
@given(cases())
def test_memories_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=7000)
@given(cases())
def test_many_memories_say_what_their_equations_say(case):
    check(case)
