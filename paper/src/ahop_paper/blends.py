"""Queries that are blends of several patterns: how often does the whole set come back?

A query is the mean of two to four patterns, and noise. All but sparsemax are told how many. A separation that respects
the order of scores has the same best k in one step, so that softmax stands for all of them there; they differ in where
a state comes to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._progress import progress
from ahop.memories import AssociativeMemory, BayesianHopfield
from ahop.separation import KSubsets, Softmax, Sparsemax
from ahop_paper import report as reports
from ahop_paper.spread import spread

SIZES = (2, 3, 4)
# Each separation has the one with which most sets of other queries come back.
BETAS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Config:
    """What a run does."""

    patterns: int = 128
    dim: int = 64
    noise: float = 0.2
    samples: int = 200
    queries: int = 400
    runs: int = 5
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        for name, least in (("patterns", max(SIZES)), ("dim", 1), ("samples", 1), ("queries", 1), ("runs", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")


def quick(config: Config) -> Config:
    """The same with fewer of everything."""
    return Config(patterns=32, samples=100, queries=100, runs=1, seed=config.seed, quick=True)


class Blends(NamedTuple):
    """Queries ``(n, d)``, and which patterns each is made of, ``(n, k)``."""

    queries: Tensor
    members: Tensor

    @property
    def size(self) -> int:
        return self.members.shape[1]

    def whole(self, found: Tensor) -> float:
        """The share of queries whose set is exactly what was found, ``(n, N)``."""
        return float((found == _marked(self.members, found.shape[1])).all(1).double().mean())


def draw(patterns: Tensor, size: int, noise: float, count: int, generator: torch.Generator) -> Blends:
    """Means of ``size`` patterns each, and Gaussian noise.

    Args:
        patterns: ``(N, d)``.
        size: The number of patterns in a blend.
        noise: The standard deviation of the noise.
        count: The number of queries.
        generator: Where random numbers come from.
    """
    members = torch.rand(count, len(patterns), generator=generator).topk(size).indices
    means = patterns[members].mean(1)
    return Blends(means + noise * torch.randn(means.shape, generator=generator), members)


def run(config: Config) -> dict[str, Any]:
    """Every size of set and every way to find it; all see the same queries."""
    head = reports.stamp("blends", asdict(config), __file__)
    found: dict[tuple[int, str], list[float]] = {}
    with progress("blends", config.runs * len(SIZES)) as bar:
        for seed in range(config.seed, config.seed + config.runs):
            generator = torch.Generator().manual_seed(seed)
            patterns = torch.rand(config.patterns, config.dim, generator=generator) * 2 - 1
            for size in SIZES:
                sample = partial(draw, patterns, size, config.noise, generator=generator)
                for way, share in score(patterns, sample(config.samples), sample(config.queries)).items():
                    found.setdefault((size, way), []).append(share)
                bar.advance(f"{size} patterns")
    rows = [{"size": size, "way": way, "whole": spread(shares)} for (size, way), shares in found.items()]
    return {**head, "rows": rows}


def score(patterns: Tensor, train: Blends, test: Blends) -> dict[str, float]:
    """The share of blends whose whole set is found, by each method.

    Args:
        patterns: ``(N, d)``.
        train: Blends that temperatures and the likelihood are learned from.
        test: Blends to score.
    """
    # One member of each set is the origin that a likelihood learns from.
    learned = BayesianHopfield(patterns).fit(train.queries, train.members[:, 0], hidden_causes=0)
    nearest = AssociativeMemory(patterns, "dot", Softmax())
    return {
        "softmax, best k": test.whole(_best(nearest.scores(test.queries), test.size)),
        "softmax at rest": _tuned(partial(_softmax_at_rest, patterns), train, test),
        "support of sparsemax": _tuned(partial(_support, patterns), train, test),
        "ksubsets at rest": _tuned(partial(_subset_at_rest, patterns), train, test),
        "b-hop, best k": test.whole(_marked(learned.recall(test.queries, test.size).indices, len(patterns))),
    }


def _tuned(find: Callable[[float, Blends], Tensor], train: Blends, test: Blends) -> float:
    beta = max(BETAS, key=lambda beta: train.whole(find(beta, train)))
    return test.whole(find(beta, test))


def _softmax_at_rest(patterns: Tensor, beta: float, blends: Blends) -> Tensor:
    memory = AssociativeMemory(patterns, "dot", Softmax(beta))
    return _best(memory.weights(memory.retrieve(blends.queries, steps=None)), blends.size)


def _support(patterns: Tensor, beta: float, blends: Blends) -> Tensor:
    return AssociativeMemory(patterns, "dot", Sparsemax(beta)).weights(blends.queries) > 0


def _subset_at_rest(patterns: Tensor, beta: float, blends: Blends) -> Tensor:
    memory = AssociativeMemory(patterns, "dot", KSubsets(blends.size, beta))
    return _best(memory.weights(memory.retrieve(blends.queries, steps=None)), blends.size)


def _best(scores: Tensor, count: int) -> Tensor:
    return _marked(scores.topk(count).indices, scores.shape[1])


def _marked(members: Tensor, count: int) -> Tensor:
    """Sets ``(n, k)`` as a table of which patterns are in them, ``(n, N)``."""
    return torch.zeros(len(members), count, dtype=torch.bool).scatter(1, members, True)
