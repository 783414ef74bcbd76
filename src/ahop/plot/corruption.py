"""What a memory has learned of the corruption, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ahop.memories.base import AssociativeMemory
from ahop.plot.canvas import BLUE, GREY, ORANGE, as_names, axes, legend, name_columns
from ahop.similarity import Density

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Columns up to which each has a point; more make a curve.
_POINTS = 40
_MARKS = ((BLUE, "o"), (ORANGE, "s"), (GREY, "^"))


def corruption(memory: AssociativeMemory, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """What happens to queries, one point a column: the shift of values and their noise, or what else was learned.

    It is what the likelihood itself tells (:meth:`~ahop.similarity.Density.curves`): noise and shift of single
    dimensions, how far hidden causes move each, how often a value is off the floor, the gains. The title says what
    kind of corruption was found. Where queries are of several kinds, it is the most common one.

    Args:
        memory: A memory that learns a likelihood: :class:`~ahop.BayesianHopfield`.
        names: Of the columns; their numbers when None.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    similarity = memory.similarity
    if not isinstance(similarity, Density):
        raise ValueError(f"memory must have learned a likelihood, as b-hop does; its similarity is {similarity.name!r}")
    parts = similarity.parts()
    share, part = max(parts, key=lambda one: one[0])
    curves = [(title, values.detach().cpu()) for title, values, places in part.curves() if places is None]
    if not curves:
        raise ValueError(f"memory must know something of each column, and {part.name!r} tells nothing of them")
    labels, dots = as_names(names, len(curves[0][1])), len(curves[0][1]) <= _POINTS
    ax = axes(ax, 6.0, 3.2)
    ax.axhline(0, color=GREY, linewidth=0.8)
    for (title, values), (colour, sign) in zip(curves, _MARKS, strict=False):
        style = {"marker": sign, "linestyle": "none"} if dots else {"linewidth": 1.2}
        ax.plot(values.tolist(), color=colour, label=title, **style)
    if names is not None:
        name_columns(ax, labels)
    ax.set_xlabel("column")
    ax.set_ylabel(similarity.curve_unit("in the units of the data"))
    found = memory.report.chosen if memory.report is not None else ""
    ax.set_title(f"{found}, {100 * share:.0f} % of queries" if len(parts) > 1 else found, pad=22)
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax
