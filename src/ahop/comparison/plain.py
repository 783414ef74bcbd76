"""What anybody could do without a memory, simplest first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from ahop._queries import Queries
from ahop.linkage.alternatives import nearest, regressed
from ahop.similarity.families.moved import turns
from ahop.similarity.squares import squared_distances


@dataclass(frozen=True, eq=False)
class Fold:
    """Stored patterns ``(N, d)``, queries to learn from with their origins, and queries to answer."""

    patterns: Tensor
    queries: Queries
    origins: Tensor
    asked: Queries

    @property
    def same_width(self) -> bool:
        """Whether queries have as many values as patterns."""
        return self.asked.rows.shape[1] == self.patterns.shape[1]

    @property
    def train(self) -> Tensor:
        """Queries to learn from, with the mean of its column where a value is missing."""
        return _filled(self.queries, self._mean)

    @property
    def wanted(self) -> Tensor:
        """Queries to answer, with the mean of what was learned from where a value is missing."""
        return _filled(self.asked, self._mean)

    @property
    def _mean(self) -> Tensor:
        rows, observed = self.queries.rows, self.queries.observed
        return rows.mean(0) if observed is None else (rows * observed).sum(0) / observed.sum(0).clamp_min(1)


def _filled(queries: Queries, mean: Tensor) -> Tensor:
    return queries.rows if queries.observed is None else torch.where(queries.observed, queries.rows, mean)


def _by_distance(fold: Fold) -> Tensor:
    return squared_distances(fold.patterns, fold.wanted).argmin(1)


def _by_cosine(fold: Fold) -> Tensor:
    return nearest(fold.patterns, fold.wanted)


def _by_centred_cosine(fold: Fold) -> Tensor:
    return nearest(fold.patterns - fold.patterns.mean(0), fold.wanted - fold.train.mean(0))


def _by_correlation(fold: Fold) -> Tensor:
    return nearest(*(rows - rows.mean(1, keepdim=True) for rows in (fold.patterns, fold.wanted)))


def _by_regression(fold: Fold) -> Tensor:
    return nearest(*_regressed(fold))


def _by_regression_and_csls(fold: Fold) -> Tensor:
    patterns, queries = (normalize(rows, dim=1) for rows in _regressed(fold))
    return turns.nearest(queries, patterns)


def _regressed(fold: Fold) -> tuple[Tensor, Tensor]:
    """Patterns and predictions of them by ridge regression, both around the mean of the patterns."""
    centre = fold.patterns.mean(0)
    return fold.patterns - centre, regressed(fold.train, fold.patterns[fold.origins], fold.wanted) - centre


class Baseline(NamedTuple):
    """One of them.

    Attributes:
        name: What a table calls it.
        answer: The first choice for each query to answer, ``(n,)``.
        maps: Whether queries may have another width than patterns.
    """

    name: str
    answer: Callable[[Fold], Tensor]
    maps: bool = False


BASELINES = (
    Baseline("nearest by L2", _by_distance),
    Baseline("nearest by cosine", _by_cosine),
    Baseline("nearest by centred cosine", _by_centred_cosine),
    Baseline("nearest by correlation", _by_correlation),
    Baseline("ridge regression, cosine", _by_regression, maps=True),
    Baseline("ridge regression, CSLS", _by_regression_and_csls, maps=True),
)
