"""How often memories and baselines are right, beside each other."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

from ahop.plot.canvas import BLUE, GREY, ORANGE, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Letters of the verdict in a line.
_LINE = 56


def comparison(found: Any, *, ax: Axes | None = None) -> Axes:
    """The share of held-out queries that each memory and baseline has right, with its 90 % confidence interval.

    Beside it, how sure a memory was on average: where that lies to the right of the interval, it is too sure. Those
    that have no answers are left out; ``print(found)`` says why.

    Args:
        found: The :class:`ahop.Comparison` that :func:`ahop.compare` returns.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    # By what it has: memories can be drawn, and need nothing of what compares them.
    if not all(hasattr(found, needed) for needed in ("judged", "best", "verdict")):
        raise TypeError(f"found must be what ahop.compare returns, got {type(found).__name__}")
    rows = found.judged[::-1]
    ax = axes(ax, 6.4, 0.9 + 0.27 * len(rows))
    for place, row in enumerate(rows):
        low, high = row.interval
        ends = ([row.accuracy - low], [high - row.accuracy])
        colour = BLUE if row is found.best else GREY
        ax.errorbar([row.accuracy], [place], xerr=ends, fmt="o", color=colour, capsize=2, markersize=5)
    sure = [(row.confidence, place) for place, row in enumerate(rows) if row.confidence == row.confidence]
    across, up = zip(*sure, strict=True) if sure else ((), ())
    ax.plot(across, up, "|", color=ORANGE, markersize=11, markeredgewidth=2, label="mean confidence")
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.set(xlabel="share of first choices that are right", xlim=(-0.02, 1.02))
    ax.set_title(fill(found.verdict, _LINE), pad=22)
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax
