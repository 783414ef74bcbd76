r"""Bring two clouds of points together by a rotation, with no pair known, or a few.

1. Every item has a fingerprint that no rotation changes: its similarities to the others of its own side, sorted.
2. One entropic transport plan couples the fingerprints of both sides; the rotation nearest to it is a start.
3. Expectation maximisation goes on: share each query out among all patterns, take the rotation nearest to that, and let
   the noise fall.
4. A start is right if queries that had no part in it land on patterns more closely than by chance.

By chance, points lie around a query as if they were thrown there: the volume within which there are k of them grows
by a factor whose logarithm is 1/k on average, from one to the next, in any number of dimensions. So the logarithms of
distances have gaps that are alike once multiplied by k. Only where queries land on their own patterns is the first gap
wider than the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ahop._blocks import split

# Fingerprints of fewer items hardly ever lead to a right start.
ENOUGH = 5000
_PLACES = 100
_REGULARISATION = 3e-3
_STARTS = 3
# Queries that judge, at least and at most; and queries that learn in one step, and how much of earlier steps is kept.
_FEWEST, _JUDGE = 16, 1000
_AT_ONCE, _BLOCK, _KEPT = 500, 250, 0.7
# The noise from first to last in units of an item's length, and how fast it falls. A start is judged every so many
# steps, and goes on as long as it gets better by more than this, or is not found, but no longer than so many times.
_FIRST, _LAST, _FALL = 0.6, 0.12, 0.95
_STEPS, _PATIENCE, _BETTER = 20, 6, 1.02
# How much farther ahead than by chance, by how many standard errors.
_AHEAD, _ERRORS = 1.1, 3.0
_TINY = 1e-30
# Squared distances that rounding may leave.
_LEAST = 1e-6


@dataclass(frozen=True)
class Alignment:
    """A rotation ``(d', d)`` between items counted from their means, in units of their lengths.

    ``ahead`` is how much nearer the first pattern is than the second, over what it is by chance; ``found`` whether
    that is more than chance.
    """

    rotation: Tensor
    ahead: float
    found: bool

    def scorer(self, patterns: Tensor, queries: Tensor) -> Callable[[Tensor], Tensor]:
        """The log-likelihoods of the patterns for some of the queries, up to a constant of the query."""
        turned, centre, length = standard(patterns) @ self.rotation.mT, queries.mean(0), _length(queries)
        return lambda some: _closeness(turned, (some - centre) / length) / _LAST**2


def align(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int = 0) -> Alignment:
    """The first rotation that is clearly right, or else the one that comes nearest to it.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: ``(n,)``, -1 where unknown.
        seed: For the items of each start.
    """
    stored, asked = standard(patterns), standard(queries)
    generator = torch.Generator().manual_seed(seed)
    known = (origins >= 0).nonzero().squeeze(1)
    unknown = _shuffled((origins < 0).nonzero().squeeze(1), generator)
    count = min(_JUDGE, max(1, len(unknown) // 5))
    judge, learn = asked[unknown[:count]], asked[unknown[count:]]
    pairs = asked[known], stored[origins[known]]

    best = None
    for start in _starts(stored, asked, pairs, judge, generator):
        end = _settled(start(), stored, learn, pairs, judge, generator)
        best = end if best is None or end.ahead > best.ahead else best
        if end.found:
            break
    assert best is not None
    return best


def lands(patterns: Tensor, queries: Tensor) -> bool:
    """Whether queries ``(n, d)`` lie nearer to one of the patterns ``(N, d)`` than by chance, unturned."""
    stored, asked = standard(patterns), standard(queries)
    return _judged(_unturned(stored, asked), stored, asked[:: max(1, len(asked) // _JUDGE)]).found


def standard(items: Tensor) -> Tensor:
    """Items counted from their mean, in units of their length."""
    return (items - items.mean(0)) / _length(items)


def _length(items: Tensor) -> Tensor:
    return (items - items.mean(0)).square().sum(1).mean().sqrt().clamp_min(_TINY)


def nearest_rotation(matrix: Tensor) -> Tensor:
    """The matrix with orthonormal rows or columns that is nearest to this one."""
    # The quicker way of a GPU does not always converge, and says so to users.
    u, _, v = torch.linalg.svd(matrix, full_matrices=False, driver="gesvd" if matrix.is_cuda else None)
    return u @ v


# --- starts ----------------------------------------------------------------------------------------------------


def _starts(
    stored: Tensor, asked: Tensor, pairs: tuple[Tensor, Tensor], judge: Tensor, generator: torch.Generator
) -> Iterator[Callable[[], Tensor]]:
    """Ways to a first rotation, the surest first."""
    if len(pairs[0]):
        yield lambda: nearest_rotation(pairs[0].mT @ pairs[1])
    same = _unturned(stored, asked)
    if _judged(same, stored, judge).found:
        yield lambda: same
    for _ in range(_STARTS):
        yield lambda: _coupled(stored, asked, generator)


def _unturned(stored: Tensor, asked: Tensor) -> Tensor:
    return torch.eye(asked.shape[1], stored.shape[1]).to(stored)


def _coupled(stored: Tensor, asked: Tensor, generator: torch.Generator) -> Tensor:
    """The rotation nearest to a plan between the fingerprints of some items of both sides."""
    count = min(len(stored), len(asked), ENOUGH)
    some, others = (_shuffled(torch.arange(len(side)), generator)[:count] for side in (asked, stored))
    x, k = asked[some.to(asked.device)], stored[others.to(stored.device)]
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


# --- from a start to an end ------------------------------------------------------------------------------------


def _closeness(turned: Tensor, asked: Tensor) -> Tensor:
    """Minus half the squared distance of each turned pattern, ``(n, N)``, up to a constant of the query."""
    return torch.addmm(-turned.square().sum(1) / 2, asked, turned.mT)


def _settled(
    rotation: Tensor,
    stored: Tensor,
    learn: Tensor,
    pairs: tuple[Tensor, Tensor],
    judge: Tensor,
    generator: torch.Generator,
) -> Alignment:
    """Expectation maximisation with a rotation as its M-step and a noise that falls, a few queries at a time."""
    noise, seen = _FIRST, torch.zeros_like(rotation)
    pinned = pairs[0].mT @ pairs[1]
    now = Alignment(rotation, 0.0, False)
    for _ in range(_PATIENCE):
        for _ in range(_STEPS):
            some = learn[_shuffled(torch.arange(len(learn)), generator)[:_AT_ONCE].to(learn.device)]
            turned = stored @ rotation.mT
            # The sum of what each pattern gets, (d', N).
            given = torch.zeros_like(turned.mT)
            for part in some.split(_BLOCK):
                given += part.mT @ torch.softmax(_closeness(turned, part).div_(noise**2), -1)
            seen += given @ stored
            rotation = nearest_rotation(seen + pinned)
            seen *= _KEPT
            noise = max(_LAST, _FALL * noise)
        before, now = now, _judged(rotation, stored, judge)
        if before.found and now.ahead < _BETTER * before.ahead:
            break
    return now


def _judged(rotation: Tensor, stored: Tensor, judge: Tensor) -> Alignment:
    """How much nearer the first pattern is than the second, over what it would be by chance."""
    if len(stored) < 3 or len(judge) < _FEWEST:
        return Alignment(rotation, 0.0, False)
    turned, gaps = stored @ rotation.mT, []
    for part in split(len(judge), 4 * len(stored) * judge.element_size()):
        nearest = _closeness(turned, judge[part]).topk(3, -1).values
        squares = judge[part].square().sum(1, keepdim=True) - 2 * nearest
        first, second, third = squares.clamp_min(_LEAST).log().unbind(-1)
        gaps.append(torch.stack([second - first, 2 * (third - second)], 1))
    ahead, chance = torch.cat(gaps).mean(0).tolist()
    more = torch.cat(gaps).mv(torch.tensor([1.0, -_AHEAD]).to(judge))
    errors = float(more.mean() / (more.std() / math.sqrt(len(more))))
    return Alignment(rotation, ahead / max(chance, _TINY), errors > _ERRORS)


def _shuffled(items: Tensor, generator: torch.Generator) -> Tensor:
    return items[torch.randperm(len(items), generator=generator).to(items.device)]
