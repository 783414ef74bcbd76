"""What a corruption is learned from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ahop._precision import Units
from ahop._queries import Queries

# Values that queries are rounded to, at most, and entries that are looked at to see them.
_MOST_LEVELS = 32
_EXAMINED_ENTRIES = 2**16


@dataclass(frozen=True)
class TrainingData:
    """What there is to learn from: patterns ``(N, d)``, queries ``(n, d)``, and what else is known of them.

    An origin of -1 is unknown; None: none is known. ``zero`` is where values of nought lie, and
    ``order`` what was said of the order of columns: ``(d,)`` of a curve, ``(height, width)`` of an image, ``()`` for
    none; None: nobody has said. ``room`` ``(N,)`` is how many queries come from each pattern at most; None: any number.
    Patterns that are ``scattered`` are a mean followed by standard deviations, ``(N, 2d)``.
    """

    patterns: Tensor
    queries: Tensor
    origins: Tensor | None = None
    observed: Tensor | None = None
    log_prior: Tensor | None = None
    zero: float = 0.0
    order: tuple[int, ...] | None = None
    room: Tensor | None = None
    scattered: bool = False

    @cached_property
    def step(self) -> float:
        """From one value of the queries to the next, where all are rounded to a few; else 0.

        Example:
            >>> TrainingData(torch.zeros(1, 3), torch.arange(3.0).repeat(9, 1)).step
            1.0
        """
        values = self.queries.flatten() if self.observed is None else self.queries[self.observed]
        # Continuous ones differ even where they are few.
        found = values[:_EXAMINED_ENTRIES].unique()
        if not 2 <= len(found) <= min(_MOST_LEVELS, len(values) // 8):
            return 0.0
        return float(found[-1] - found[0]) / (len(found) - 1)

    @property
    def labelled(self) -> bool:
        """Whether all origins are known."""
        return self.origins is not None and bool((self.origins >= 0).all())

    @property
    def same_width(self) -> bool:
        """Whether queries have as many dimensions as patterns."""
        return self.queries.shape[1] == self.means.shape[1]

    @property
    def complete_count(self) -> float:
        """How many complete queries have as many values as were observed.

        Example:
            >>> seen = torch.tensor([[True, False], [True, True], [False, True]])
            >>> TrainingData(torch.zeros(1, 2), torch.zeros(3, 2), observed=seen).complete_count
            2.0
        """
        if self.observed is None:
            return float(len(self.queries))
        return float(self.observed.sum()) / self.observed.shape[1]

    @property
    def means(self) -> Tensor:
        """The patterns, without their standard deviations, ``(N, d)``."""
        return self.patterns[:, : self.patterns.shape[1] // 2] if self.scattered else self.patterns

    @property
    def rows(self) -> Tensor:
        """The indices of all queries, ``(n,)``."""
        return torch.arange(len(self.queries), device=self.queries.device)

    @property
    def known(self) -> Tensor:
        """The queries whose origins are known, ``(m,)``."""
        return self.rows[:0] if self.origins is None else (self.origins >= 0).nonzero().squeeze(1)

    @property
    def all_origins(self) -> Tensor:
        """The origin of each query ``(n,)``, -1 where nobody knows it."""
        return torch.full_like(self.rows, -1) if self.origins is None else self.origins

    @property
    def log_priors(self) -> Tensor:
        """How often each pattern is asked for ``(N,)``: what was said, or all alike."""
        count = len(self.patterns)
        return self.patterns.new_full((count,), -math.log(count)) if self.log_prior is None else self.log_prior

    @property
    def gaps(self) -> Tensor:
        """What labelled pairs leave unexplained, ``(n, d)``."""
        return self.queries - self.means[self.origins]

    def part(self, rows: Tensor | slice) -> TrainingData:
        """The same with some of the queries."""
        asked = Queries(self.queries, self.observed)[rows]
        origins = None if self.origins is None else self.origins[rows]
        return replace(self, queries=asked.rows, origins=origins, observed=asked.observed)

    def measured(self, units: Units) -> TrainingData:
        zero, patterns = (self.zero - units.centre) / units.unit, units.measure(self.means)
        if self.scattered:
            patterns = torch.cat([patterns, self.patterns[:, patterns.shape[1] :].to(patterns) / units.unit], 1)
        return replace(self, patterns=patterns, queries=units.measure(self.queries), zero=zero)

    def beside(self, means: Tensor) -> TrainingData:
        """The same with other means ``(N, d)``; each keeps the standard deviations that are there."""
        return replace(self, patterns=torch.cat([means, self.patterns[:, means.shape[1] :]], 1))

    def log_density_of(self, units: Units) -> float:
        """What the log density of a query owes to the unit of its values, on average."""
        seen = self.queries.shape[1] if self.observed is None else float(self.observed.sum(1).double().mean())
        return seen * math.log(units.unit)
