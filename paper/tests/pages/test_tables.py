from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ahop_paper.commands import common
from ahop_paper.pages import tables
from ahop_paper.pages.markdown import Grid, figure, read
from ahop_paper.pages.tables import real_data
from ahop_paper.real_models import MODELS

RESULTS = Path(__file__).parents[3] / "results"
OURS = [name for name, model in MODELS.items() if model.ours]
REPORTS = {name: read(RESULTS, name) for table in tables.TABLES.values() for name in table.reads}


@settings(max_examples=20)
@given(st.data())
@pytest.mark.parametrize("name", tables.TABLES)
def test_a_report_with_some_rows_missing_still_renders(name, data):
    """Whichever rows these are, and each line has its cells."""
    make, reads = tables.TABLES[name]
    parts = []
    for report in (REPORTS[name] for name in reads):
        rows = report["rows"]
        kept = data.draw(st.sets(st.sampled_from(range(len(rows))), min_size=1))
        parts.append({**report, "rows": [rows[place] for place in sorted(kept)]})
    grid = make(*parts)
    assert all(len(line) == len(grid.head) for line in grid.lines)


@pytest.mark.parametrize(
    ("name", "lost"), [("real-models", {"model": "whitening", "data": "gas"}), ("bags", {"data": "fox"})]
)
def test_a_cell_that_is_missing_is_empty_and_all_others_stand_as_they_were(name, lost):
    (report,) = (REPORTS[one] for one in tables.TABLES[name].reads)
    rows = [row for row in report["rows"] if any(row[key] != value for key, value in lost.items())]
    whole, parted = tables.TABLES[name].make(report), tables.TABLES[name].make({**report, "rows": rows})
    for line in parted.lines:
        (before,) = (other for other in whole.lines if other[0] == line[0])
        cells = dict(zip(whole.head, before, strict=True))
        assert all(cell in ("", cells[column]) for column, cell in zip(parted.head, line, strict=True))
    holes = [sum(cell == "" for line in grid.lines for cell in line) for grid in (whole, parted)]
    assert holes[1] - holes[0] == (1 if "model" in lost else 0)


def test_what_nobody_knows_any_more_is_shown_by_its_name():
    row = {"data": "smoke", "model": "guess", "accuracy": spread(0.5)}
    assert tables.real_models({"rows": [row]}) == Grid(["", "learns from", "smoke"], [["guess", "", ".500"]])
    assert tables.real({"rows": [row]}).lines == []


@pytest.mark.parametrize(
    ("mean", "low", "high", "shown"),
    [
        (0.5, 0.4, 0.6, ".500 ± .100"),
        (0.7, 0.3, 1.1, ".700 (.300 to 1.000)"),
        (0.01, -0.02, 0.04, ".010 (.000 to .040)"),
        (0.0012, -0.0002, 0.0026, ".001 ± .001"),
        (0.5, None, None, ".500"),
    ],
)
def test_no_interval_of_a_share_runs_past_zero_or_one(mean, low, high, shown):
    row = {"world": "tablets", "model": "a-hop", "first_choice": {"mean": mean, "low": low, "high": high}}
    assert tables.zoo({"rows": [row]}).lines == [["a-hop", shown]]


def test_shares_of_whole_sets_have_the_interval_of_their_mean():
    runs = [0.6, 0.62, 0.64, 0.66, 0.68]
    row = {"way": "softmax", "size": 2, "whole": {"mean": 0.64, "std": 0.0316, "runs": runs}}
    # 2.776 of their standard deviation, over the root of five.
    assert tables.blends({"rows": [row]}).lines == [["softmax", "**.640 ± .039**"]]


def spread(*runs):
    return {"mean": sum(runs) / len(runs), "std": max(runs) - min(runs), "runs": list(runs)}


def ours(model, data, low=None, high=None):
    """A row of a model of ours; without an interval, of a single split."""
    runs = (0.8,) if low is None else (0.7, 0.9)
    other = {"model": "L1", "accuracy": spread(0.5)}
    difference = {"mean": 0.3, "low": low, "high": high}
    beside = {"best_other": other, "difference": difference, "ahead": low is not None and low > 0}
    return {"data": data, "model": model, "accuracy": spread(*runs), **beside}


def test_bold_is_what_is_better_by_more_than_chance():
    rows = [
        ours("b-hop*", "up", 0.1, 0.5),
        ours("b-hop*", "even", -0.1, 0.5),
        ours("b-hop*", "down", -0.5, -0.1),
        ours("b-hop*", "once"),
    ]
    assert tables.real({"rows": rows}).lines == [
        ["up", ".500 L1", "**.800 ± .200** (+.100 to +.500)"],
        ["even", ".500 L1", ".800 ± .200 (-.100 to +.500)"],
        ["down", "**.500** L1", ".800 ± .200 (-.500 to -.100)"],
        ["once", ".500 L1", ".800"],
    ]


def bag(model, auc, low=None, high=None):
    row = {"data": "fox", "model": model, "auc": spread(auc), "paper": None}
    if low is None:
        return row
    other = {"model": "max", "auc": spread(0.5)}
    return {**row, "best_other": other, "difference": {"mean": 0.1, "low": low, "high": high}, "ahead": low > 0}


