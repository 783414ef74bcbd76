"""Baselines that teach themselves: their own answers stand for the pairs that nobody has, and both take turns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ahop.learning.corruption.alignment import nearest_rotation
from ahop.paper.baselines import METRICS, Compared, centred, orthogonal

# How often both take turns, at most; answers that stay as they are end it before.
_TURNS = 20
# Of Artetxe and others (2018): items that make a start, neighbours that say how crowded a place is, the share of
# pairs that a turn keeps at first and how it grows, by which least gain, after how many turns without one.
_START, _NEIGHBOURS = 4000, 10
_KEPT, _GROWTH, _GAIN, _PATIENCE = 0.1, 2.0, 1e-6, 10


def projected(patterns: Tensor, queries: Tensor, count: int, metric: str) -> Compared:
    """Orthogonal projection without pairs: nearest patterns around both means make them, and then its own answers.

    Example:
        >>> patterns = torch.eye(6).double()
        >>> queries = patterns.roll(1, 0) + torch.tensor([5.0, 0, 0, 0, 0, 0])
        >>> projected(patterns, queries, 1, "L1").first(queries)
        tensor([5, 0, 1, 2, 3, 4])
    """
    patterns, queries = patterns.double(), queries.double()
    found = centred(patterns, queries, metric)
    answers = found.first(queries)
    for _ in range(_TURNS):
        found = orthogonal(patterns, queries, answers, count, metric)
        before, answers = answers, found.first(queries)
        if torch.equal(before, answers):
            break
    return found


def rotated(patterns: Tensor, queries: Tensor, seed: int) -> Compared:
    """Self-learning of a rotation between spaces without pairs (Artetxe, Labaka and Agirre, 2018).

    Items whose sorted similarities to their own side are alike are the first pairs. Then turns: the rotation nearest
    to the pairs, and for each item of both sides the nearest of the other, crowded places counting for less. A turn
    looks only at some pairs, at random, and at ever more of them as turns stop to gain.
    """
    generator = torch.Generator(patterns.device).manual_seed(seed)
    stored, asked = _unit(patterns.float()), _unit(queries.float())
    pairs = _first_pairs(stored, asked, generator)
    kept, best, waited = _KEPT, -1.0, 0
    while True:
        rotation = nearest_rotation(asked[pairs[0]].T @ stored[pairs[1]])
        if waited > _PATIENCE:
            if kept == 1:
                break
            kept, waited = min(1.0, _GROWTH * kept), 0
        scores = asked @ rotation @ stored.T
        gain = float(scores.amax(1).mean() + scores.amax(0).mean())
        best, waited = (gain, 0) if gain > best + _GAIN else (best, waited + 1)
        pairs = _pairs(scores, kept, generator)
    centre, turn = queries.double().mean(0), rotation.double()
    return Compared(
        patterns.double() - patterns.double().mean(0), lambda rows: (rows - centre) @ turn, METRICS["cosine"]
    )


def _unit(rows: Tensor) -> Tensor:
    return nn.functional.normalize(rows - rows.mean(0))


def _first_pairs(stored: Tensor, asked: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pairs of some items of both sides, by fingerprints that no rotation changes."""
    count = min(len(stored), len(asked), _START)
    some = [torch.randperm(len(side), generator=generator, device=side.device)[:count] for side in (asked, stored)]
    prints = [_unit(_root(side[rows]).sort(1).values) for side, rows in zip((asked, stored), some, strict=True)]
    mine, theirs = _pairs(prints[0] @ prints[1].T, 1.0, generator)
    return some[0][mine], some[1][theirs]


def _root(rows: Tensor) -> Tensor:
    """The square root of the matrix of similarities, which tells items apart better than the similarities do."""
    left, values, _ = torch.linalg.svd(rows, full_matrices=False)
    return left * values @ left.T


def _pairs(scores: Tensor, kept: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """For each item of both sides the nearest of the other, of the scores ``(n, N)`` that are looked at."""
    crowded = [
        scores.topk(min(_NEIGHBOURS, scores.shape[side]), side).values.mean(side, keepdim=True) for side in (0, 1)
    ]
    scores = 2 * scores - crowded[0] - crowded[1]
    if kept < 1:
        unseen = torch.rand(scores.shape, generator=generator, device=scores.device) >= kept
        scores = scores.masked_fill(unseen, -torch.inf)
    queries, patterns = (torch.arange(size, device=scores.device) for size in scores.shape)
    return torch.cat([queries, scores.argmax(0)]), torch.cat([scores.argmax(1), patterns])
