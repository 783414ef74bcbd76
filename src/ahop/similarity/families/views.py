"""Ways to look at rows before they are compared: other scales, derivatives, and what each row is measured in."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.similarity.density import Density
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.families.order import order_of
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.transformed import SCALES, Transformed

# Fewer columns than that have no scale of their own.
_MIN_COLUMNS = 4
# Order and window of the derivatives of a curve (Savitzky and Golay, 1964), in columns.
_DERIVATIVES = ((1, 7), (1, 15), (2, 15))
# Equal values have a spread of so much of their size.
_ROUNDING = 1e-6
# Curves shorter than so many windows are not smoothed.
_MIN_WINDOWS = 4


class View(NamedTuple):
    """A way to look at rows: its name, and a :class:`~ahop.similarity.Transformed` that has it; None for rows as they
    are."""

    name: str = ""
    seen_by: Transformed | None = None

    @property
    def plain(self) -> bool:
        """Whether these are rows as they are."""
        return self.seen_by is None

    def apply(self, rows: Tensor) -> Tensor:
        """Rows as they are seen."""
        return rows if self.seen_by is None else self.seen_by.view(rows)

    def show(self, data: TrainingData) -> TrainingData:
        """The same data with rows as they are seen."""
        if self.plain:
            return data
        return replace(data, patterns=self.apply(data.patterns), queries=self.apply(data.queries), zero=0.0)

    def wrap(self, model: Density) -> Density:
        """A likelihood of rows as they are seen, for rows as they are."""
        return model if self.seen_by is None else self.seen_by.around(model)

    @property
    def keeps_dimensions(self) -> bool:
        """Whether noise of single dimensions may still be of single dimensions, as it is not in derivatives."""
        return self.seen_by is None or not self.seen_by.derivative

    def named(self, name: str) -> str:
        """What a kind of model is called that looks at rows like this."""
        return name if self.plain else f"{name}, {self.name}"


def in_column_units(data: TrainingData) -> View:
    """Each column around the mean of the patterns and in units of their standard deviation; 1 where it has none."""
    rows = data.patterns.double()
    centre, spread = rows.mean(0), rows.std(0, unbiased=False)
    unit = torch.where(spread > _ROUNDING * rows.abs().amax(0), spread, 1.0)
    seen_by = Transformed(Likelihood(rows.shape[1]), low=centre.tolist(), unit=unit.tolist())
    return View("in units of each column", seen_by)


def views_of(data: TrainingData) -> list[View]:
    """All that are worth a try: rows as they are first, derivatives where columns have an order."""
    dim = data.patterns.shape[1]
    views = [View()]
    if not data.same_width or dim < _MIN_COLUMNS:
        return views
    seen = data.queries if data.observed is None else data.queries[data.observed]
    lowest = min(float(values.min()) for values in (data.patterns, seen))

    def view(scale: str, own: bool, shape: tuple[int, ...] = (), derivative: int = 0, window: int = 7) -> View:
        width = dim * len(shape) if derivative else dim
        kind = Transformed(Likelihood(width), scale, own, low=lowest, shape=shape, derivative=derivative, window=window)
        slopes = ("", "slopes", "curvature")[derivative]
        smoothed = f" over {window} columns" if derivative and len(shape) == 1 else ""
        words = ("" if SCALES[scale].plain else scale, slopes + smoothed, "own scale" if own else "")
        return View(", ".join(word for word in words if word), kind)

    if data.observed is not None:
        # Other ways to look at a row take all of it.
        return [*views, view("logarithm", False), view("square root", False)]
    views += [view(scale, own) for scale, own in product(SCALES, (False, True)) if own or not SCALES[scale].plain]
    shape = order_of(data.patterns) if data.order is None else data.order
    steps = _DERIVATIVES if len(shape) == 1 else ((1, 0),) * len(shape[:1])
    for (derivative, window), scale, own in product(steps, ("as it is", "logarithm"), (False, True)):
        if window * _MIN_WINDOWS <= shape[0]:
            views.append(view(scale, own, shape, derivative, window))
    return views
