"""Separations against the oracle: weights of scores of any size, in any precision, at any temperature."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

from ahop.separation import Separation


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "name": draw(st.sampled_from(["softmax", "sparsemax", "entmax", "argmax", "exponential"])),
        "beta": draw(st.sampled_from([1e-12, 1e-3, 1.0, 30.0, 1e12])),
        "shape": draw(st.sampled_from([(1,), (7,), (3, 40), (2, 3, 5), (0, 4)])),
        "scale": draw(st.sampled_from([1e-20, 1e-12, 1.0, 1.0, 1e6, 1e12, 1e18])),
        "offset": draw(st.sampled_from([0.0, 0.0, -1e4, 1e8])),
        "ties": draw(st.booleans()),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64])),
    }


def check(case):
    random = np.random.default_rng(case["seed"])
    alpha = float(random.uniform(1.1, 2.0))
    options = {"entmax": {"alpha": alpha, "beta": case["beta"]}, "argmax": {}, "exponential": {}}
    separation = Separation.of(case["name"], **options.get(case["name"], {"beta": case["beta"]})).to(case["dtype"])
    drawn = random.normal(size=case["shape"])
    drawn = drawn.round() if case["ties"] else drawn
    scores = torch.as_tensor((drawn + case["offset"]) * case["scale"]).to(case["dtype"]).requires_grad_()
    weights, conjugate = separation(scores), separation.conjugate(scores)
    likely = separation.probabilities(scores.detach())
    assert weights.shape == scores.shape and conjugate.shape == scores.shape[:-1]
    assert weights.dtype == scores.dtype
    if not scores.numel():
        return
    assert torch.isfinite(conjugate).all()
    (slope,) = torch.autograd.grad(conjugate.sum(), scores)
    assert torch.isfinite(slope).all()
    beta = float(separation.inverse_temperature)
    rows = [oracle.rows(t.detach()).reshape(-1, case["shape"][-1]) for t in (scores, weights, likely, slope)]
    for own, found, chances, steps in zip(*rows, strict=True):
        exact = oracle.separate(case["name"], own, beta, alpha)
        np.testing.assert_allclose(found.sum(), 1.0, atol=1e-5)
        if case["name"] == "argmax":
            assert found[own.argmax()] == 1 or own[found.argmax()] == own.max()
            continue
        np.testing.assert_allclose(found, exact, atol=1e-4)
        np.testing.assert_allclose(chances, exact, atol=1e-3)
        # The weights are the slope of the conjugate; at the edge of the support, rounding decides who is in it.
        if not ((exact > 0) & (exact < 1e-5)).any():
            np.testing.assert_allclose(steps, exact, atol=1e-3)


@settings(max_examples=80)
@given(cases())
def test_separations_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=3000)
@given(cases())
def test_many_separations_say_what_their_equations_say(case):
    check(case)
