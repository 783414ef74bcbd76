"""Where every memory of the library is tried: corruptions that are drawn, and items that were measured twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ahop import datasets
from ahop._blocks import split
from ahop._registry import Registry
from ahop.datasets import Measured
from ahop.datasets.files import find
from ahop.memories import Oracle
from ahop.memories.base import AssociativeMemory
from ahop.variants import Biased, Compose, Noisy, Samples
from ahop_paper import real, text_models
from ahop_paper.baselines import Compared
from ahop_paper.worlds import WORLDS

# How many queries of the world of strangers come from no stored pattern, and the noise upon a mean of two patterns.
STRANGERS, BLUR = 0.2, 0.6
# Between which standard deviations the values of a replicate scatter.
STEADY, LOOSE = 0.7, 3.0


@dataclass(frozen=True)
class Size:
    """How many patterns are drawn, of how many dimensions; queries to learn from and to score; items of measured sets,
    and of texts."""

    patterns: int = 500
    dim: int = 64
    samples: int = 256
    queries: int = 500
    items: int = 300
    texts: int = 1000


class Trial(NamedTuple):
    """What a memory is tried on.

    Attributes:
        patterns: To be stored, ``(N, d)``.
        train: To learn from; the origin of a stranger is -1.
        asked: To be scored, ``(n, e)``.
        answers: All that are right for each, ``(n, m)``; -1 for a stranger.
        ceiling: Who knows the corruption, where anyone does.
    """

    patterns: Tensor
    train: Samples
    asked: Tensor
    answers: Tensor
    ceiling: Callable[[], AssociativeMemory | Compared] | None = None


class Replicates(Samples):
    """Samples of patterns that scatter by ``spread``, the standard deviation of each of their values, ``(N, d)``."""

    spread: Tensor


Draw = Callable[[int, Size], Trial]


class Place(NamedTuple):
    """How a trial is drawn from a seed.

    Attributes:
        draw: How.
        here: Whether its data are on this machine.
        ceiling: Whether anyone knows the corruption.
        one_space: Whether queries are as wide as patterns.
        spread: Whether it is known how far measurements of each pattern scatter: ``train`` are :class:`Replicates`.
    """

    draw: Draw
    here: Callable[[], bool] = lambda: True
    ceiling: bool = True
    one_space: bool = True
    spread: bool = False


TRIALS: Registry[Place] = Registry("world")


def uniform(count: int, dim: int, seed: int) -> Tensor:
    """Random patterns with values between -1 and 1.

    Args:
        count: How many.
        dim: The number of values of each.
        seed: Seed of the draw.
    """
    return torch.rand(count, dim, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def _join_drawn(title: str, name: str) -> None:
    corruption = WORLDS[name].corruption

    def drawn(seed: int, size: Size) -> Trial:
        patterns, made = uniform(size.patterns, size.dim, seed), corruption(size.dim, seed)
        train, asked = made.sample(patterns, size.samples), made.sample(patterns, size.queries)
        return Trial(patterns, train, asked.queries, asked.origins[:, None], lambda: Oracle(patterns, made))

    TRIALS.add(title, Place(drawn))


for _title, _name in {
    "damaged .4": "published 0.4",
    "damaged .5": "published 0.5",
    "rounded": "noise .5, rounded to -2, 0, 2",
    "masked": "mask .8, noise .05",
    "rotated": "rotation by 45°, noise .8",
}.items():
    _join_drawn(_title, _name)


def _mixtures(seed: int, size: Size) -> Trial:
    """A query is the mean of two patterns, and noise; either of them is right, and one of them is the label."""
    patterns, draw = uniform(size.patterns, size.dim, seed), torch.Generator().manual_seed(seed + 1)

    def mixed(count: int) -> tuple[Tensor, Tensor]:
        pairs = torch.rand(count, size.patterns, generator=draw).topk(2).indices
        noise = torch.randn(count, size.dim, generator=draw)
        return patterns[pairs].mean(1) + BLUR * noise, pairs

    train, pairs = mixed(size.samples)
    return Trial(patterns, Samples(train, pairs[:, 0]), *mixed(size.queries), lambda: either_of_two(patterns, BLUR))


TRIALS.add("mixtures", Place(_mixtures))


def either_of_two(patterns: Tensor, noise: float) -> Compared:
    r"""Scores patterns by how likely each is to be one of the two that a query is the mean of.

    .. math:: s(\xi_i, x) = \log \sum_{j \ne i} \exp\big(-\lVert x - (\xi_i + \xi_j) / 2 \rVert^2 / 2 \sigma^2\big)

    Example:
        >>> corners = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 40.0]])
        >>> either_of_two(corners, 1.0).first(torch.tensor([[0.0, 21.0], [3.0, 19.0]]))
        tensor([2, 2])
    """

    def score(stored: Tensor, queries: Tensor) -> Tensor:
        # |x - (a + b) / 2|² of all pairs, from products with single patterns.
        own, between = stored.square().sum(1), stored @ stored.T
        pairs = (own[:, None] + own + 2 * between) / 4
        pairs.fill_diagonal_(math.inf)
        found = []
        for part in split(len(queries), pairs.numel() * pairs.element_size()):
            near = queries[part] @ stored.T
            far = pairs - near[:, :, None] - near[:, None, :]
            found.append(torch.logsumexp(far / (-2 * noise**2), -1))
        return torch.cat(found)

    return Compared(patterns.double(), lambda asked: asked, score)


def _strangers(seed: int, size: Size) -> Trial:
    """As damaged .4, but some queries, to learn from, too, come from patterns that are not stored."""
    every, made = uniform(2 * size.patterns, size.dim, seed), WORLDS["published 0.4"].corruption(size.dim, seed)
    known, unknown = every[: size.patterns], every[size.patterns :]

    def both(count: int) -> Samples:
        strange = round(STRANGERS * count)
        genuine, others = made.sample(known, count - strange), made.sample(unknown, strange).queries
        return Samples(torch.cat([genuine.queries, others]), torch.cat([genuine.origins, torch.full((strange,), -1)]))

    train, asked = both(size.samples), both(size.queries)
    return Trial(known, train, asked.queries, asked.origins[:, None], lambda: Oracle(known, made))


TRIALS.add("strangers", Place(_strangers))


def _replicates(seed: int, size: Size) -> Trial:
    """What is noisy and biased is one measurement of a pattern, whose values scatter, each by a spread of its own."""
    patterns, made = uniform(size.patterns, size.dim, seed), Compose([Noisy(0.4), Biased(0.5)], seed=seed)
    draw = torch.Generator().manual_seed(seed + 1)
    spread = STEADY * (LOOSE / STEADY) ** torch.rand(patterns.shape, generator=draw)

    def measured(count: int) -> Replicates:
        origins = torch.randint(size.patterns, (count,), generator=draw)
        replicates = patterns[origins] + spread[origins] * torch.randn(count, size.dim, generator=draw)
        return Replicates(made.corrupt(replicates, draw), origins)

    train, asked = measured(size.samples), measured(size.queries)
    train.spread = spread
    return Trial(patterns, train, asked.queries, asked.origins[:, None], lambda: Oracle(patterns, made, spread=spread))


TRIALS.add("replicates", Place(_replicates, spread=True))


def _measured(load: Callable[[int], Measured], items: Callable[[Size], int]) -> Draw:
    def measured(seed: int, size: Size) -> Trial:
        data = real.small(load(seed), items(size), 4 * size.queries)
        train, asked = (rows.nonzero().squeeze(1)[: size.queries] for rows in (data.learn, ~data.learn))
        samples = Samples(data.queries[train].float(), data.origins[train])
        return Trial(data.patterns.float(), samples, data.queries[asked].float(), data.origins[asked, None])

    return measured


def _join_set(title: str, name: str) -> None:
    entry = datasets.ENTRIES[name]
    draw = _measured(lambda seed: real.split(entry.load(), seed), lambda size: size.items)
    TRIALS.add(title, Place(draw, lambda: entry.here, ceiling=False))


for _title, _name in {"digits": "digits-again", "tablets": "tablets", "MS2": "ms2"}.items():
    _join_set(_title, _name)
TRIALS.add(
    "text models",
    Place(
        _measured(lambda seed: text_models.load("glove", seed), lambda size: size.texts),
        lambda: find(text_models.TEXT) is not None,
        ceiling=False,
        one_space=False,
    ),
)
