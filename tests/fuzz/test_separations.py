"""Separations against the oracle: weights of scores of any size, in any precision, at any temperature."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

from ahop.separation import Separation

NAMES = ["softmax", "sparsemax", "entmax", "normmax", "ksubsets", "epanechnikov", "argmax", "exponential"]


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "name": draw(st.sampled_from(NAMES)),
        "beta": draw(st.sampled_from([1e-12, 1e-3, 1.0, 30.0, 1e12])),
        "shape": draw(st.sampled_from([(1,), (7,), (3, 40), (2, 3, 5), (0, 4)])),
        "scale": draw(st.sampled_from([1e-20, 1e-12, 1.0, 1.0, 1e6, 1e12, 1e18])),
        "offset": draw(st.sampled_from([0.0, 0.0, -1e4, 1e8])),
        "ties": draw(st.booleans()),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64])),
    }


def check(case):
    random = np.random.default_rng(case["seed"])
    beta = {"beta": case["beta"]}
    options = {
        "entmax": {"alpha": float(random.uniform(1.1, 2.0)), **beta},
        "normmax": {"alpha": float(random.uniform(1.1, 5.0)), **beta},
        "ksubsets": {"k": int(random.integers(1, case["shape"][-1] + 1)), **beta},
        "argmax": {},
        "exponential": {},
    }.get(case["name"], beta)
    separation = Separation.of(case["name"], **options).to(case["dtype"])
    drawn = random.normal(size=case["shape"])
    drawn = drawn.round() if case["ties"] else drawn
    drawn = (drawn + case["offset"]) * case["scale"]
    # A reach is one of distances.
    drawn = -np.abs(drawn) if case["name"] == "epanechnikov" else drawn
    scores = torch.as_tensor(drawn).to(case["dtype"]).requires_grad_()
    weights, conjugate = separation(scores), separation.conjugate(scores)
    likely = separation.probabilities(scores.detach())
    assert weights.shape == scores.shape and conjugate.shape == scores.shape[:-1]
    assert weights.dtype == scores.dtype
    if not scores.numel():
        return
    assert torch.isfinite(conjugate).all()
    (slope,) = torch.autograd.grad(conjugate.sum(), scores)
    assert torch.isfinite(slope).all()
    beta, extra = float(separation.inverse_temperature), options.get("alpha", options.get("k"))
    rows = [oracle.rows(t.detach()).reshape(-1, case["shape"][-1]) for t in (scores, weights, likely, slope)]
    for own, found, chances, steps in zip(*rows, strict=True):
        exact = oracle.separate(case["name"], own, beta, extra)
        if case["name"] == "epanechnikov":
            heights = np.maximum(1 + beta / 2 * own, 0)
            np.testing.assert_allclose(chances * heights.sum(), heights, atol=1e-3)
            # At the edge of a reach, rounding decides who is in it.
            if not (np.abs(1 + beta / 2 * own) < 1e-5).any():
                np.testing.assert_allclose(found, exact, atol=1e-6)
                np.testing.assert_allclose(steps / max(steps.sum(), 1e-30), exact, atol=1e-6)
            continue
        np.testing.assert_allclose(found.sum(), separation.total, rtol=1e-5)
        if case["name"] == "argmax":
            assert found[own.argmax()] == 1 or own[found.argmax()] == own.max()
            continue
        # Weights of normmax are roots: rounding moves small ones by more than it moves what they are roots of.
        np.testing.assert_allclose(found, exact, atol=5e-3 if case["name"] == "normmax" else 1e-4)
        np.testing.assert_allclose(chances, exact, atol=5e-3 if case["name"] == "normmax" else 1e-3)
        # The weights are the slope of the conjugate; at the edge of the support, rounding decides who is in it.
        if not ((exact > 0) & (exact < 1e-5)).any():
            np.testing.assert_allclose(steps, exact, atol=5e-3 if case["name"] == "normmax" else 1e-3)


@settings(max_examples=80)
@given(cases())
def test_separations_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=3000)
@given(cases())
def test_many_separations_say_what_their_equations_say(case):
    check(case)
