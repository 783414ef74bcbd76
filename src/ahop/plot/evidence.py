"""Which columns decided."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ahop._checks import Observed, integer
from ahop.memories.base import AssociativeMemory
from ahop.memories.evidence import Evidence, evidence_by_column
from ahop.plot.canvas import BLUE, GREY, ORANGE, as_names, axes, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Less than this is not worth a bar, in nats.
_NOTHING = 5e-3


def evidence(
    memory: AssociativeMemory,
    query: Any,
    names: Sequence[str] | None = None,
    columns: int = 12,
    *,
    pair: tuple[int, int] | None = None,
    observed: Observed = None,
    ax: Axes | None = None,
) -> Axes:
    """A waterfall of what each column says for the first choice (blue) against the runner-up (orange), in nats.

    A bar begins where the one above it ends, so the last ends at the log odds. Columns come by size, and what is not
    shown by name is summed: the other columns, what columns only say together, and the prior, where they have a part.
    See :func:`ahop.memories.evidence_by_column` for what a bar means.

    Args:
        memory: One whose probabilities are a softmax of its scores.
        query: ``(d,)``.
        names: Of the columns; their numbers when None.
        columns: How many to show by name, at most.
        pair: The patterns to compare, the first for (blue) and the second against (orange), as where queries are
            matched together; None takes the first choice and the runner-up.
        observed: As in :meth:`~ahop.memories.base.AssociativeMemory.scores`.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    shown, names = integer(columns, "columns", 1), as_names(names, memory.query_dim)
    if pair is None:
        found = evidence_by_column(memory, query, observed=observed)
    else:
        found = _between(memory, query, pair, observed)
    order = found.columns.abs().argsort(descending=True).tolist()
    # One column takes as much room by its name as it would among others.
    shown += len(order) == shown + 1
    bars = [(names[place], float(found.columns[place])) for place in order[:shown]]
    others = (f"{len(order) - shown} other columns", float(found.columns[order[shown:]].sum()))
    bars += [others] if len(order) > shown else []
    more = (("columns together", found.together), ("prior", found.prior))
    bars += [(name, size) for name, size in more if abs(size) >= _NOTHING]
    ax = axes(ax, 5.2, 1.3 + 0.22 * len(bars))
    end, ends = 0.0, [0.0]
    for row, (_, size) in enumerate(bars):
        ax.barh(row, size, 0.7, end, color=BLUE if size >= 0 else ORANGE)
        ax.plot([end + size] * 2, [row + 0.35, row + 0.65], color=GREY, linewidth=0.8)
        ax.annotate(
            f"{size:+.2f}",
            (max(end, end + size), row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            color=ink(ax),
            fontsize="small",
        )
        end += size
        ends.append(end)
    ax.barh(len(bars), found.total, 0.7, color=GREY)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(bars) + 1), [*(name for name, _ in bars), "log odds"])
    ax.set(xlabel=f"nats for pattern {found.first} against pattern {found.second}", ylim=(len(bars) + 0.6, -0.6))
    room = 0.03 * (max(ends) - min(ends)) or 1.0
    # To the right there is a figure beside each bar.
    ax.set_xlim(min(ends) - room, max(ends) + 5 * room)
    return ax


def _between(memory: AssociativeMemory, query: Any, pair: tuple[int, int], observed: Observed) -> Evidence:
    """The evidence for the first of two patterns against the second: that of a memory which holds these alone."""
    first, second = pair
    if first == second or not all(0 <= one < len(memory) for one in pair):
        raise ValueError(f"pair must be two patterns, from 0 to {len(memory) - 1}; got {pair!r}")
    rows = torch.arange(len(memory))
    both = copy.copy(memory).remove(rows[(rows != first) & (rows != second)])
    found = evidence_by_column(both, query, observed=observed)
    # It keeps the order of the patterns, and prefers the likelier one.
    sign = 1 if (found.first < found.second) == (first < second) else -1
    columns, prior, together = sign * found.columns, sign * found.prior, sign * found.together
    return Evidence(first, second, columns, prior, together, sign * found.total)
