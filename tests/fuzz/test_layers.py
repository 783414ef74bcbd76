"""Hopfield layers against the oracle: sizes, heads, similarities, masks, batches and steps drawn at random."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

from ahop.nn import Hopfield, HopfieldLayer, HopfieldPooling


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "batch": draw(st.integers(1, 3)),
        "stored": draw(st.integers(1, 7)),
        "states": draw(st.integers(1, 5)),
        "heads": draw(st.integers(1, 3)),
        "hidden": draw(st.integers(1, 6)),
        "similarity": draw(st.sampled_from(["dot", "distance", "euclidean", "manhattan", "cosine"])),
        "scaling": draw(st.sampled_from([None, 0.2, 30.0])),
        "padding": draw(st.booleans()),
        "association": draw(st.sampled_from([None, "blocked", "added"])),
        "normalised": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64])),
        "kind": draw(st.sampled_from(["hopfield", "lookup", "pooling"])),
    }


def side(part, x):
    """Into the heads: normalised, projected, cut up; (B, n, width) to (B, heads, n, d)."""
    if part.norm is not None:
        x = oracle.layer_norm(x, oracle.rows(part.norm.weight.detach()), oracle.rows(part.norm.bias.detach()))
    bias = 0.0 if part.linear.bias is None else oracle.rows(part.linear.bias.detach())
    projected = x @ oracle.rows(part.linear.weight.detach()).T + bias
    return projected.reshape(*projected.shape[:2], part.heads, -1).swapaxes(1, 2)


def check(case):
    random = np.random.default_rng(case["seed"])
    torch.manual_seed(case["seed"])
    width, batch, stored, states = 6, case["batch"], case["stored"], case["states"]
    options = {
        "hidden_size": case["hidden"],
        "num_heads": case["heads"],
        "scaling": case["scaling"],
        "similarity": case["similarity"],
        "normalize_stored_pattern": case["normalised"],
        "input_bias": case["bias"],
    }
    keys, queries = random.normal(size=(batch, stored, width)), random.normal(size=(batch, states, width))
    if case["kind"] == "hopfield":
        layer, given_ = Hopfield(width, **options), None
        values = random.normal(size=(batch, stored, width))
    elif case["kind"] == "lookup":
        layer = HopfieldLayer(width, quantity=stored, **options)
        given_, case = queries, {**case, "padding": False}
    else:
        layer = HopfieldPooling(width, quantity=states, **options)
        given_ = keys
    layer = layer.to(case["dtype"])
    if case["kind"] == "lookup":
        keys, values = (
            np.broadcast_to(oracle.rows(table.detach()), (batch, stored, width))
            for table in (layer.stored_patterns, layer.targets)
        )
    if case["kind"] == "pooling":
        values, queries = keys, np.broadcast_to(oracle.rows(layer.states.detach()), (batch, states, width))
    hidden = np.zeros((batch, case["heads"], states, stored), bool)
    added = np.zeros(hidden.shape)
    masks = {}
    if case["padding"]:
        padding = random.random((batch, stored)) < 0.3
        hidden |= padding[:, None, None]
        masks["stored_pattern_padding_mask"] = torch.as_tensor(padding)
    if case["association"]:
        table = random.normal(size=(states, stored))
        masks["association_mask"] = torch.as_tensor(table > 0.7 if case["association"] == "blocked" else table)
        if case["association"] == "blocked":
            hidden |= table > 0.7
        else:
            added += table
            masks["association_mask"] = masks["association_mask"].to(case["dtype"])
    inputs = (keys, queries, values) if given_ is None else given_
    as_given = tuple(torch.as_tensor(x).to(case["dtype"]) for x in inputs) if given_ is None else None
    with torch.no_grad():
        answer = layer(as_given or torch.as_tensor(given_).to(case["dtype"]), **masks)

    usual = 10.0 if case["similarity"] == "cosine" else case["hidden"] ** -0.5
    beta = usual if case["scaling"] is None else case["scaling"]
    parts = (layer.stored, layer.state, layer.projection)
    sides = [side(part, x) for part, x in zip(parts, (keys, queries, values), strict=True)]
    expected = np.zeros((batch, states, width))
    for sample in range(batch):
        read = [
            oracle.head(*(s[sample, h] for s in sides), beta, case["similarity"], hidden[sample, h], added[sample, h])
            for h in range(case["heads"])
        ]
        out = layer.out_projection
        expected[sample] = np.concatenate(read, 1) @ oracle.rows(out.weight.detach()).T
        if out.bias is not None:
            expected[sample] += oracle.rows(out.bias.detach())
        expected[sample][hidden[sample].all((0, 2))] = 0.0
    if case["kind"] == "pooling":
        expected = expected.reshape(batch, -1)
    close = 1e-7 if case["dtype"] == torch.float64 else 2e-3
    np.testing.assert_allclose(oracle.rows(answer), expected, atol=close, rtol=close)


@settings(max_examples=60)
@given(cases())
def test_layers_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=1500)
@given(cases())
def test_many_layers_say_what_their_equations_say(case):
    check(case)
