"""The table of the page on trust."""

from __future__ import annotations

from ahop_paper.pages.markdown import Grid, Report, figure
from ahop_paper.pages.tables.registry import Row, by, cells_of, each, shown


@shown("trust", "trust")
def trust(report: Report) -> Grid:
    """How sure and how right a memory is: without labels, with answers that were checked, and with labels."""
    rows = report["rows"]
    found, ways = by(rows, "data", "way"), each(rows, "way")

    def cell(row: Row) -> str:
        if not row["found"]:
            return f"not found ({figure(row['right'], 2)} right)"
        part = "" if row["found"] == row["fits"] else f", {row['found']} of {row['fits']} found"
        return f"{figure(row['sure'], 2)}, right {figure(row['right'], 2)}{part}"

    lines = [[data, *cells_of(found, [(data, way) for way in ways], cell)] for data in each(rows, "data")]
    return Grid(["", *ways], lines)