def of_table(row):
    """The same figures as a row of tables has them."""
    beside = {key: row.pop(key) for key in ("best_other", "difference", "ahead") if key in row}
    return {**row, "accuracy": row["auc"], "beside": {"accuracy": beside}}


@pytest.mark.parametrize(
    ("intervals", "bold"),
    [
        ([(0.1, 0.2), (-0.1, 0.2)], ["m-hop"]),
        ([(-0.1, 0.2), (0.0, 0.2)], []),
        ([(-0.2, -0.1), (-0.1, 0.2)], []),
        ([(-0.2, -0.1), (-0.3, -0.1)], ["max"]),
    ],
)
def test_among_classifiers_nothing_is_bold_whose_interval_holds_zero(intervals, bold):
    """However high its figure; and the best other is where it is ahead of all of ours."""

    def rows():
        ours = [bag(model, 0.9, *ends) for model, ends in zip(("m-hop", "a-hop"), intervals, strict=True)]
        return [bag("max", 0.5), bag("mean", 0.99), *ours]

    for grid in (tables.bags({"rows": rows()}), tables.accuracies({"rows": [of_table(row) for row in rows()]})):
        assert [line[0].split(",")[0] for line in grid.lines if "**" in line[1]] == bold


def test_an_interval_stands_beside_its_figure():
    grid = tables.bags({"rows": [bag("max", 0.5), bag("m-hop", 0.9, 0.1, 0.2), bag("a-hop", 0.9, -0.1, 0.2)]})
    assert grid.lines == [["max", ".500"], ["m-hop", "**.900** [+.100 to +.200]"], ["a-hop", ".900 [-.100 to +.200]"]]


def world(name, model, *runs):
    return {"world": name, "model": model, "fraction_of_oracle": spread(*runs)}


def test_a_world_shows_its_best_baseline_of_each_kind():
    rows = [world("one", "centred L1", 0.5), world("one", "z-scored L1", 0.6), world("one", "ridge", 0.7)]
    rows += [world("two", "centred L1", 0.5), world("two", "m-hop", 0.4), world("two", "z-scored L1", 0.3)]
    assert tables.worlds({"rows": rows}) == Grid(
        ["world", "m-hop", "best baseline, no labels", "best baseline, labels"],
        [["two", ".400", ".500 centred L1", ""], ["one", "", ".600 z-scored L1", ".700 ridge"]],
    )


@given(st.sets(st.sampled_from([(model, data) for model in OURS for data in "abc"]), min_size=1))
def test_ours_renders_with_any_cells_missing(kept):
    """Also with rows that have no other model beside them, and some that say how sure they were."""
    rows = [ours(model, data, 0.1, 0.2) for model, data in sorted(kept)]
    del rows[0]["best_other"], rows[0]["difference"]
    rows[-1] |= {"confidence": spread(0.9), "calibration_error": spread(0.1)}
    for make in (tables.real, tables.real_models, tables.calibration):
        grid = make({"rows": rows})
        assert len(set(grid.head)) == len(grid.head)
        assert all(len(line) == len(grid.head) for line in grid.lines)
    right = figure(rows[-1]["accuracy"]["mean"], 2)
    assert tables.calibration({"rows": rows}).lines == [[rows[-1]["data"], f".100 (.90, {right})"]]


def test_a_few_labels_do_not_say_the_best_other_twice():
    rows = [ours(model, "gas", 0.1, 0.2) for model in ("b-hop*", "b-hop 10")]
    assert tables.real({"rows": rows}).head == ["", "best other for queries alone", "**b-hop***", "**b-hop 10**"]


def printed(grid):
    console = Console(width=300, record=True, file=StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "console", console)
        common.show(grid, "Title")
    return console.export_text()


@pytest.mark.parametrize("name", ["real-models", "ablations", "modalities", "tables-sound", "timing", "claims"])
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


def test_what_was_measured_anew_stands_in_one_table_alone():
    """Two reports have rows of these sets, and a page that showed both would contradict itself."""
    both = {row["data"] for row in REPORTS["real"]["rows"]} & {row["data"] for row in REPORTS["spaces"]["rows"]}
    assert both == set(real_data.MEASURED_ANEW)
    for name, (make, reads) in tables.TABLES.items():
        if reads == ("real",):
            assert not both & {row["data"] for row in real_data._elsewhere(REPORTS["real"])["rows"]}
            shown = {cell for line in make(REPORTS["real"]).lines for cell in line} | set(make(REPORTS["real"]).head)
            assert not shown & set(map(real_data.set_title, both)), name


def test_ours_is_ahead_only_where_the_interval_lies_above_zero():
    def row(method, *runs):
        figures = {what: spread(*runs) for what in ("right", "recall@10", "nDCG@10")}
        return {"data": "up", "method": method, "labels": "all", **figures}

    def ahead(*ours):
        others = [row("ridge", 0.5, 0.6), row("ridge and CSLS, own query counted", 0.9, 0.9)]
        (line,) = real_data.ahead({"rows": [row("b-hop", *ours), *others]}).lines
        return line[1]

    assert ahead(0.7, 0.8) == "**+.200** (+.200 to +.200) ridge"
    assert ahead(0.7, 0.7).startswith("+.150 (")
    assert ahead(0.4, 0.5) == "-.100 (-.100 to -.100) ridge"
