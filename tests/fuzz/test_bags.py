"""Networks of bags against the oracle: an embedding, a pooling of every bag, a head."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle
from tests.fuzz.test_layers import side

from ahop.nn import BagNetwork, HopfieldPooling, pad


@st.composite
def cases(draw):
    return {"seed": draw(st.integers(0, 10**6)), "sizes": draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))}


def check(case):
    torch.manual_seed(case["seed"])
    random = np.random.default_rng(case["seed"])
    network = BagNetwork(4, HopfieldPooling(8, num_heads=2), width=8).double().eval()
    bags = [random.normal(size=(size, 4)) for size in case["sizes"]]
    with torch.no_grad():
        answer = oracle.rows(network(*pad(bags)))
    first, norm = network.embedding[0], network.embedding[1]
    pooling = network.pooling
    for place, bag in enumerate(bags):
        x = bag @ oracle.rows(first.weight.detach()).T + oracle.rows(first.bias.detach())
        x = np.maximum(oracle.layer_norm(x, oracle.rows(norm.weight.detach()), oracle.rows(norm.bias.detach())), 0)
        state = oracle.rows(pooling.states.detach())
        sides = [
            side(part, rows[None])[0]
            for part, rows in zip((pooling.stored, pooling.state, pooling.projection), (x, state, x), strict=True)
        ]
        shape = (len(state), len(x))
        read = [
            oracle.head(*(s[h] for s in sides), 4**-0.5, "dot", np.zeros(shape, bool), np.zeros(shape))
            for h in range(2)
        ]
        pooled = np.concatenate(read, 1) @ oracle.rows(pooling.out_projection.weight.detach()).T
        pooled = (pooled + oracle.rows(pooling.out_projection.bias.detach())).reshape(-1)
        told = oracle.rows(network.head.weight.detach()) @ pooled + oracle.rows(network.head.bias.detach())
        np.testing.assert_allclose(answer[place], told, atol=1e-8)


@settings(max_examples=20)
@given(cases())
def test_bags_are_pooled_as_the_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=300)
@given(cases())
def test_many_bags_are_pooled_as_the_equations_say(case):
    check(case)
