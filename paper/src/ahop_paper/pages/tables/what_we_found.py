"""Tables of the page on what we found in the paper."""

from __future__ import annotations

from collections.abc import Sequence

from ahop_paper.pages.markdown import Grid, Report, figure, short
from ahop_paper.pages.tables.registry import Row, beside_paper, by, cells_of, each, set_title, shown
from ahop_paper.pages.tables.retrieval import by_level, with_best_baselines, with_name


@shown("calibrated", "retrieval-calibrated")
def calibrated(report: Report) -> Grid:
    """The same where queries are drawn as hard as the paper's: accuracy."""
    return by_level([report], "accuracy")


@shown("generators", "generators-synthetic", "generators-mnist")
def generators(*reports: Report) -> Grid:
    """Networks that learn nothing, by ways of drawing queries; in brackets standard errors away from the paper."""
    return _generators(reports, "accuracy")


@shown("generator-errors", "generators-synthetic", "generators-mnist")
def generator_errors(*reports: Report) -> Grid:
    """The same for squared errors a dimension."""
    return _generators(reports, "error")


def _generators(reports: Sequence[Report], what: str) -> Grid:
    titles = {
        "published": "`published`: noise d, bias 1.5 d, mask",
        "calibrated": "`calibrated`: noise 1.25 d, bias 1.45 d, mask",
        "literal": "`literal`, as the text says: noise √d, mask, bias d",
        "std": "`std`: noise d, mask, bias d",
    }
    rows = [row for report in reports for row in report["rows"]]
    found = by(rows, "preset", "data", "model", "level")
    columns = [
        (data, model, level)
        for data in each(rows, "data")
        for model, level in sorted(each([row for row in rows if row["data"] == data], "model", "level"))
    ]
    papers = by(rows, "data", "model", "level")
    lines = [["**the paper**", *cells_of(papers, columns, lambda row: figure(row[what]["paper"]))]]
    for preset in each(rows, "preset"):
        places = [(preset, *column) for column in columns]
        lines.append([titles.get(preset, preset), *cells_of(found, places, lambda row: _beside(row[what]))])
    return Grid(["", *(f"{set_title(data)} {figure(level, 1)}, {model}" for data, model, level in columns)], lines)


def _beside(figures: Row) -> str:
    return f"{figure(figures['mean'])} ({figures['standard_errors']:+.1f})"


@shown("claims", "claims")
def claims(report: Report) -> Grid:
    """What the paper proves, as printed and as it holds."""
    lines = [
        [row["where"], row["says"], row["measured"], short(row["printed"]), short(row["corrected"]), row["holds"]]
        for row in report["rows"]
    ]
    return Grid(["where", "the paper says", "measured", "as printed", "corrected", "what holds"], lines)


@shown("ablations", "ablations")
def ablations(report: Report) -> Grid:
    """What each part of a-hop is good for."""
    rows = report["rows"]
    found = by(rows, "study", "condition", "difficulty")
    difficulties = each(rows, "difficulty")
    lines, before = [], ""
    for study, condition in each(rows, "study", "condition"):
        places = [(study, condition, difficulty) for difficulty in difficulties]
        cells = cells_of(found, places, beside_paper("accuracy"))
        lines.append([study if study != before else "", condition, *cells])
        before = study
    return Grid(["", "", *(f"difficulty {figure(value, 1)}" for value in difficulties)], lines)


@shown("twelve", "retrieval-twelve-2048", "retrieval-twelve-4096")
def twelve(*reports: Report) -> Grid:
    """The retrieval figure: accuracy in twelve settings, with 2,048 and with 4,096 patterns."""
    rows = [{**row, "patterns": report["config"]["patterns"]} for report in reports for row in report["rows"]]
    rows = with_best_baselines(rows, "accuracy", "patterns", "setting")
    found = by(rows, "patterns", "setting", "model")
    models, counts = each(rows, "model"), each(rows, "patterns")
    lines = []
    for setting in each(rows, "setting"):
        pairs = [
            cells_of(found, [(count, setting, model) for count in counts], lambda row: with_name(row, "accuracy", 2))
            for model in models
        ]
        lines.append([setting, *(", ".join(filter(None, pair)) for pair in pairs)])
    return Grid(["", *("Oracle" if model == "oracle" else model for model in models)], lines)
