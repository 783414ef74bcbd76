from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ahop.paper.commands import common
from ahop.paper.pages import tables
from ahop.paper.pages.markdown import Grid, read

RESULTS = Path(__file__).parents[3] / "results"
REPORTS = {name: read(RESULTS, name) for table in tables.TABLES.values() for name in table.reads}


@given(st.data())
@pytest.mark.parametrize("name", tables.TABLES)
def test_a_report_with_some_rows_missing_still_renders(name, data):
    """Whichever rows these are, and each line has its cells."""
    make, reads, _ = tables.TABLES[name]
    parts = []
    for report in (REPORTS[name] for name in reads):
        rows = report["rows"]
        kept = data.draw(st.sets(st.sampled_from(range(len(rows))), min_size=1))
        parts.append({**report, "rows": [rows[place] for place in sorted(kept)]})
    grid = make(*parts)
    assert all(len(line) == len(grid.head) for line in grid.lines)


@pytest.mark.parametrize(("name", "lost"), [("real", {"model": "b-hop", "data": "gas"}), ("bags", {"data": "fox"})])
def test_a_cell_that_is_missing_is_empty_and_all_others_stand_as_they_were(name, lost):
    (report,) = (REPORTS[one] for one in tables.TABLES[name].reads)
    rows = [row for row in report["rows"] if any(row[key] != value for key, value in lost.items())]
    whole, parted = tables.TABLES[name].make(report), tables.TABLES[name].make({**report, "rows": rows})
    for line in parted.lines:
        (before,) = (other for other in whole.lines if other[0] == line[0])
        cells = dict(zip(whole.head, before, strict=True))
        assert all(cell in ("", cells[column]) for column, cell in zip(parted.head, line, strict=True))
    assert sum(cell == "" for line in parted.lines for cell in line) == (1 if "model" in lost else 0)


def test_what_nobody_knows_any_more_is_shown_by_its_name():
    row = {"data": "smoke", "model": "guess", "accuracy": 0.5}
    assert tables.real({"rows": [row]}) == Grid(["", "learns from", "smoke"], [["guess", "", ".500"]])


def printed(grid):
    console = Console(width=300, record=True, file=StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "console", console)
        common.show(grid, "Title")
    return console.export_text()


@pytest.mark.parametrize("name", ["real", "ablations", "modalities", "tables-sound", "timing", "claims"])
def test_the_terminal_shows_the_columns_and_cells_of_the_page(name):
    table = tables.TABLES[name]
    grid = table.make(*(REPORTS[one] for one in table.reads))
    text = printed(grid)
    for cell in (*grid.head, *(cell for line in grid.lines for cell in line)):
        plain = cell.replace("**", "").replace("`", "")
        assert all(word in text for word in plain.split())


def test_marks_of_markdown_are_those_of_the_terminal():
    assert common._marked("**b-hop*** (`b-hop*`)") == "[bold]b-hop*[/bold] (b-hop*)"
    assert common._marked("[red]1") == r"\[red]1"
