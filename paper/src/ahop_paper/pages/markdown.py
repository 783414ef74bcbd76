"""Reports as text: figures as we write them, and tables of Markdown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Report = dict[str, Any]


class Grid(NamedTuple):
    """A table: the head of each column, and lines of cells, with ``**`` around what is bold."""

    head: list[str]
    lines: list[list[str]]


def read(folder: str | os.PathLike[str], name: str) -> Report:
    """One report of the folder."""
    path = Path(folder) / f"{name}.json"
    try:
        report = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path} cannot be read; it is needed for the report") from error
    except ValueError as error:
        raise ValueError(f"{path} is no report") from error
    rows = report.get("rows") if isinstance(report, dict) else None
    if not rows or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{path} is no report: it has no rows")
    if report.get("quick"):
        raise ValueError(f"{path} comes from a quick run; the report wants full ones")
    return report


def figure(value: float, digits: int = 3) -> str:
    """Without the zero in front."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def plain(value: float) -> str:
    """As short as can be said of a ratio or a time: 4.0, 37."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def short(value: float) -> str:
    """Four figures that count at most, without a zero in front."""
    return f"{value:.4g}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.4g}"


def with_spread(figures: dict[str, Any], paper: float | None = None, digits: int = 3) -> str:
    """Mean and standard deviation, and the paper's figure in brackets.

    Args:
        figures: Mean, standard deviation and the single runs.
        paper: The paper's figure, if it has one.
        digits: How many after the point.
    """
    several = f" ± {figure(figures['std'], digits)}" if len(figures["runs"]) > 1 else ""
    return figure(figures["mean"], digits) + several + (f" ({figure(paper, digits)})" if paper is not None else "")


def bold(text: str, wanted: bool) -> str:
    """In bold, if wanted."""
    return f"**{text}**" if wanted else text


def interval(difference: dict[str, Any], digits: int = 3) -> str:
    """Where a difference lies in 95 % of cases, each end with its sign; nothing for that of one split."""
    if difference.get("low") is None:
        return ""
    # A rounded difference may be minus zero, which is none.
    ends = (difference[end] + 0.0 for end in ("low", "high"))
    return " to ".join(("+" if end >= 0 else "") + figure(end, digits) for end in ends)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    rows = ["|".join(["", *(f" {cell} " if cell else " " for cell in cells), ""]) for cells in (head, *lines)]
    return "\n".join([rows[0], "|---" * len(head) + "|", *rows[1:]])
