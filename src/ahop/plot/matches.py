"""Queries and what was found for them, drawn over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._checks import Observed, as_tensor
from ahop.memories.base import AssociativeMemory
from ahop.plot.answers import as_rows
from ahop.plot.canvas import BLUE, GREY, ORANGE, as_names, axes, legend, name_columns, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows that are drawn where nobody says which.
_ROWS = 4


def matches(
    memory: AssociativeMemory,
    queries: Any,
    rows: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    *,
    observed: Observed = None,
    ax: Axes | None = None,
) -> Axes:
    """Queries (orange, dashed) over their first choice (blue) and the runner-up (faint), as curves.

    For columns that have an order: spectra, series, profiles. Rows stand above each other, each with the first choice
    and its probability beside it; a query that the memory refuses stands alone.

    Args:
        memory: One whose queries are as wide as its patterns.
        queries: ``(n, d)``.
        rows: Which of them; the first four when None.
        names: Of the columns; their numbers when None.
        observed: As in :meth:`~ahop.memories.base.AssociativeMemory.scores`; curves have gaps where values are missing.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    dim = memory.patterns.shape[1]
    if memory.query_dim != dim:
        raise ValueError(f"memory must have queries as wide as its patterns, got {memory.query_dim} for {dim} values")
    asked = as_rows(memory, queries, observed)
    places = torch.arange(min(_ROWS, len(asked))) if rows is None else as_tensor(rows, "rows", whole=True).reshape(-1)
    whole = bool(len(places)) and not places.is_floating_point()
    if not whole or not 0 <= int(places.min()) <= int(places.max()) < len(asked):
        raise ValueError(f"rows must be at least one row of the queries, from 0 to {len(asked) - 1}; got {rows!r}")
    shown = asked[places]
    found = memory.recall(shown.rows, min(2, len(memory)), observed=shown.observed)
    first = zip(places.tolist(), found.indices[:, 0].tolist(), found.probabilities[:, 0].tolist(), strict=True)
    told = [
        f"query {place}\n{f'pattern {index}, {100 * sure:.0f} %' if index >= 0 else 'a stranger'}"
        for place, index, sure in first
    ]
    lost = torch.zeros_like(shown.rows, dtype=torch.bool) if shown.observed is None else ~shown.observed
    return matches_of(memory.patterns, shown.rows.masked_fill(lost, math.nan), found.indices, told, names, ax=ax)


def matches_of(
    patterns: Tensor,
    queries: Tensor,
    found: Tensor,
    told: Sequence[str],
    names: Sequence[str] | None = None,
    *,
    first: str = "first choice",
    ax: Axes | None = None,
) -> Axes:
    """Queries over patterns that were found already.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d)``, NaN where a value is missing.
        found: The pattern and the runner-up of each ``(n, k)``, -1 for none; k is 1 or 2.
        told: What stands beside each.
        names: Of the columns; their numbers when None.
        first: What the pattern is called.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    labels, lines = as_names(names, patterns.shape[1]), patterns[found.clamp_min(0)].detach().cpu()
    asked, reached = queries.detach().cpu(), (found >= 0).tolist()
    ax = axes(ax, 6.0, 0.8 + 0.9 * len(asked))
    everything = torch.cat([lines.flatten(), asked[asked.isfinite()]])
    step = 1.1 * float(everything.max() - everything.min()) or 1.0
    middle = float(everything.max() + everything.min()) / 2
    styles = (BLUE, "-", 1.0, first), (GREY, "-", 0.7, "runner-up")
    for row, (both, some, query) in enumerate(zip(lines, reached, asked, strict=True)):
        shown = [(one, *style) for one, is_there, style in zip(both, some, styles, strict=False) if is_there]
        for values, colour, line, alpha, label in [*shown[::-1], (query, ORANGE, "--", 1.0, "query")]:
            up = (values - middle - row * step).tolist()
            known = {text.get_label() for text in ax.lines}
            ax.plot(up, line, color=colour, alpha=alpha, linewidth=1.2, label=None if label in known else label)
    ax.set_yticks([-row * step for row in range(len(asked))], [plain(text) for text in told])
    if names is not None:
        name_columns(ax, labels)
    else:
        ax.set_xlabel("column")
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax
