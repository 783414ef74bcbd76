"""The contract of a plain model that pairs alone teach, in a closed form: a choice can afford to try all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from ahop.similarity.density import Density
from ahop.similarity.families.training import TrainingData

_TINY = 1e-12


class Principal(NamedTuple):
    """Queries around their mean ``(d',)``, by singular values ``(k,)`` along directions ``(k, d')``; the patterns'
    mean ``(d,)``, and what goes with each direction in them ``(k, d)``; the mean square of a query's values."""

    query_mean: Tensor
    values: Tensor
    directions: Tensor
    pattern_mean: Tensor
    wanted: Tensor
    square: float


@dataclass(frozen=True)
class Pairs:
    """Queries ``(n, d')`` and the patterns that they came from ``(n, d)``; values of nought lie at ``zero``; which
    values of the queries were observed ``(n, d')``, if not all."""

    queries: Tensor
    origins: Tensor
    zero: float = 0.0
    observed: Tensor | None = None

    @classmethod
    def of(cls, data: TrainingData) -> Pairs:
        """Those of queries of which all origins are known."""
        return cls(data.queries, data.means[data.origins], data.zero, data.observed)

    @cached_property
    def principal(self) -> Principal:
        """What every linear regression of patterns on queries is made of, in float64."""
        queries, origins = self.queries.double(), self.origins.double()
        query_mean, pattern_mean = queries.mean(0), origins.mean(0)
        left, values, directions = torch.linalg.svd(queries - query_mean, full_matrices=False)
        wanted = left.mT @ (origins - pattern_mean)
        square = float((queries - query_mean).square().sum(0).mean()) + _TINY
        return Principal(query_mean, values, directions, pattern_mean, wanted, square)


class Recipe(ABC):
    """A plain model that is screened on a few folds before the best are compared with richer ones.

    Attributes:
        mapped: Whether queries are mapped to patterns first: queries may then have another number of dimensions, and a
            richer family may know the map better.
        complexity: As that of a :class:`~ahop.similarity.families.family.Family`.
    """

    mapped: ClassVar[bool] = False
    complexity: ClassVar[int] = 10

    @property
    @abstractmethod
    def name(self) -> str:
        """What tables and reports call it."""

    @abstractmethod
    def fit(self, pairs: Pairs) -> Density:
        """What pairs teach."""
