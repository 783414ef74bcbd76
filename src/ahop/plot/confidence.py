"""How sure a memory is of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ahop._checks import Observed, integer
from ahop.memories.base import AssociativeMemory
from ahop.plot.answers import first_choices
from ahop.plot.canvas import BLUE, axes, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def confidence(
    memory: AssociativeMemory, queries: Any, bins: int = 20, *, observed: Observed = None, ax: Axes | None = None
) -> Axes:
    """A histogram of how probable first choices are; it needs no origins.

    Its mean, a dashed line, is the share of first choices that should be right, if the probabilities hold. The title
    says where no labels have checked them.

    Args:
        memory: Any memory.
        queries: ``(n, d)``.
        bins: How many bars of equal width between 0 and 1.
        observed: As in :meth:`~ahop.memories.base.AssociativeMemory.scores`.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    bins = integer(bins, "bins", 1)
    _, sure, verified = first_choices(memory, queries, observed)
    ax = axes(ax)
    mean = float(sure.mean())
    ax.hist(sure.numpy(), bins, range=(0, 1), color=BLUE, alpha=0.8)
    ax.axvline(mean, color=ink(ax), linestyle="--", linewidth=1)
    ax.set(xlabel="probability of the first choice", ylabel="queries", xlim=(0, 1))
    ax.set_title(f"{100 * mean:.0f} % right, if probabilities hold" + ("" if verified else "; not checked"))
    return ax
