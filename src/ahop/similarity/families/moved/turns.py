"""Take turns between the rotation nearest to pairs and new pairs that choose each other (Artetxe, Labaka and Agirre,
2018), corrected for hubness by cross-domain similarity local scaling (CSLS: Conneau and others, 2018).

At first a turn sees random parts of the scores alone, which leads out of poor optima.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from ahop._blocks import parts_of

# Neighbours by which hubness is measured.
_HUB_NEIGHBOURS = 10
# Turns without a gain before they see twice as much of the scores; and turns at most.
_PATIENCE, _TURNS = 3, 200
_LEAST_GAIN = 1e-5
# What a known pair weighs in turns beside all others together: more would let what is odd of a few decide.
_PAIR_WEIGHT = 1e-3
# Centroids of a side, at most and by items, and steps that find them.
_CENTROIDS, _ITEMS_EACH, _STEPS = 600, 4, 8
# Singular values below this share of the largest are left to the slower way.
_LEAST_SINGULAR_SHARE = 1e-4
_TINY = 1e-30


def take_turns(
    rotation: Tensor, stored: Tensor, asked: Tensor, pins: Tensor, share: float, generator: torch.Generator
) -> tuple[Tensor, float]:
    """The rotation after turns, and how close it brings both sides to each other.

    Args:
        rotation: Where to begin, ``(d', d)``.
        stored: Directions of patterns, ``(N, d)``.
        asked: Those of queries, ``(n, d')``.
        pins: The products of known pairs, ``(d', d)``.
        share: The share of the scores that the first turns see.
        generator: Where what they see is drawn from.
    """
    weight = _PAIR_WEIGHT * (len(stored) + len(asked))
    best, waited = -math.inf, 0
    for _ in range(_TURNS):
        turned = stored @ rotation.mT
        there, here = _scores(asked, turned), _scores(turned, asked)
        near, back_near = (torch.cat([_nearest(part) for part in side()]) for side in (there, here))
        gain = float(near[:, 0].mean() + back_near[:, 0].mean())
        best, waited = (gain, 0) if gain > best + _LEAST_GAIN else (best, waited + 1)
        if waited > _PATIENCE:
            if share >= 1:
                break
            share, waited = min(1.0, 2 * share), 0
        # By CSLS, of which what is the same for all rivals is left out.
        chosen = _chosen(there, back_near.mean(1) / 2, share, generator)
        back_chosen = _chosen(here, near.mean(1) / 2, share, generator)
        rotation = nearest_rotation(asked.mT @ stored[chosen] + asked[back_chosen].mT @ stored + weight * pins)
    return rotation, gain


def nearest_rotation(matrix: Tensor) -> Tensor:
    """The matrix with orthonormal rows or columns that is nearest to this one."""
    # On a GPU, decompositions of so small matrices take ten times as long.
    wide = matrix.double().cpu()
    wide = wide if len(wide) <= wide.shape[1] else wide.mT
    # By the products of its rows, which is twice as fast, unless it has directions that they hardly show.
    squares, vectors = torch.linalg.eigh(wide @ wide.mT)
    if float(squares[0]) > _LEAST_SINGULAR_SHARE**2 * float(squares[-1]):
        rotation = vectors @ ((vectors.mT @ wide) / squares.sqrt()[:, None])
    else:
        u, _, v = torch.linalg.svd(wide, full_matrices=False)
        rotation = u @ v
    return (rotation if rotation.shape == matrix.shape else rotation.mT).to(matrix)


def nearest(asked: Tensor, stored: Tensor) -> Tensor:
    """The item of one side that each of the other is most like by CSLS, ``(n,)``: scores less half of what the item has
    with its nearest, on average."""
    hubness = torch.cat([_nearest(part) for part in _scores(stored, asked)()]).mean(1) / 2
    return _chosen(_scores(asked, stored), hubness)


def directions(items: Tensor) -> Tensor:
    """The direction of each item from their mean."""
    return nn.functional.normalize(items - items.mean(0))


def centroids(items: Tensor, generator: torch.Generator) -> Tensor:
    """Directions that stand for many items each, by spherical k-means."""
    count = min(_CENTROIDS, max(1, len(items) // _ITEMS_EACH))
    found = items[torch.randperm(len(items), generator=generator)[:count].to(items.device)]
    for _ in range(_STEPS):
        sums = torch.zeros_like(found).index_add_(0, (items @ found.mT).argmax(1), items)
        # A centroid of nothing stays.
        found = torch.where(sums.any(1, keepdim=True), nn.functional.normalize(sums), found)
    return found


def _scores(rows: Tensor, others: Tensor) -> Callable[[], Iterator[Tensor]]:
    """The scores of each row with all others, some rows at a time. To compute them once for each side is cheaper than
    to transpose them, and there is a table for either."""
    return parts_of(lambda part: rows[part] @ others.mT, len(rows), 4 * len(others) * rows.element_size())


def _nearest(scores: Tensor) -> Tensor:
    # Numba takes a second to import.
    from ahop.kernels.best import largest

    return largest(scores, min(_HUB_NEIGHBOURS, scores.shape[1]))


def _chosen(
    scores: Callable[[], Iterator[Tensor]],
    hubness: Tensor,
    share: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The best of each row, of which only a share is seen: each misses another part of one long row of drawn gaps."""
    from ahop.kernels.best import first_seen

    chosen = []
    for part in scores():
        count = sum(part.shape)
        seen = torch.rand(count, generator=generator) < share if share < 1 else torch.ones(count, dtype=torch.bool)
        chosen.append(first_seen(part, hubness, seen.to(part.device)))
    return torch.cat(chosen)
