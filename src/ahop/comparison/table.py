"""What a comparison found: a row for each memory and baseline, and a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ahop._extras import require
from ahop.learning.report import beats_chance, clopper_pearson

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

# How often two that are equally good may be told apart by chance.
_SIGNIFICANCE_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Row:
    """One memory or baseline.

    Attributes:
        name: The short name of the memory, or what the baseline does.
        right: Whether the first choice of each query was right, ``(n,)``; empty where there is none.
        confidence: The mean probability of first choices; NaN where there is none.
        calibration: Their expected calibration error (:func:`ahop.metrics.calibration_gap`).
        seconds: To learn and to answer.
        note: Why it has no answers; empty where it has.
    """

    name: str
    right: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool), repr=False)
    confidence: float = math.nan
    calibration: float = math.nan
    seconds: float = math.nan
    note: str = ""

    @property
    def accuracy(self) -> float:
        """The share of first choices that were right; NaN where there are none."""
        return float(self.right.double().mean()) if len(self.right) else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Its 90 % confidence interval (Clopper and Pearson, 1934); NaN where there are no first choices."""
        return clopper_pearson(int(self.right.sum()), len(self.right)) if len(self.right) else (math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Comparison:
    """What :func:`compare` found; ``print`` shows a table and the verdict.

    Attributes:
        rows: Baselines, simplest first; then memories, b-hop first.
        patterns: How many are stored.
    """

    rows: tuple[Row, ...]
    patterns: int

    @property
    def judged(self) -> tuple[Row, ...]:
        """The rows that have answers."""
        return tuple(row for row in self.rows if len(row.right))

    @property
    def best(self) -> Row:
        """The one that was right most often; of equals, the first."""
        return max(self.judged, key=lambda row: row.accuracy)

    @property
    def verdict(self) -> str:
        """The first that is within chance of the best (:func:`mcnemar`), in a sentence."""
        best = self.best
        if not beats_chance(int(best.right.sum()), len(best.right), self.patterns):
            return "nothing is better than chance here"
        chances = [(row, mcnemar(row.right, best.right)) for row in self.judged]
        first, chance = next(one for one in chances if one[1] > _SIGNIFICANCE_LEVEL)
        if best is self.judged[0]:
            return f"use {best.name}: nothing is better"
        if first is best:
            return f"use {best.name}: nothing above it is as good (McNemar's test, p < {_SIGNIFICANCE_LEVEL})"
        return f"{first.name} is as good as {best.name} (McNemar's test, p = {chance:.2f}): use it"

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame; shares, not percentages."""
        require("pandas", extra="tables")
        import pandas

        return pandas.DataFrame(
            {
                "accuracy": [row.accuracy for row in self.rows],
                "low": [row.interval[0] for row in self.rows],
                "high": [row.interval[1] for row in self.rows],
                "confidence": [row.confidence for row in self.rows],
                "calibration error": [row.calibration for row in self.rows],
                "seconds": [row.seconds for row in self.rows],
                "note": [row.note for row in self.rows],
            },
            index=pandas.Index([row.name for row in self.rows], name="name"),
        )

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """The same as a picture: see :func:`ahop.plot.comparison`."""
        # Pictures know of this, and not the other way round.
        drawn: Axes = import_module("ahop.plot").comparison(self, ax=ax)
        return drawn

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{'':{width}}  right  interval   confidence  calibration error  seconds"]
        for row in self.rows:
            low, high = (100 * end for end in row.interval)
            text = (
                f"{_percent(row.accuracy):>5}  {f'{low:.0f} to {high:.0f}':9}  {_percent(row.confidence):>10}"
                f"  {_percent(row.calibration):>17}  {row.seconds:7.1f}"
            )
            lines.append(f"{row.name:{width}}  {row.note or text}")
        count = len(self.best.right)
        return "\n".join([*lines, f"{count:,} queries, each held out once; 90 % confidence intervals", self.verdict])


def mcnemar(some: Tensor, others: Tensor) -> float:
    """How likely it is by chance that two which are equally good differ as much (McNemar, 1947), exactly.

    Only queries that one of them alone has right tell anything: by chance, half of these are of either.

    Args:
        some, others: Whether each has each query right, ``(n,)``.

    Example:
        >>> right = torch.arange(20) < 10
        >>> mcnemar(right, right), round(mcnemar(right, torch.arange(20) < 16), 3)
        (1.0, 0.031)
    """
    from scipy.stats import binomtest

    apart = int((some != others).sum())
    return float(binomtest(int((some & ~others).sum()), apart).pvalue) if apart else 1.0


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.0f} %"
