"""Binary networks against the oracle: their next state is the sign of their drive."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

import ahop


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "patterns": draw(st.integers(1, 12)),
        "dim": draw(st.integers(1, 24)),
        "name": draw(st.sampled_from(["hop", "d-hop", "e-hop"])),
        "k": draw(st.integers(1, 9)),
        "masked": draw(st.booleans()),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16])),
    }


def check(case):
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
@given(cases())
def test_binary_networks_follow_the_sign_of_their_drive(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=1000)
@given(cases())
def test_many_binary_networks_follow_the_sign_of_their_drive(case):
    check(case)
