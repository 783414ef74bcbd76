"""Layers that learn nothing against the oracle: rows are compared as they lie, in awkward places too."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

from ahop.nn import Hopfield


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "stored": draw(st.integers(1, 40)),
        "states": draw(st.integers(1, 5)),
        "dim": draw(st.integers(1, 8)),
        "similarity": draw(st.sampled_from(["dot", "distance", "euclidean", "manhattan", "cosine"])),
        "place": draw(st.sampled_from(oracle.PLACES)),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64])),
    }


def check(case):
    random = np.random.default_rng(case["seed"])
    rows = [oracle.lay(case["place"], random, case["stored"], (case["states"],), case["dim"]) for _ in range(2)]
    stored, states = (torch.as_tensor(np.stack(side)).to(case["dtype"]) for side in zip(*rows, strict=True))
    layer = Hopfield(similarity=case["similarity"]).to(case["dtype"])
    rows = [side.requires_grad_() for side in (stored, states)]
    weights = layer.get_association_matrix((*rows, stored.detach()))
    for gradient in torch.autograd.grad(weights.square().sum(), rows):
        assert torch.isfinite(gradient).all()
    for keys, asked, found in zip(*(oracle.rows(t.detach()) for t in (*rows, weights.squeeze(1))), strict=True):
        for query, own in zip(asked, found, strict=True):
            seen = np.ones(len(query), bool)
            exact = oracle.similarity(case["similarity"], keys, query, seen)
            # A layer has the digits of its type: where logits are large, they tell no finer.
            blur = oracle.sizes(case["similarity"], keys, query, seen)[exact.argmax()]
            blur *= 1e-3 if case["dtype"] == torch.float32 else 1e-8
            if blur < 0.1:
                np.testing.assert_allclose(own, oracle.softmax(exact), atol=1e-4 + 2 * blur)


@settings(max_examples=60)
@given(cases())
def test_plain_layers_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=1500)
@given(cases())
def test_many_plain_layers_say_what_their_equations_say(case):
    check(case)
