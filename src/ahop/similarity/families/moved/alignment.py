r"""Bring two clouds of points together by a rotation, with no pair known, or a few.

1. *Nulls*: how close turns (:mod:`.turns`) that begin at random bring the centroids of either side to each other. One
   that comes much closer than the others is a start itself.
2. *Starts* (:mod:`.starts`) take turns on centroids, too: those that cost little, and only if none of them is right,
   those by independent components. Where there are many items, the best take turns on some of them, and turns on all
   only follow if queries land more closely than after nulls, or both sides come closer than those bring them.
3. It is right if queries that had no part in it land on patterns more closely than by chance, and than after turns that
   began at random.

Which independent components are found depends on where the search for them begins, so that search is made again
where it fails.

By chance, points lie around a query as if they were thrown there: the volume within which there are k of them grows
by a factor whose logarithm is 1/k on average, from one to the next, in any number of dimensions. So the logarithms of
distances have gaps that are alike once multiplied by k. Only where queries land on their own patterns is the first gap
wider than the others. Distances are counted in units of how near queries come to the pattern otherwise: near hubs any
query lands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.learning.chance import errors_above_zero, mean_by_group
from ahop.similarity.families.moved import starts
from ahop.similarity.families.moved.turns import centroids, directions, nearest_rotation, take_turns

# Searches for independent components, at most; twice as many where they cost little, or fewer pairs than these are
# known, which are enough to begin with.
_SEARCHES, _ENOUGH_PAIRS = 3, 5
# Shares of the scores that turns see at first, on centroids and on items.
_SHARE_OF_CENTROIDS, _SHARE_OF_ITEMS = 0.1, 0.5
# Items that take turns, at most; those of either side on which the starts that came closest on centroids are compared;
# and how many of these starts.
_MOST_ITEMS, _SOME_ITEMS, _FINALISTS = 10_000, 2000, 3
# Turns that begin at random, those of them that are judged, and by how many standard deviations one comes closer than
# the others if it is right by luck; of a normal distribution, that is so many times the median deviation.
_NULLS, _JUDGED_NULLS, _MIN_DEVIATIONS, _NORMAL_FACTOR = 8, 4, 3.0, 1.4826
# How much closer than nulls turns on some items must come; where all are wrong, they differ by half as much.
_MIN_GAIN_RATIO = 1.01
# Queries that judge, at least and at most, and others that tell how near queries come to a pattern.
_MIN_JUDGES, _MAX_JUDGES, _REFERENCE_QUERIES = 16, 1000, 4000
# Neighbours by which that is told.
_NEIGHBOURS = 10
# How much farther ahead than by chance, by how many standard errors.
_LEAST_LEAD, _LEAD_ERRORS = 1.1, 3.0
# Patterns that queries must land on, as a share of how many they could.
_LEAST_HIT_SHARE = 0.1
_TINY = 1e-30
# Squared distances that rounding may leave.
_LEAST_SQUARED_DISTANCE = 1e-6


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
    """The rotation of the first search that is right; of the last one that was judged where none is.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: ``(n,)``, -1 where unknown.
        seed: For what is drawn, and where searches for components begin.
    """
    generator = torch.Generator().manual_seed(seed)
    clouds = _Clouds.of(patterns, queries, origins, generator)
    last = Alignment(_unturned(clouds.stored, clouds.judge), 0.0, False)
    if min(len(clouds.judge), len(clouds.learn), len(clouds.stored)) < _MIN_JUDGES:
        return last
    null = _Null.of(clouds, generator)
    for some in _starts(clouds, null, seed):
        rotation = _search(some, clouds, null, generator)
        if rotation is not None:
            last = _judged(rotation, clouds.stored, clouds.judge, clouds.beside, null.ahead(clouds))
        if last.found:
            break
    return last


def lands(patterns: Tensor, queries: Tensor) -> bool:
    """Whether queries ``(n, d)`` lie nearer to one of the patterns ``(N, d)`` than by chance, unturned."""
    stored, asked = standard(patterns), standard(queries)
    # Beside very many patterns, fewer queries are enough work.
    judge, beside = (
        min(most, max(most // 4, most * 2**16 // len(stored))) for most in (_MAX_JUDGES, _REFERENCE_QUERIES)
    )
    judges = torch.arange(len(asked), device=asked.device) % max(2, len(asked) // judge) == 0
    return _judged(_unturned(stored, asked), stored, asked[judges], asked[~judges][:beside]).found


def standard(items: Tensor) -> Tensor:
    """Items counted from their mean, in units of their length."""
    centred = items - items.mean(0)
    return centred / centred.square().sum(1).mean().sqrt().clamp_min(_TINY)


# --- search ------------------------------------------------------------------------------------------------------


class _Clouds(NamedTuple):
    """Directions of all patterns ``(N, d)``, of those that take turns, of queries that judge ``(q, d')``, and of those
    that take turns; known pairs of directions ``(m, d')`` and ``(m, d)``, and their products ``(d', d)``."""

    stored: Tensor
    some: Tensor
    judge: Tensor
    learn: Tensor
    pairs: tuple[Tensor, Tensor]
    pins: Tensor

    @classmethod
    def of(cls, patterns: Tensor, queries: Tensor, origins: Tensor, generator: torch.Generator) -> _Clouds:
        stored, asked = directions(patterns), directions(queries)
        known = (origins >= 0).nonzero().squeeze(1)
        unknown = _shuffled((origins < 0).nonzero().squeeze(1), generator)
        count = min(_MAX_JUDGES, max(1, len(unknown) // 5))
        learn = _shuffled(torch.cat([unknown[count:], known]), generator)[:_MOST_ITEMS]
        some = _shuffled(torch.arange(len(stored), device=stored.device), generator)[:_MOST_ITEMS]
        pairs = asked[known], stored[origins[known]]
        return cls(stored, stored[some], asked[unknown[:count]], asked[learn], pairs, pairs[0].mT @ pairs[1])

    @property
    def beside(self) -> Tensor:
        return self.learn[:_REFERENCE_QUERIES]

    @property
    def many(self) -> bool:
        """Whether some items are not all of them."""
        return max(len(self.some), len(self.learn)) > _SOME_ITEMS


@dataclass
class _Null:
    """Centroids of both sides, and the rotations of turns on them that began at random, with how close these came."""

    centroids: tuple[Tensor, Tensor]
    rotations: list[Tensor]
    gains: Tensor
    _ahead: float = math.nan
    _close_on_some: float = math.nan

    @classmethod
    def of(cls, clouds: _Clouds, generator: torch.Generator) -> _Null:
        groups = centroids(clouds.some, generator), centroids(clouds.learn, generator)
        # Such turns bring unlike clouds together as far as chance does, whatever their shapes.
        drawn = [torch.randn(clouds.pins.shape, generator=generator).to(clouds.pins) for _ in range(_NULLS)]
        free = torch.zeros_like(clouds.pins)
        ends = [take_turns(nearest_rotation(start), *groups, free, _SHARE_OF_CENTROIDS, generator) for start in drawn]
        return cls(groups, [rotation for rotation, _ in ends], torch.tensor([gain for _, gain in ends]))

    @property
    def lucky(self) -> Tensor:
        """Which of them came closer than the others, ``(8,)``: it may be right."""
        middle = self.gains.median()
        return self.gains > middle + _MIN_DEVIATIONS * _NORMAL_FACTOR * (self.gains - middle).abs().median()

    def drawn(self, lucky: bool) -> list[Tensor]:
        """The rotations of all that were lucky, or of some that were not."""
        chosen = (self.lucky == lucky).nonzero().flatten().tolist()
        return [self.rotations[number] for number in (chosen if lucky else chosen[:_JUDGED_NULLS])]

    def ahead(self, clouds: _Clouds) -> float:
        """How far ahead the first pattern is by chance: after the nulls on average, or by the definition of it."""
        if math.isnan(self._ahead):
            judged = [_judged(one, clouds.stored, clouds.judge, clouds.beside) for one in self.drawn(lucky=False)]
            # Not the largest of them: few queries judge each.
            self._ahead = max(1.0, mean(one.ahead for one in judged))
        return self._ahead

    def close_on_some(self, clouds: _Clouds, generator: torch.Generator) -> float:
        """How close turns on some items must come to be closer than those of nulls."""
        if math.isnan(self._close_on_some):
            free = torch.zeros_like(clouds.pins)
            ends = [_turns_on_some(one, clouds, free, generator) for one in self.drawn(lucky=False)]
            self._close_on_some = _MIN_GAIN_RATIO * max(map(_gain, ends))
        return self._close_on_some


def _starts(clouds: _Clouds, null: _Null, seed: int) -> Iterator[Iterator[Tensor]]:
    """First rotations in groups, each of which is a search; what costs little comes first."""
    yield _cheap_starts(clouds)
    yield iter(null.drawn(lucky=True))
    searches = _SEARCHES if clouds.many and len(clouds.pairs[0]) >= _ENOUGH_PAIRS else 2 * _SEARCHES
    for number in range(searches):
        yield starts.by_components(clouds.some, clouds.learn, seed + number)


def _cheap_starts(clouds: _Clouds) -> Iterator[Tensor]:
    """Rotations of spaces that are alike, and those that known pairs suggest."""
    stored, asked = clouds.some, clouds.learn
    same = _unturned(stored, asked)
    if _judged(same, clouds.stored, clouds.judge, clouds.beside).found:
        yield same
    yield starts.by_fingerprints(stored, asked)
    if len(clouds.pairs[0]):
        yield from starts.by_pairs(stored, asked, clouds.pairs)


def _search(some_starts: Iterator[Tensor], clouds: _Clouds, null: _Null, generator: torch.Generator) -> Tensor | None:
    """The rotation that turns on all items lead to from the start that comes closest; None where there is no start, or
    where, of many items, it neither comes closer than nulls do nor brings queries closer to patterns."""
    ends = [take_turns(start, *null.centroids, clouds.pins, _SHARE_OF_CENTROIDS, generator) for start in some_starts]
    if not ends:
        return None
    best = sorted(ends, key=_gain, reverse=True)[:_FINALISTS]
    ends = [_turns_on_some(rotation, clouds, clouds.pins, generator) for rotation, _ in best]
    rotation, gain = max(ends, key=_gain)
    if not clouds.many:
        return rotation
    lead = _judged(rotation, clouds.stored, clouds.judge, clouds.beside).ahead / null.ahead(clouds)
    # Known pairs may bring what they pin together, and the rest no closer than nulls do.
    if lead < _LEAST_LEAD and gain < null.close_on_some(clouds, generator):
        return None
    return take_turns(rotation, clouds.some, clouds.learn, clouds.pins, _SHARE_OF_ITEMS, generator)[0]


def _turns_on_some(rotation: Tensor, clouds: _Clouds, pins: Tensor, generator: torch.Generator) -> tuple[Tensor, float]:
    sides = clouds.some[:_SOME_ITEMS], clouds.learn[:_SOME_ITEMS]
    return take_turns(rotation, *sides, pins, _SHARE_OF_ITEMS, generator)


def _gain(end: tuple[Tensor, float]) -> float:
    return end[1]


def _unturned(stored: Tensor, asked: Tensor) -> Tensor:
    return torch.eye(asked.shape[1], stored.shape[1]).to(stored)


# --- judgement --------------------------------------------------------------------------------------------------


def _distances(turned: Tensor, asked: Tensor) -> Tensor:
    """Squared distances of queries to turned patterns, ``(n, N)``."""
    own = asked.square().sum(1, keepdim=True) + turned.square().sum(1)
    return torch.addmm(own, asked, turned.mT, alpha=-2).clamp_min_(_LEAST_SQUARED_DISTANCE)


def _least(distances: Tensor) -> Tensor:
    return distances.topk(min(_NEIGHBOURS, distances.shape[1]), 1, largest=False).values


def _judged(rotation: Tensor, stored: Tensor, judge: Tensor, beside: Tensor, by_chance: float = 1.0) -> Alignment:
    """How much nearer the first pattern is than the second, over what it would be by chance.

    Args:
        rotation: ``(d', d)``.
        stored: Directions of patterns ``(N, d)``.
        judge: Those of queries ``(n, d')`` that had no part in the rotation.
        beside: Those of others, which tell how near queries come to each pattern.
        by_chance: What it is by chance, from turns that began at random.
    """
    if len(stored) < 3 or min(len(judge), len(beside)) < _MIN_JUDGES:
        return Alignment(rotation, 0.0, False)
    turned, gaps, first_choices = stored @ rotation.mT, [], []
    parts = split(len(stored), 4 * len(beside) * stored.element_size())
    near = torch.cat([_least(_distances(beside, turned[part])).mean(1) for part in parts]).log()
    for part in split(len(judge), 4 * len(stored) * judge.element_size()):
        best = (near - _distances(turned, judge[part]).log()).topk(3, -1)
        first_choices.append(best.indices[:, 0])
        first, second, third = best.values.unbind(-1)
        gaps.append(torch.stack([first - second, 2 * (second - third)], 1))
    # A pattern counts once: queries in a few groups can all be brought to a pattern each, and tell of it as one.
    each = mean_by_group(torch.cat(gaps), torch.cat(first_choices))
    ahead, chance = each.mean(0).tolist()
    more = each.mv(torch.tensor([1.0, -_LEAST_LEAD * by_chance]).to(judge))
    many = len(each) >= max(_MIN_JUDGES, _LEAST_HIT_SHARE * min(len(judge), len(stored)))
    return Alignment(rotation, ahead / max(chance, _TINY), many and errors_above_zero(more) > _LEAD_ERRORS)


def _shuffled(items: Tensor, generator: torch.Generator) -> Tensor:
    return items[torch.randperm(len(items), generator=generator).to(items.device)]
