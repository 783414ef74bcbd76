"""Whether probabilities mean what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._checks import Observed, integer
from ahop.learning.report import clopper_pearson
from ahop.memories.base import AssociativeMemory
from ahop.metrics import calibration_gap
from ahop.plot.answers import judged
from ahop.plot.canvas import BLUE, GREY, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def reliability(
    memory: AssociativeMemory,
    queries: Any,
    origins: Any,
    bins: int = 10,
    *,
    observed: Observed = None,
    ax: Axes | None = None,
) -> Axes:
    """A reliability diagram: of first choices that are this probable, which share is right?

    A point is a bin of queries, at the mean probability of its first choices and the share of them that is right, with
    the 90 % confidence interval of that share (Clopper and Pearson, 1934). Points on the diagonal are calibrated, those
    below it too sure. Bars at the foot are the share of queries in each bin, and the title has the expected calibration
    error over these bins (:func:`ahop.metrics.calibration_gap`).

    Args:
        memory: Any memory.
        queries: ``(n, d)``, which no fit has seen.
        origins: The pattern that each came from, ``(n,)``.
        bins: How many bins of equal width between 0 and 1; those without queries are not drawn.
        observed: As in :meth:`ahop.AssociativeMemory.recall`.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    return reliability_of(*judged(memory, queries, origins, observed), bins, ax=ax)


def reliability_of(sure: Tensor, right: Tensor, bins: int = 10, *, ax: Axes | None = None) -> Axes:
    """The diagram of answers that were judged already.

    Args:
        sure: The probability of each first choice, ``(n,)``.
        right: Whether it is right, ``(n,)``.
        bins: The number of bins, equally wide.
        ax: The axes to draw in; those of a new figure by default.
    """
    bins = integer(bins, "bins", 1)
    ax = axes(ax, 4.4, 4.2)
    place = (sure * bins).long().clamp(0, bins - 1)
    points, shares = [], torch.bincount(place, minlength=bins) / len(place)
    for bin in place.unique().tolist():
        inside = place == bin
        good, count = int(right[inside].sum()), int(inside.sum())
        low, high = clopper_pearson(good, count)
        points.append((float(sure[inside].mean()), good / count, good / count - low, high - good / count))
    across, up, below, above = zip(*points, strict=True)
    middles = (torch.arange(bins) + 0.5) / bins
    ax.bar(middles.tolist(), shares.tolist(), 1 / bins, color=GREY, alpha=0.3, label="share of queries")
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1, label="calibrated")
    ax.errorbar(across, up, (below, above), fmt="o-", color=BLUE, capsize=2, markersize=4, label="answers")
    error = 100 * calibration_gap(sure, right, bins)
    ax.set(xlabel="probability of the first choice", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1.02))
    ax.set_title(f"expected calibration error {error:.1f} %, {len(right):,} queries", pad=22)
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax
