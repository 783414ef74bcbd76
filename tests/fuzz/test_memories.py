"""Every memory, against the oracle: types, sizes, shapes, masks, priors, values and budgets drawn at random."""

import contextlib
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

import ahop
from ahop.similarity import Adaptive, Likelihood

SIMILARITIES = ["dot", "distance", "euclidean", "manhattan", "cosine", "adaptive", "likelihood"]
SEPARATIONS = ["softmax", "sparsemax", "entmax", "argmax", "exponential"]
DTYPES = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}


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
        "scale": draw(st.sampled_from([1e-20, 1e-6, 1.0, 1.0, 1.0, 300.0, 1e18])),
        "masked": draw(st.booleans()),
        "prior": draw(st.sampled_from([None, "counts", "zeros"])),
        "values": draw(st.booleans()),
        "small": draw(st.booleans()),
    }


def part_of(case, random):
    """The similarity under test, and the same as a function of the oracle's."""
    name, dim = case["similarity"], case["dim"]
    if name == "adaptive":
        bases = ["distance", "dot", "manhattan"][: random.integers(1, 4)]
        part, weights = Adaptive(dim, bases), torch.as_tensor(random.normal(size=(len(bases), dim))).float()
        part.set_order_weights(weights)
        return part, lambda own, *sides: oracle.footprints(bases, oracle.rows(own.order_weights().detach()), *sides)
    if name == "likelihood":
        part = Likelihood(dim, int(random.integers(1, 3)), shifted=bool(random.integers(2)), centre=0.3)
        with torch.no_grad():
            for parameter in part.parameters():
                parameter.add_(torch.as_tensor(random.normal(size=parameter.shape)).float() * 0.3)
        return part, oracle.likelihood
    return name, lambda own, *sides: oracle.similarity(name, *sides)


def check(case):
    random = np.random.default_rng(case["seed"])
    dtype = case["dtype"]
    scale = case["scale"] if dtype in (torch.float32, torch.float64) and case["similarity"] != "likelihood" else 1.0
    patterns = torch.as_tensor(random.normal(size=(case["patterns"], case["dim"])) * scale).to(dtype)
    queries = torch.as_tensor(random.normal(size=(*case["shape"], case["dim"])) * scale).to(dtype)
    seen = torch.as_tensor(random.random(queries.shape) < 0.7) if case["masked"] else None
    prior = None
    if case["prior"] is not None:
        prior = random.integers(1 if case["prior"] == "counts" else 0, 5, case["patterns"]).astype(float)
        prior[0] = 1.0
    values = torch.as_tensor(random.normal(size=(case["patterns"], 3))).to(dtype) if case["values"] else None
    alpha = float(random.uniform(1.1, 2.0))
    settings_of = {"entmax": {"alpha": alpha, "beta": case["beta"]}, "argmax": {}, "exponential": {}}
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
        exact = scored(memory.similarity, stored, query, mask)
        ruled_out = np.zeros(len(exact), bool)
        if prior is not None:
            logs = oracle.log_prior(prior)
            ruled_out = ~np.isfinite(logs)
            exact = exact + np.where(ruled_out, 0.0, logs) / beta
        size = np.abs(exact).max() + np.finfo(float).tiny
        rough = np.where(ruled_out, exact, flat[0][row])
        # Sums of terms of both signs are as exact as the largest of them.
        slack = close * (size + (scale**2 * case["dim"] if scale != 1 else case["dim"]))
        if scale == 1 or case["similarity"] in ("dot", "distance"):
            assert np.abs(rough - exact).max() <= slack
        # From here on with the scores that the memory has: tiny errors times a large beta are no tiny errors.
        own, best = flat[0][row], np.zeros(len(exact))
        best[~ruled_out] = oracle.separate(case["separation"], own[~ruled_out], beta, alpha)
        # Rounding may decide between patterns that tie.
        np.testing.assert_allclose(flat[1][row], best, atol=2e-3, rtol=1e-2)
        assert not flat[1][row][ruled_out].any()
        assert len(set(picked[row])) == k and (np.diff(own[picked[row]]) <= 1e-6 * size).all()
        np.testing.assert_allclose(flat[2][row], flat[1][row][picked[row]], atol=2e-3, rtol=1e-2)
        readout = oracle.rows((patterns if values is None else values).double())
        reach = np.abs(readout).max() + np.finfo(float).tiny
        np.testing.assert_allclose(flat[3][row] / reach, flat[1][row] @ readout / reach, atol=2 * DTYPES[dtype] + 2e-3)
        # Where patterns are not nearly tied, the first choice is the oracle's.
        allowed = np.where(ruled_out, -np.inf, exact)
        second = np.sort(allowed)[-2] if case["patterns"] > 1 else -math.inf
        if allowed.max() - second > 4 * slack:
            assert picked[row][0] == allowed.argmax()


@settings(max_examples=120)
@given(cases())
def test_memories_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=7000)
@given(cases())
def test_many_memories_say_what_their_equations_say(case):
    check(case)


@st.composite
def binary_cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "patterns": draw(st.integers(1, 12)),
        "dim": draw(st.integers(1, 24)),
        "name": draw(st.sampled_from(["hop", "d-hop", "e-hop"])),
        "k": draw(st.integers(1, 9)),
        "masked": draw(st.booleans()),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16])),
    }


def check_binary(case):
    random = np.random.default_rng(case["seed"])
    patterns = random.choice([-1.0, 1.0], size=(case["patterns"], case["dim"]))
    queries = random.choice([-1.0, 1.0], size=(4, case["dim"]))
    mask = random.random(queries.shape) < 0.7 if case["masked"] else np.ones(queries.shape, bool)
    options = {"k": case["k"]} if case["name"] == "d-hop" else {}
    memory = ahop.create(case["name"], torch.as_tensor(patterns).to(case["dtype"]), **options)
    answer = oracle.rows(memory.retrieve(queries, observed=torch.as_tensor(mask)).double())
    assert set(np.unique(answer)) <= {-1.0, 1.0}
    overlaps = (queries * mask) @ patterns.T
    if case["name"] == "hop":
        weights = overlaps
    elif case["name"] == "d-hop":
        weights = overlaps ** case["k"]
    else:
        weights = np.exp(overlaps - overlaps.max(1, keepdims=True))
    drive = weights @ patterns
    clear = np.abs(drive) > 1e-3 * np.abs(weights).sum(1, keepdims=True)
    assert (answer[clear] == np.sign(drive)[clear]).all()
    if case["name"] == "hop":
        gone = ahop.ClassicalHopfield(patterns, update="asynchronous", seed=case["seed"])
        settled = oracle.rows(gone.retrieve(queries, steps=2, observed=torch.as_tensor(mask)))
        assert set(np.unique(settled)) <= {-1.0, 1.0}


@settings(max_examples=40)
@given(binary_cases())
def test_binary_networks_follow_the_sign_of_their_drive(case):
    check_binary(case)


@pytest.mark.slow
@settings(max_examples=1000)
@given(binary_cases())
def test_many_binary_networks_follow_the_sign_of_their_drive(case):
    check_binary(case)
