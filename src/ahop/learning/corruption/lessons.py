"""What a corruption is learned from, and the kinds of likelihood to choose from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from torch import Tensor

from ahop._precision import Units

# Values that rounding leaves, at most, and how many entries show them.
_FEW = 32
_SEEN = 2**16


@dataclass(frozen=True)
class Families:
    """The kinds of likelihood that may be found: terms for single dimensions, regimes of them, hidden causes, values
    at a floor, a moved space, values in another scale, and plain metrics.

    Classes such as :class:`ahop.similarity.Likelihood`, :class:`~ahop.similarity.Regimes`,
    :class:`~ahop.similarity.Correlated`, :class:`~ahop.similarity.Floor`, :class:`~ahop.similarity.Moved`,
    :class:`~ahop.similarity.Transformed` and :class:`~ahop.similarity.Nearest`; None where a kind is not wanted.
    """

    independent: Any
    regimes: Any = None
    correlated: Any = None
    floor: Any = None
    moved: Any = None
    transformed: Any = None
    nearest: Any = None


@dataclass(frozen=True)
class Lessons:
    """What there is to learn from: patterns ``(N, d)``, queries ``(n, d)``, and what else is known of them.

    An origin of -1 is one that nobody knows; None: nobody knows any. ``zero`` is where values of nought lie, and
    ``order`` what was said of the order of columns: ``(d,)`` of a curve, ``(height, width)`` of an image, ``()`` for
    none; None: nobody has said.
    """

    patterns: Tensor
    queries: Tensor
    origins: Tensor | None = None
    observed: Tensor | None = None
    log_prior: Tensor | None = None
    zero: float = 0.0
    order: tuple[int, ...] | None = None

    @cached_property
    def step(self) -> float:
        """From one value of the queries to the next, where all are rounded to a few; else 0.

        Example:
            >>> Lessons(torch.zeros(1, 3), torch.arange(3.0).repeat(9, 1)).step
            1.0
        """
        values = self.queries.flatten() if self.observed is None else self.queries[self.observed]
        # Continuous ones differ even where they are few.
        found = values[:_SEEN].unique()
        if not 2 <= len(found) <= min(_FEW, len(values) // 8):
            return 0.0
        return float(found[-1] - found[0]) / (len(found) - 1)

    @property
    def labelled(self) -> bool:
        """Whether all origins are known."""
        return self.origins is not None and bool((self.origins >= 0).all())

    def part(self, rows: Tensor) -> Lessons:
        """The same with some of the queries."""
        origins = None if self.origins is None else self.origins[rows]
        observed = None if self.observed is None else self.observed[rows]
        return replace(self, queries=self.queries[rows], origins=origins, observed=observed)

    def seen(self, view: Any) -> Lessons:
        """The same of rows that are looked at in some way (:class:`.views.View`)."""
        if not view.name:
            return self
        return replace(self, patterns=view.of(self.patterns), queries=view.of(self.queries), zero=0.0)

    def measured(self, units: Units) -> Lessons:
        zero = (self.zero - units.centre) / units.unit
        return replace(self, patterns=units.measure(self.patterns), queries=units.measure(self.queries), zero=zero)

    def log_density_of(self, units: Units) -> float:
        """What the log density of a query owes to the unit of its values, on average."""
        seen = self.queries.shape[1] if self.observed is None else float(self.observed.sum(1).double().mean())
        return seen * math.log(units.unit)
