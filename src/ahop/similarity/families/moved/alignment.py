r"""Bring two clouds of points together by a rotation, with no pair known, or a few.

1. *Starts*: independent components of either side are matched by how their squares go together, which is a quadratic
   assignment. Models of one world find like components, be their spaces ever so different. Where the spaces are alike,
   the fingerprints of items do as well: their similarities to the others of their own side, sorted.
2. *Turns* on centroids of either side: the rotation nearest to the pairs, and new pairs that choose each other, take
   turns (Artetxe, Labaka and Agirre, 2018), corrected for hubness (CSLS: Conneau and others, 2018), at first
   on random parts of the scores. A start is worth the gain that its turns end with.
3. Turns of the best on all items.
4. It is right if queries that had no part in it land on patterns more closely than by chance, and than after turns that
   began at random.

By chance, points lie around a query as if they were thrown there: the volume within which there are k of them grows
by a factor whose logarithm is 1/k on average, from one to the next, in any number of dimensions. So the logarithms of
distances have gaps that are alike once multiplied by k. Only where queries land on their own patterns is the first gap
wider than the others. Distances are counted in units of how near queries come to the pattern otherwise: near hubs any
query lands.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from ahop._blocks import budget, split
from ahop.learning.chance import errors_above_zero, mean_by_group

# Items whose fingerprints are compared, at how many places, and how sharply.
_FINGERPRINTS, _PLACES, _REGULARISATION = 5000, 100, 3e-3
# Components of a start, and assignments that are tried for each kind of moments.
_COMPONENTS, _TRIES = (30, 40, 50, 60), 8
# Centroids of a side, at most and by items, and steps that find them.
_CENTROIDS, _ITEMS_EACH, _STEPS = 600, 4, 8
# Neighbours by which hubness is measured.
_HUB_NEIGHBOURS = 10
# Shares of the scores that turns see at first, on centroids and on items; turns without a gain before they see twice
# as much; and turns at most.
_SHARE, _SHARE_OF_ITEMS, _PATIENCE, _TURNS = 0.1, 0.5, 3, 200
_LEAST_GAIN = 1e-5
# What a known pair weighs in turns beside all others together: more would let what is odd of a few decide.
_PAIR_WEIGHT = 1e-3
# Items that take turns, at most.
_MOST_ITEMS = 10_000
# Queries that judge, at least and at most, and others that tell how near queries come to a pattern.
_FEWEST, _JUDGES, _REFERENCE_QUERIES = 16, 1000, 4000
# How much farther ahead than by chance, by how many standard errors.
_LEAST_LEAD, _LEAD_ERRORS = 1.1, 3.0
# Patterns that queries must land on, as a share of how many they could.
_LEAST_HIT_SHARE = 0.1
# Turns from nowhere that a start has to be ahead of as well.
_NULL_STARTS = 4
_TINY = 1e-30
# Squared distances that rounding may leave.
_LEAST = 1e-6


@dataclass(frozen=True)
class Alignment:
    """A rotation ``(d', d)`` between directions of items from their mean.

    ``ahead`` is how much nearer the first pattern is than the second, over what it is by chance; ``found`` whether
    that is more than chance.
    """

    rotation: Tensor
    ahead: float
    found: bool


def align(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int = 0) -> Alignment:
    """The rotation of the start that comes to most, and whether it is right.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: ``(n,)``, -1 where unknown.
        seed: For the items of each start.
    """
    stored, asked = directions(patterns), directions(queries)
    generator = torch.Generator().manual_seed(seed)
    known = (origins >= 0).nonzero().squeeze(1)
    unknown = _shuffled((origins < 0).nonzero().squeeze(1), generator)
    count = min(_JUDGES, max(1, len(unknown) // 5))
    judge, learn = asked[unknown[:count]], asked[torch.cat([unknown[count:], known])]
    pairs = asked[known], stored[origins[known]]
    pins = pairs[0].mT @ pairs[1]

    # A table of their scores is within the memory budget.
    items = min(_MOST_ITEMS, math.isqrt(budget() // stored.element_size()))
    some = stored[_shuffled(torch.arange(len(stored)), generator)[:items].to(stored.device)]
    learn = learn[_shuffled(torch.arange(len(learn)), generator)[:items].to(learn.device)]
    beside = learn[:_REFERENCE_QUERIES]
    best, most = _unturned(stored, asked), -math.inf
    if min(len(learn), len(stored)) < _FEWEST:
        return Alignment(best, 0.0, False)
    groups = _centroids(some, generator), _centroids(learn, generator)
    for start in _starts(some, learn, pairs, judge, beside, seed):
        rotation, gain = _turns(start, *groups, pins, _SHARE, generator)
        best, most = (rotation, gain) if gain > most else (best, most)
    best, _ = _turns(best, some, learn, pins, _SHARE_OF_ITEMS, generator)
    # Turns from nowhere bring unlike clouds together as far as chance does, whatever their shapes.
    by_chance = 1.0
    for _ in range(_NULL_STARTS):
        nowhere = nearest_rotation(torch.randn(best.shape, generator=generator).to(best))
        rotation, _ = _turns(nowhere, *groups, torch.zeros_like(pins), _SHARE, generator)
        by_chance = max(by_chance, _judged(rotation, stored, judge, beside).ahead)
    return _judged(best, stored, judge, beside, by_chance)


def lands(patterns: Tensor, queries: Tensor) -> bool:
    """Whether queries ``(n, d)`` lie nearer to one of the patterns ``(N, d)`` than by chance, unturned."""
    stored, asked = standard(patterns), standard(queries)
    # Beside very many patterns, fewer queries are enough work.
    judge, beside = (min(most, max(most // 4, most * 2**16 // len(stored))) for most in (_JUDGES, _REFERENCE_QUERIES))
    judges = torch.arange(len(asked), device=asked.device) % max(2, len(asked) // judge) == 0
    return _judged(_unturned(stored, asked), stored, asked[judges], asked[~judges][:beside]).found


def standard(items: Tensor) -> Tensor:
    """Items counted from their mean, in units of their length."""
    centred = items - items.mean(0)
    return centred / centred.square().sum(1).mean().sqrt().clamp_min(_TINY)


def directions(items: Tensor) -> Tensor:
    """The direction of each item from their mean."""
    return nn.functional.normalize(items - items.mean(0))


def nearest_rotation(matrix: Tensor) -> Tensor:
    """The matrix with orthonormal rows or columns that is nearest to this one."""
    # The quicker way of a GPU does not always converge, and says so to users.
    driver = "gesvd" if matrix.is_cuda else None
    u, _, v = torch.linalg.svd(matrix.double(), full_matrices=False, driver=driver)
    return (u @ v).to(matrix)


# --- starts ----------------------------------------------------------------------------------------------------


def _starts(
    stored: Tensor, asked: Tensor, pairs: tuple[Tensor, Tensor], judge: Tensor, beside: Tensor, seed: int
) -> Iterator[Tensor]:
    """First rotations."""
    if len(pairs[0]):
        # Items are alike that are alike to the same known ones.
        x, y = (directions(rows @ own.mT) for rows, own in zip((asked, stored), pairs, strict=True))
        yield nearest_rotation(asked.mT @ stored[nearest(x, y)])
        yield nearest_rotation(pairs[0].mT @ pairs[1])
    same = _unturned(stored, asked)
    if _judged(same, stored, judge, beside).found:
        yield same
    yield _coupled(stored, asked, torch.Generator().manual_seed(seed))
    most = min(*stored.shape, *asked.shape)
    for count in sorted({min(count, most) for count in _COMPONENTS}):
        here, there = _components(stored, count, seed), _components(asked, count, seed + 1)
        for moments in (_squares, _tails, _joint_tails):
            matched = _assigned(moments(there), moments(here), seed)
            x, y = (directions(torch.from_numpy(rows).to(stored)) for rows in (there, here[:, matched]))
            yield nearest_rotation(asked.mT @ stored[nearest(x, y)])


def nearest(asked: Tensor, stored: Tensor) -> Tensor:
    """The item of one side that each of the other is most like by cross-domain similarity local scaling (CSLS),
    ``(n,)``: scores less half of what the item has with its nearest, on average."""
    hubness = torch.zeros_like(stored[:, 0])
    for part in split(len(stored), 4 * len(asked) * stored.element_size()):
        hubness[part] = (stored[part] @ asked.mT).topk(min(_HUB_NEIGHBOURS, len(asked)), 1).values.mean(1) / 2
    parts = split(len(asked), 4 * len(stored) * asked.element_size())
    return torch.cat([(asked[part] @ stored.mT - hubness).argmax(1) for part in parts])


def _coupled(stored: Tensor, asked: Tensor, generator: torch.Generator) -> Tensor:
    """The rotation nearest to a plan between the fingerprints of some items of both sides: their similarities to the
    others of their own side, sorted, which no rotation changes."""
    count = min(len(stored), len(asked), _FINGERPRINTS)
    x, k = (side[_shuffled(torch.arange(len(side)), generator)[:count].to(side.device)] for side in (asked, stored))
    return nearest_rotation(x.mT @ (_plan(_fingerprints(x), _fingerprints(k)) @ k))


def _fingerprints(items: Tensor) -> Tensor:
    """The similarities of each item to the others, sorted, at a hundred places."""
    every = max(1, len(items) // _PLACES)
    parts = split(len(items), 4 * len(items) * items.element_size())
    return torch.cat([(items[part] @ items.mT).sort(1).values[:, ::every] for part in parts])


def _plan(left: Tensor, right: Tensor, rounds: int = 40) -> Tensor:
    """The entropic transport plan between equally many fingerprints; rows sum to one."""
    plan = -torch.cdist(left, right).square_() / _REGULARISATION
    # A few rounds on logarithms, where nothing vanishes; from there on, plain products are as good and much faster.
    for _ in range(3):
        plan -= plan.logsumexp(1, keepdim=True)
        plan -= plan.logsumexp(0, keepdim=True)
    plan.exp_()
    columns = torch.ones_like(plan[0])
    for _ in range(rounds):
        rows = 1 / (plan @ columns).clamp_min(_TINY)
        columns = 1 / (rows @ plan).clamp_min(_TINY)
    return plan.mul_(rows[:, None]).mul_(columns)


def _unturned(stored: Tensor, asked: Tensor) -> Tensor:
    return torch.eye(asked.shape[1], stored.shape[1]).to(stored)


def _components(items: Tensor, count: int, seed: int) -> np.ndarray:
    """Independent components of items, ``(n, count)``: of variance one, with their longer tails above."""
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # Components that have not quite settled are as good a start.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = FastICA(count, whiten="unit-variance", max_iter=200, tol=1e-3, random_state=seed)
        rows = found.fit_transform(items.double().cpu().numpy())
    rows = rows * np.sign((rows**3).mean(0))
    return rows / (rows.std(0) + _TINY)


def _squares(rows: np.ndarray) -> np.ndarray:
    """How the squares of components go together."""
    squares = np.clip(rows, -6, 6) ** 2
    return squares.T @ squares / len(rows)


def _tails(rows: np.ndarray) -> np.ndarray:
    """How far components are large together, more than by chance."""
    return np.asarray(np.corrcoef((rows > 1.5).T.astype(float) + 1e-6 * rows.T))


def _joint_tails(rows: np.ndarray) -> np.ndarray:
    """How much oftener than by chance two components are among their own largest."""
    large = (rows > np.quantile(rows, 0.9, axis=0)).astype(float)
    return np.log(large.T @ large / len(rows) + 1e-4)


def _assigned(there: np.ndarray, here: np.ndarray, seed: int) -> np.ndarray:
    """The component here for each one there under which two tables of moments are most alike."""
    from scipy.optimize import quadratic_assignment

    there, here = (_standardised(table) for table in (there, here))
    rng, count = np.random.default_rng(seed), len(there)
    best = None
    for attempt in range(_TRIES):
        start = rng.random((count, count))
        for _ in range(30):
            start /= start.sum(0)
            start /= start.sum(1, keepdims=True)
        options = {"maximize": True, "rng": rng, "P0": (1 / count + start) / 2 if attempt else "barycenter"}
        found = quadratic_assignment(there, here, method="faq", options=options)
        best = found if best is None or found.fun > best.fun else best
    assert best is not None
    return np.asarray(best.col_ind)


def _standardised(table: np.ndarray) -> np.ndarray:
    """A table with its diagonal and the rest each of mean nought and variance one."""
    off = ~np.eye(len(table), dtype=bool)
    diagonal, rest = table.diagonal(), table[off]
    own = np.diag((diagonal - diagonal.mean()) / (diagonal.std() + _TINY))
    return np.where(off, (table - rest.mean()) / (rest.std() + _TINY), own)


# --- turns -----------------------------------------------------------------------------------------------------


def _centroids(items: Tensor, generator: torch.Generator) -> Tensor:
    """Directions that stand for many items each, by spherical k-means."""
    count = min(_CENTROIDS, max(1, len(items) // _ITEMS_EACH))
    found = items[_shuffled(torch.arange(len(items)), generator)[:count].to(items.device)]
    for _ in range(_STEPS):
        sums = torch.zeros_like(found).index_add_(0, (items @ found.mT).argmax(1), items)
        # A centroid of nothing stays.
        found = torch.where(sums.any(1, keepdim=True), nn.functional.normalize(sums), found)
    return found


def _turns(
    rotation: Tensor, stored: Tensor, asked: Tensor, pins: Tensor, share: float, generator: torch.Generator
) -> tuple[Tensor, float]:
    """The rotation after turns, and how close it brings both sides to each other."""
    weight = _PAIR_WEIGHT * (len(stored) + len(asked))
    best, waited = -math.inf, 0
    for _ in range(_TURNS):
        scores = asked @ (rotation @ stored.mT)
        near, back_near = (_by_rows(side, _nearest_scores) for side in (scores, scores.mT))
        gain = float(near[:, 0].mean() + back_near[:, 0].mean())
        best, waited = (gain, 0) if gain > best + _LEAST_GAIN else (best, waited + 1)
        if waited > _PATIENCE:
            if share >= 1:
                break
            share, waited = min(1.0, 2 * share), 0
        # By CSLS, of which what is the same for all rivals is left out.
        there, here = (
            _by_rows(side, partial(_first, hubness=hubness.mean(1) / 2, share=share, generator=generator))
            for side, hubness in ((scores, back_near), (scores.mT, near))
        )
        rotation = nearest_rotation(asked.mT @ stored[there] + asked[here].mT @ stored + weight * pins)
    return rotation, gain


def _by_rows(table: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of each row, block by block; those of a transposed table are laid out first, which is faster."""
    parts = split(len(table), 4 * table.shape[1] * table.element_size())
    return torch.cat([function(table[part].contiguous()) for part in parts])


def _nearest_scores(rows: Tensor) -> Tensor:
    return rows.topk(min(_HUB_NEIGHBOURS, rows.shape[1]), 1).values


def _first(rows: Tensor, hubness: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """The best of each row, of which only a share is seen: each misses another part of one long row of drawn gaps."""
    rows = rows - hubness
    if share < 1:
        count, width = rows.shape
        gaps = torch.where(torch.rand(width + count, generator=generator) < share, 0.0, -math.inf).to(rows)
        rows += gaps.unfold(0, width, 1)[torch.randperm(count, generator=generator).to(rows.device)]
    return rows.argmax(1)


# --- judgement --------------------------------------------------------------------------------------------------


def _distances(turned: Tensor, asked: Tensor) -> Tensor:
    """Squared distances of queries to turned patterns, ``(n, N)``."""
    own = asked.square().sum(1, keepdim=True) + turned.square().sum(1)
    return torch.addmm(own, asked, turned.mT, alpha=-2).clamp_min_(_LEAST)


def _judged(rotation: Tensor, stored: Tensor, judge: Tensor, beside: Tensor, by_chance: float = 1.0) -> Alignment:
    """How much nearer the first pattern is than the second, over what it would be by chance.

    Args:
        rotation: ``(d', d)``.
        stored: Directions of patterns ``(N, d)``.
        judge: Those of queries ``(n, d')`` that had no part in the rotation.
        beside: Those of others, which tell how near queries come to each pattern.
        by_chance: What it is by chance, from turns that began at random.
    """
    if len(stored) < 3 or min(len(judge), len(beside)) < _FEWEST:
        return Alignment(rotation, 0.0, False)
    turned, gaps, first_choices = stored @ rotation.mT, [], []
    parts = split(len(stored), 4 * len(beside) * stored.element_size())
    near = torch.cat([_nearest_scores(-_distances(beside, turned[part])).mean(1) for part in parts]).neg().log()
    for part in split(len(judge), 4 * len(stored) * judge.element_size()):
        best = (near - _distances(turned, judge[part]).log()).topk(3, -1)
        first_choices.append(best.indices[:, 0])
        first, second, third = best.values.unbind(-1)
        gaps.append(torch.stack([first - second, 2 * (second - third)], 1))
    # A pattern counts once: queries in a few groups can all be brought to a pattern each, and tell of it as one.
    each = mean_by_group(torch.cat(gaps), torch.cat(first_choices))
    ahead, chance = each.mean(0).tolist()
    more = each.mv(torch.tensor([1.0, -_LEAST_LEAD * by_chance]).to(judge))
    many = len(each) >= max(_FEWEST, _LEAST_HIT_SHARE * min(len(judge), len(stored)))
    return Alignment(rotation, ahead / max(chance, _TINY), many and errors_above_zero(more) > _LEAD_ERRORS)


def _shuffled(items: Tensor, generator: torch.Generator) -> Tensor:
    return items[torch.randperm(len(items), generator=generator).to(items.device)]
