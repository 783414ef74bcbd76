"""Queries and what was found for them, drawn over each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ahop._checks import as_tensor
from ahop.memories.base import AssociativeMemory
from ahop.plot.answers import as_rows
from ahop.plot.canvas import BLUE, GREY, ORANGE, as_names, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows that are drawn where nobody says which, and names of columns that have room.
_ROWS, _NAMED = 4, 24


def matches(
    memory: AssociativeMemory,
    queries: Any,
    rows: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
    *,
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
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    dim = memory.patterns.shape[1]
    if memory.query_dim != dim:
        raise ValueError(f"memory must have queries as wide as its patterns, got {memory.query_dim} for {dim} values")
    labels = as_names(names, dim)
    asked = as_rows(memory, queries)
    places = torch.arange(min(_ROWS, len(asked))) if rows is None else as_tensor(rows, "rows", whole=True).reshape(-1)
    whole = bool(len(places)) and not places.is_floating_point()
    if not whole or not 0 <= int(places.min()) <= int(places.max()) < len(asked):
        raise ValueError(f"rows must be at least one row of the queries, from 0 to {len(asked) - 1}; got {rows!r}")
    found = memory.recall(asked[places], min(2, len(memory)))
    patterns, asked = memory.patterns[found.indices].detach().cpu(), asked[places].detach().cpu()
    reached = (found.indices >= 0).tolist()
    ax = axes(ax, 6.0, 0.8 + 0.9 * len(places))
    everything = torch.cat([patterns.flatten(), asked.flatten()])
    step = 1.1 * float(everything.max() - everything.min()) or 1.0
    middle = float(everything.max() + everything.min()) / 2
    for row, (both, some, query) in enumerate(zip(patterns, reached, asked, strict=True)):
        styles = (BLUE, "-", 1.0, "first choice"), (GREY, "-", 0.7, "runner-up")
        lines = [(one, *style) for one, is_there, style in zip(both, some, styles, strict=False) if is_there]
        for values, colour, line, alpha, label in [*lines[::-1], (query, ORANGE, "--", 1.0, "query")]:
            up = (values - middle - row * step).tolist()
            told = {text.get_label() for text in ax.lines}
            ax.plot(up, line, color=colour, alpha=alpha, linewidth=1.2, label=None if label in told else label)
    first = zip(found.indices[:, 0].tolist(), found.probabilities[:, 0].tolist(), strict=True)
    answers = [f"pattern {index}, {100 * sure:.0f} %" if index >= 0 else "a stranger" for index, sure in first]
    ax.set_yticks([-row * step for row in range(len(places))])
    ax.set_yticklabels([f"query {place}\n{answer}" for place, answer in zip(places.tolist(), answers, strict=True)])
    if names is not None:
        some = slice(None, None, math.ceil(dim / _NAMED))
        ax.set_xticks(range(dim)[some], labels[some], rotation=45, ha="right")
    else:
        ax.set_xlabel("column")
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax
