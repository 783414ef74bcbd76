"""An index whose codes are exact against exact scores: places of patterns, priors, growth."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

import ahop
from ahop.similarity import Correlated, Moved
from ahop.similarity.codes import NoCodesError


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "kind": draw(st.sampled_from(["correlated", "moved"])),
        "tails": draw(st.sampled_from([4.0, float("inf")])),
        "patterns": draw(st.integers(2, 300)),
        "dim": draw(st.integers(1, 8)),
        "place": draw(st.sampled_from(oracle.PLACES)),
        "prior": draw(st.booleans()),
        "grown": draw(st.booleans()),
    }


def likelihood_of(case, random):
    dim, turn = case["dim"], torch.as_tensor(random.normal(size=(case["dim"], case["dim"]))).float()
    if case["kind"] == "moved":
        return Moved.around(turn, turn[0], 0.1 * torch.eye(dim), case["tails"], 0.5)
    part = Correlated(dim, min(2, dim), tails=case["tails"])
    with torch.no_grad():
        part.loading.copy_(turn[:, : part.rank])
        part.log_psi.fill_(-2.0)
    return part


def check(case):
    random = np.random.default_rng(case["seed"])
    patterns, queries = oracle.lay(case["place"], random, case["patterns"], (6,), case["dim"])
    patterns, queries = torch.as_tensor(patterns).float(), torch.as_tensor(queries).float()
    prior = torch.as_tensor(random.integers(1, 9, len(patterns))).float() if case["prior"] else None
    part = likelihood_of(case, random)
    first = len(patterns) // 2 if case["grown"] else len(patterns)
    memory = ahop.BayesianHopfield(patterns[:first], similarity=part, prior=None if prior is None else prior[:first])
    try:
        index = memory.index()
        if case["grown"]:
            memory.add(patterns[first:], prior=None if prior is None else prior[first:])
        found = index.recall(queries, candidates=20)
    except NoCodesError:
        assert float(patterns.max() - patterns.min()) > 1e5
        return
    with torch.no_grad():
        exact = part.double()(patterns.double(), queries.double())
    exact = exact if prior is None else exact + (prior / prior.sum()).double().log()
    chosen = exact.gather(1, found.indices)
    best = exact.amax(1, keepdim=True)
    assert (chosen >= best - 0.01 - 1e-5 * best.abs()).all()
    likely = torch.softmax(exact, 1).gather(1, found.indices)
    sure = best.squeeze(1).abs() < 1e4
    torch.testing.assert_close(found.probabilities[sure].double(), likely[sure], atol=0.1, rtol=0.1)


@settings(max_examples=25)
@given(cases())
def test_an_index_finds_what_exact_scores_find(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=600)
@given(cases())
def test_an_index_finds_what_exact_scores_find_in_many_cases(case):
    check(case)
