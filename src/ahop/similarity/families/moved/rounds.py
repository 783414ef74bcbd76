"""Learn a bent map where few origins are known, or none: a rotation first, then rounds of pairs and maps.

In each round the pairs that are believed make a map, and every query is judged by one that has not learned from its own
part of the queries, so that wrong pairs cannot confirm themselves. No pattern may take more queries than its share:
what it takes too much of counts for less. Pairs that are then more likely than not are believed; known ones always are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.families.calibration import HeldOutLabels
from ahop.similarity.families.moved import bending
from ahop.similarity.families.moved.alignment import Alignment, align
from ahop.similarity.families.moved.bent import Bent
from ahop.similarity.families.moved.learning import fit_pairs
from ahop.similarity.families.moved.turns import directions, nearest

_ROUNDS, _FOLDS = 3, 4
# The shape that suits most labelled pairs of models. Pairs that are believed are the easier ones, and would choose one
# that is too smooth.
_SHAPE = bending.Shape(0.8, 0.3)
# Candidates of each query that share in it, steps that share patterns out, and how likely a pair must be.
_CANDIDATES, _STEPS, _MIN_PAIR_PROBABILITY = 64, 30, 0.5
# Queries of a fold that weigh the views, and known pairs that are enough to weigh them alone.
_JUDGED, _ENOUGH_PAIRS = 512, 100


class SelfLearned(NamedTuple):
    """A map, the rotation that it began with, how often it should be right by its own word, and by the known origins
    that maps were asked for which had not learned from them; None where too few are known."""

    model: Bent
    start: Alignment
    expected: float
    judged: HeldOutLabels | None = None


class _Believed(NamedTuple):
    """Queries ``(m,)`` whose origins ``(m,)`` are believed, and all queries' likeliest ones ``(n,)`` with how sure."""

    rows: Tensor
    origins: Tensor
    first: Tensor
    sure: Tensor


@torch.no_grad()
def learn(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int = 0) -> SelfLearned:
    """The map from patterns to queries of which some origins are known, or none.

    Where no rotation is better than chance, nothing was found: all patterns are then as likely for any query.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``, -1 where unknown.
        seed: Seed of what is drawn.
    """
    start = align(patterns, queries, origins, seed)
    if not start.found:
        return SelfLearned(_nothing(patterns, queries), start, float("nan"))
    rotated = directions(queries) @ start.rotation
    believed = _mutual(directions(patterns), rotated, origins)
    for number in range(_ROUNDS):
        if len(believed.rows) < bending.FEWEST:
            return SelfLearned(_nothing(patterns, queries), replace(start, found=False), float("nan"))
        used = believed
        pairs, weights, believed = _round(patterns, queries, origins, used, seed + number)
    model = pairs.every(weights)
    model.straight = fit_pairs(patterns, queries[used.rows], used.origins, seed)
    known = origins >= 0
    judged = HeldOutLabels.by(believed.first[known] == origins[known], origins[known])
    return SelfLearned(model, start, float(believed.sure.mean()), judged)


def _nothing(patterns: Tensor, queries: Tensor) -> Bent:
    """A map that tells nothing: every score is nought."""
    bent = Bent(patterns.shape[1], queries.shape[1]).to(patterns)
    bent.weights.data.zero_()
    return bent


def _mutual(stored: Tensor, asked: Tensor, origins: Tensor) -> _Believed:
    """Queries and patterns that choose each other by a rotation alone; the known ones stay."""
    first = nearest(asked, stored)
    chosen = nearest(stored, asked)[first] == torch.arange(len(asked), device=asked.device)
    return _pinned(first, chosen, torch.ones_like(asked[:, 0]), origins)


def _pinned(first: Tensor, chosen: Tensor, sure: Tensor, origins: Tensor) -> _Believed:
    known = origins >= 0
    rows = (chosen | known).nonzero().squeeze(1)
    return _Believed(rows, torch.where(known, origins, first)[rows], first, sure)


def _round(
    patterns: Tensor, queries: Tensor, origins: Tensor, believed: _Believed, seed: int
) -> tuple[bending.Pairs, Tensor, _Believed]:
    """The pairs that are believed, weights of their views, and what maps without a part of the queries then believe of
    that part."""
    rows, own = believed.rows, believed.origins
    pairs = bending.Pairs.of(patterns, queries[rows], own, seed, _SHAPE)
    # A part is of origins: queries of one pattern are judged by the same map.
    part = torch.randint(_FOLDS, (len(patterns),), generator=torch.Generator().manual_seed(seed)).to(own.device)
    known = origins[rows] >= 0
    judges = rows[known] if int(known.sum()) >= _ENOUGH_PAIRS else rows
    own_of = torch.full_like(origins, -1).index_copy(0, rows, own)
    folds = []
    for number in range(_FOLDS):
        some = judges[part[own_of[judges]] == number][:_JUDGED]
        folds.append((queries[some], own_of[some]))
    weights = bending.weigh(pairs, [fold for fold in folds if len(fold[0])], seed).weights
    # Queries that nobody believes anything of may be in any part.
    side = torch.where(own_of >= 0, part[own_of], torch.arange(len(queries), device=own.device) % _FOLDS)
    scores = patterns.new_empty(len(queries), min(_CANDIDATES, len(patterns)))
    places = torch.empty_like(scores, dtype=torch.long)
    for number in range(_FOLDS):
        left_out = (part[pairs.origins] == number).nonzero().squeeze(1)
        model, here = pairs.model(left_out, weights), (side == number).nonzero().squeeze(1)
        for block in split(len(here), 4 * len(patterns) * queries.element_size()):
            best = model(patterns, queries[here[block]]).topk(scores.shape[1], 1)
            scores[here[block]], places[here[block]] = best.values, best.indices
    return pairs, weights, _shared(scores, places, len(patterns), origins)


def _shared(scores: Tensor, places: Tensor, count: int, origins: Tensor) -> _Believed:
    """What is believed if no pattern takes more than its share of the queries."""
    plain = torch.softmax(scores, 1)
    room, taken = max(1.0, len(scores) / count), scores.new_zeros(count)
    for _ in range(_STEPS):
        shares = torch.softmax(scores - taken[places], 1)
        sums = torch.zeros_like(taken).index_add_(0, places.flatten(), shares.flatten())
        taken = taken + (sums / room).clamp_min(1).log()
    shares, best = torch.softmax(scores - taken[places], 1).max(1)
    first = places.gather(1, best[:, None]).squeeze(1)
    sure, alone = plain.max(1)
    kept = _pinned(first, shares > _MIN_PAIR_PROBABILITY, sure, origins)
    return kept._replace(first=places.gather(1, alone[:, None]).squeeze(1))
