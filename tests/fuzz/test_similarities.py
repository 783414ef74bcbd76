"""Every similarity, called by itself, against its equation in float64: units, places, masks, many sets, gradients."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz import oracle

from ahop.similarity import Correlated, Mahalanobis, Moved, Precision, Similarity, Unified

PLAIN = ["dot", "distance", "euclidean", "manhattan", "cosine"]
LEARNED = ["unified", "precision", "mahalanobis", "correlated", "moved"]


@st.composite
def cases(draw):
    return {
        "seed": draw(st.integers(0, 10**6)),
        "name": draw(st.sampled_from(PLAIN + LEARNED)),
        "sets": draw(st.sampled_from([(), (1,), (2, 3)])),
        "patterns": draw(st.integers(1, 30)),
        "queries": draw(st.integers(0, 5)),
        "dim": draw(st.integers(1, 12)),
        "place": draw(st.sampled_from(oracle.PLACES)),
        # Squares of what is far away still fit float32.
        "scale": draw(st.sampled_from([1e-12, 1e-6, 1.0, 1.0, 1e6, 1e9])),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64])),
        "masked": draw(st.booleans()),
        "learning": draw(st.booleans()),
    }


def part_of(case, random):
    """The similarity, and its score of one query ``(N,)`` with how large its terms are ``(N,)``."""
    name, dim, scale = case["name"], case["dim"], case["scale"]
    drawn = {key: torch.as_tensor(random.normal(size=size)) for key, size in (("b", dim), ("turn", (dim, dim)))}
    if name in PLAIN:
        return Similarity.of(name), lambda *sides: (oracle.similarity(name, *sides), oracle.sizes(name, *sides))
    b, turn = scale * drawn["b"].float(), drawn["turn"].float()
    if name == "unified":

        def unified(patterns, query, seen):
            gaps, own = (query - patterns)[:, seen], oracle.rows(b)[seen]
            return (own * gaps - gaps**2).sum(1), (np.abs(own * gaps) + gaps**2).sum(1)

        return Unified(b), unified
    if name == "precision":
        sigma = scale * (0.5 + torch.as_tensor(random.random(dim)).float())

        def precise(patterns, query, seen):
            squares = (((patterns - query) / oracle.rows(sigma))[:, seen] ** 2).sum(1)
            return -squares, squares

        return Precision(sigma), precise
    if name == "mahalanobis":
        part = Mahalanobis(dim)
        part.bias.copy_(b)
        part.whitening.copy_(turn / scale)

        def whitened(patterns, query, seen):
            rows = (query - oracle.rows(part.bias) - patterns) @ oracle.rows(part.whitening)
            # Right to a thousandth of the noise.
            return -(rows**2).sum(1) / 2, (rows**2).sum(1) + 4

        return part, whitened
    return _density(name, dim, scale, b, turn)


def _density(name, dim, scale, b, turn):
    if name == "correlated":
        part = Correlated(dim, min(2, dim), tails=4.0)
        with torch.no_grad():
            part.bias.copy_(b)
            part.loading.copy_(scale * turn[:, : part.rank])
            part.log_psi.fill_(2 * np.log(0.3 * scale))
            part.gain.fill_(0.9)
    else:
        part = Moved.around(turn, b, scale**2 * (torch.eye(dim) + turn @ turn.mT), 4.0, 0.5)

    def likelihood(patterns, query, seen):
        value = {key: oracle.rows(parameter.detach()) for key, parameter in part.named_parameters()}
        if name == "correlated":
            gaps = query - value["gain"] * patterns - value["bias"]
            covariance = value["loading"] @ value["loading"].T + np.diag(np.exp(value["log_psi"]))
        else:
            gaps = query - patterns @ value["matrix"].T - value["bias"]
            factor = np.tril(value["log_factor"], -1) + np.diag(np.exp(np.diag(value["log_factor"])))
            covariance = factor @ factor.T
        gaps, covariance, count = gaps[:, seen], covariance[np.ix_(seen, seen)], int(seen.sum())
        # In units of its own, for the determinant not to vanish.
        squares = (gaps / scale * np.linalg.solve(covariance / scale**2, gaps.T / scale).T).sum(1)
        volume = np.linalg.slogdet(covariance / scale**2)[1] + 2 * count * np.log(scale)
        log = math.lgamma((4 + count) / 2) - math.lgamma(2) - count / 2 * np.log(4 * np.pi) - volume / 2
        scores = log - (4 + count) / 2 * np.log1p(squares / 4)
        return scores, np.abs(scores) + abs(log) + count + 1

    return part, likelihood


def check(case):
    random = np.random.default_rng(case["seed"])
    dtype, sets, count = case["dtype"], case["sets"], case["queries"]
    tables = [
        oracle.lay(case["place"], random, case["patterns"], (count,), case["dim"]) for _ in range(int(np.prod(sets)))
    ]
    patterns, queries = (
        torch.as_tensor(np.stack(rows) * case["scale"]).to(dtype).reshape(*sets, -1, case["dim"])
        for rows in zip(*tables, strict=True)
    )
    whole = not case["masked"] or case["name"] == "mahalanobis"
    seen = None if whole else torch.as_tensor(random.random(queries.shape) < 0.7)
    part, scored = part_of(case, random)
    part = part.to(dtype)
    sides = [side.requires_grad_(case["learning"]) for side in (patterns, queries)]
    with torch.set_grad_enabled(case["learning"]):
        found = part(*sides, seen)
    assert found.shape == (*sets, count, case["patterns"]) and found.dtype == dtype
    if case["learning"] and found.numel():
        for gradient in torch.autograd.grad(found.sum(), sides):
            assert torch.isfinite(gradient).all()
    close = 5e-4 if dtype == torch.float32 else 1e-8
    masks = torch.ones_like(queries, dtype=torch.bool) if seen is None else seen
    flat = [t.detach().double().flatten(0, -3).numpy() for t in (patterns[None], queries[None], found[None])]
    for stored, asked, table, shown in zip(*flat, masks[None].flatten(0, -3).numpy(), strict=True):
        for query, scores, mask in zip(asked, table, shown, strict=True):
            exact, terms = scored(stored, query, mask)
            assert (np.abs(scores - exact) <= close * terms + np.finfo(np.float32).tiny).all()


@settings(max_examples=100)
@given(cases())
def test_similarities_say_what_their_equations_say(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=4000)
@given(cases())
def test_many_similarities_say_what_their_equations_say(case):
    check(case)
