"""What a corruption is learned from, and the kinds of likelihood to choose from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from ahop._precision import Units


@dataclass(frozen=True)
class Families:
    """The kinds of likelihood that may be found: terms for single dimensions, regimes of them, and hidden causes.

    Classes such as :class:`ahop.similarity.Likelihood`, :class:`~ahop.similarity.Regimes` and
    :class:`~ahop.similarity.Correlated`; None where a kind is not wanted.
    """

    independent: Any
    regimes: Any = None
    correlated: Any = None


@dataclass(frozen=True)
class Lessons:
    """What there is to learn from: patterns ``(N, d)``, queries ``(n, d)``, and what else is known of them."""

    patterns: Tensor
    queries: Tensor
    origins: Tensor | None = None
    observed: Tensor | None = None
    log_prior: Tensor | None = None

    def measured(self, units: Units) -> Lessons:
        return replace(self, patterns=units.measure(self.patterns), queries=units.measure(self.queries))

    def log_density_of(self, units: Units) -> float:
        """What the log density of a query owes to the unit of its values, on average."""
        seen = self.queries.shape[1] if self.observed is None else float(self.observed.sum(1).double().mean())
        return seen * math.log(units.unit)
