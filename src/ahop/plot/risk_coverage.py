"""What it costs to answer more queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ahop._checks import Observed
from ahop.memories.base import AssociativeMemory
from ahop.plot.answers import judged
from ahop.plot.canvas import BLUE, GREY, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def risk_coverage(
    memory: AssociativeMemory, queries: Any, origins: Any, *, observed: Observed = None, ax: Axes | None = None
) -> Axes:
    """The risk-coverage curve: how many answers are wrong, if only the surest queries are answered?

    Across is the share of queries that are answered, by falling probability of the first choice; up is the share of
    these answers that is wrong. The curve ends where all are answered, at the overall error, which the dashed line
    repeats: whoever selects at random stays there. Queries that are equally sure are answered together.

    Args:
        memory: Any memory.
        queries: ``(n, d)``, which no fit has seen.
        origins: The pattern that each came from, ``(n,)``.
        observed: As in :meth:`ahop.AssociativeMemory.recall`.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    sure, right = judged(memory, queries, origins, observed)
    ax = axes(ax)
    answered = torch.arange(1, len(sure) + 1)
    risk = (~right).cumsum(0) / answered
    # Among equals any order would be as good, so only the last of them counts.
    last = torch.ones_like(right)
    last[:-1] = sure[1:] < sure[:-1]
    across, up = (answered / len(sure))[last], risk[last]
    ax.axhline(float(risk[-1]), color=GREY, linestyle="--", linewidth=1)
    ax.plot(across.tolist(), up.tolist(), color=BLUE, marker="o" if len(across) == 1 else None)
    ax.set(xlabel="share of queries answered", ylabel="share of answers that are wrong", xlim=(0, 1.02))
    ax.set_ylim(0, 1.1 * max(float(risk.max()), 0.05))
    ax.set_title(f"{100 * float(risk[-1]):.1f} % wrong if all {len(right):,} are answered")
    return ax
