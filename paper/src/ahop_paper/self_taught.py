"""Baselines that teach themselves: their own answers stand for the pairs that nobody has, and both take turns."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ahop.similarity.families.moved.turns import nearest_rotation
from ahop_paper.baselines import METRICS, Compared, centred, csls, orthogonal

# How often both take turns, at most; answers that stay as they are end it before.
_TURNS = 20
# Of Artetxe and others (2018): items that make a start, neighbours by which hubness is measured, the share of
# pairs that a turn keeps at first and how it grows, by which least gain, after how many turns without one.
_START, _NEIGHBOURS = 4000, 10
_KEPT, _GROWTH, _GAIN, _PATIENCE = 0.1, 2.0, 1e-6, 10


def projected(patterns: Tensor, queries: Tensor, count: int, metric: str) -> Compared:
    """Orthogonal projection without pairs: nearest patterns around both means make them, and then its own answers.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d)``.
        count: The number of directions to project out.
        metric: A name of ``METRICS``.

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
    """The rotation that turns end in (:func:`_turned`), and cosines.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d)``.
        seed: Seed of what is drawn.
    """
    rotation, _ = _turned(_unit(patterns.float()), _unit(queries.float()), seed)
    found = centred(patterns, queries, "cosine")
    return found._replace(move=lambda asked: found.move(asked) @ rotation.double())


def translated(patterns: Tensor, queries: Tensor, seed: int) -> Compared:
    """Self-learning of a map between spaces without pairs (Artetxe, Labaka and Agirre, 2018): what :func:`mapped`
    finds, corrected for hubness.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d')``.
        seed: Seed of what is drawn.
    """
    return csls(mapped(patterns, queries, seed), queries, count=_NEIGHBOURS)


def mapped(patterns: Tensor, queries: Tensor, seed: int, first: tuple[Tensor, Tensor] | None = None) -> Compared:
    """Both sides in one space, by cosines; after the turns, directions in which pairs agree count for more.

    They take all pairs of the last turn; those that choose each other find more where the sides have unlike sizes.

    Args:
        patterns, queries: ``(N, d)`` and ``(n, d')``.
        seed: Seed of what is drawn.
        first: Rows of queries and patterns that are known to be pairs, to begin with (Artetxe's semi-supervised way).
    """
    stored, asked = _unit(patterns.float()), _unit(queries.float())
    _, pairs = _turned(stored, asked, seed, first)
    of_queries, of_patterns = _weighed(*_mutual(asked, stored, *pairs))
    centre = queries.double().mean(0)

    def move(rows: Tensor) -> Tensor:
        return nn.functional.normalize(rows.double() - centre) @ of_queries

    return Compared(_unit(patterns.double()) @ of_patterns, move, METRICS["cosine"])


def _turned(
    stored: Tensor, asked: Tensor, seed: int, first: tuple[Tensor, Tensor] | None = None
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """A rotation, and the pairs that it is nearest to.

    Unless they are given, items whose sorted similarities to their own side are alike are the first pairs. Then
    turns: the rotation nearest to the pairs, and for each item of both sides the nearest of the other, corrected for
    hubness. A turn looks only at some pairs, at random, and at ever more of them as turns stop to gain.
    """
    generator = torch.Generator(stored.device).manual_seed(seed)
    pairs = _first_pairs(stored, asked, generator) if first is None else first
    kept, best, waited = _KEPT, -1.0, 0
    while True:
        rotation = nearest_rotation(asked[pairs[0]].T @ stored[pairs[1]])
        if waited > _PATIENCE:
            if kept == 1:
                return rotation, pairs
            kept, waited = min(1.0, _GROWTH * kept), 0
        scores = asked @ rotation @ stored.T
        gain = float(scores.amax(1).mean() + scores.amax(0).mean())
        best, waited = (gain, 0) if gain > best + _GAIN else (best, waited + 1)
        pairs = _pairs(scores, kept, generator)


def _mutual(asked: Tensor, stored: Tensor, mine: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """Items of the pairs that stand there twice, since each side chose the other; all, where there are too few."""
    both = mine * len(stored) + theirs
    once, counts = both.unique(return_counts=True)
    if int((counts > 1).sum()) > max(asked.shape[1], stored.shape[1]):
        both = once[counts > 1]
    return asked[both // len(stored)].double(), stored[both % len(stored)].double()


def _weighed(queries: Tensor, patterns: Tensor) -> tuple[Tensor, Tensor]:
    """Maps of both sides into one space: whitened, turned, weighed by roots of correlations, and unwhitened."""
    (white, back), (whiten, unwhiten) = _whitening(queries), _whitening(patterns)
    left, values, right = torch.linalg.svd((queries @ white).T @ (patterns @ whiten), full_matrices=False)
    roots, right = values.sqrt(), right.T
    return (
        white @ left * roots @ left.T @ back @ left,
        whiten @ right * roots @ right.T @ unwhiten @ right,
    )


def _whitening(rows: Tensor) -> tuple[Tensor, Tensor]:
    """What makes the second moments of rows all alike, and what undoes it."""
    _, values, right = torch.linalg.svd(rows, full_matrices=False)
    values = values.clamp_min(1e-6 * float(values[0]))
    return right.T / values @ right, right.T * values @ right


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
    hubness = [
        scores.topk(min(_NEIGHBOURS, scores.shape[side]), side).values.mean(side, keepdim=True) for side in (0, 1)
    ]
    scores = 2 * scores - hubness[0] - hubness[1]
    if kept < 1:
        unseen = torch.rand(scores.shape, generator=generator, device=scores.device) >= kept
        scores = scores.masked_fill(unseen, -torch.inf)
    queries, patterns = (torch.arange(size, device=scores.device) for size in scores.shape)
    return torch.cat([queries, scores.argmax(0)]), torch.cat([scores.argmax(1), patterns])
