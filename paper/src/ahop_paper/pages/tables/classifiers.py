"""Tables of classifiers: bags, images, and tables of data."""

from __future__ import annotations

from collections.abc import Callable

from ahop_paper.pages.markdown import Grid, Report, bold, figure, interval, plain, with_spread
from ahop_paper.pages.tables.registry import Row, beside_paper, by, cells_of, each, set_title, shown
from ahop_paper.table_models import MODELS
from ahop_paper.vision import TITLES


@shown("bags", "mil")
def bags(report: Report) -> Grid:
    """Table 4: multiple-instance learning."""
    rows = report["rows"]
    found = by(rows, "model", "data")
    data = each(rows, "data")
    better = _better({(row["model"], row["data"]): row for row in rows})

    def cell(row: Row) -> str:
        text = bold(with_spread(row["auc"], row["paper"]), (row["model"], row["data"]) in better)
        return _with_interval(text, row.get("difference", {}))

    lines = [[model, *cells_of(found, [(model, name) for name in data], cell)] for model in each(rows, "model")]
    return Grid(["", *map(set_title, data)], lines)


def _better(compared: dict[tuple[str, str], Row]) -> set[tuple[str, str]]:
    """Who is better by more than chance, by model and data: ours than all others, or their best than all of ours."""
    better = set()
    for data in {data for _, data in compared}:
        ours = {
            model: one
            for (model, where), one in compared.items()
            if where == data and interval(one.get("difference", {}))
        }
        # Reports of old do not say it, and have nothing in bold.
        better |= {(model, data) for model, one in ours.items() if one.get("ahead")}
        if ours and all(one["difference"]["high"] < 0 for one in ours.values()):
            better |= {(one["best_other"]["model"], data) for one in ours.values()}
    return better


def _with_interval(text: str, difference: Row, digits: int = 3) -> str:
    where = interval(difference, digits)
    return f"{text} [{where}]" if where else text


@shown("checks", "mil-checks")
def checks(report: Report) -> Grid:
    """What a pooling network may learn."""
    rows = report["rows"]
    found = by(rows, "check", "model")
    models = each(rows, "model")
    titles = {"standard": "standard: a mark on negative bags", "frequency": "frequency: one concept many times, or two"}

    def cell(row: Row) -> str:
        return figure(row["test"]["mean"])

    lines = [
        [titles.get(check, check), *cells_of(found, [(check, model) for model in models], cell)]
        for check in each(rows, "check")
    ]
    return Grid(["", *models], lines)


@shown("images", "images-cifar10", "layers-cuda")
def images(trained: Report, timed: Report) -> Grid:
    """A transformer of Hopfield layers on CIFAR-10, and what a step costs."""
    accuracy, costs = by(trained["rows"], "model"), by(timed["rows"], "model")
    models = [(model,) for model in each([*timed["rows"], *trained["rows"]], "model")]

    def cost(row: Row) -> str:
        return f"1 ({plain(row['milliseconds'])} ms)" if row["model"] == "m-hop" else plain(row["ratio"])

    most = max(len(row["accuracy"]["runs"]) for row in trained["rows"])
    lines = [
        [f"accuracy, {most} seeds", *cells_of(accuracy, models, lambda row: with_spread(row["accuracy"]))],
        ["a training step", *cells_of(costs, models, cost)],
    ]
    return Grid(["", *(TITLES.get(model, model) for (model,) in models)], lines)


def trained(report: Report) -> Grid:
    """Image classifiers of one run: how often right, and how large."""
    rows = report["rows"]
    compared = any(row["paper"] for row in rows)
    lines = [
        [row["model"], with_spread(row["accuracy"]), f"{row['parameters']:,}"]
        + ([figure(row["paper"]) if row["paper"] else ""] if compared else [])
        for row in rows
    ]
    return Grid(["model", "accuracy", "parameters", *(["paper"] if compared else [])], lines)


@shown("published", "images-published-cifar10", "images-published-cifar100", "images-published-tiny-imagenet")
def published(*reports: Report) -> Grid:
    """The paper's protocol for images."""
    head = [""]
    for report in reports:
        part = report["images"]["train"] / report["images"]["published"]
        head.append(set_title(report["config"]["data"]) + ("" if part == 1 else f", {100 * part:.0f} % of it"))
    rows = [{**row, "data": report["config"]["data"]} for report in reports for row in report["rows"]]
    found = by(rows, "model", "data")
    lines = [
        [model, *cells_of(found, [(model, report["config"]["data"]) for report in reports], beside_paper("accuracy"))]
        for model in each(rows, "model")
    ]
    return Grid(head, lines)


@shown("tables-sound", "tabular-sound", "tabular-plain")
def accuracies(*reports: Report) -> Grid:
    """Table 3 with sound features: accuracy."""
    return _tabular([row for report in reports for row in report["rows"]], "accuracy")


@shown("tables-areas", "tabular-sound", "tabular-plain")
def areas(*reports: Report) -> Grid:
    """The same: area under the curve."""
    return _tabular([row for report in reports for row in report["rows"]], "auc")


@shown("tables-paper", "tabular-benchmark")
def papers_accuracies(report: Report) -> Grid:
    """Table 3 with the paper's features: accuracy."""
    return _tabular(report["rows"], "accuracy")


@shown("tables-paper-areas", "tabular-benchmark")
def papers_areas(report: Report) -> Grid:
    """The same: area under the curve."""
    return _tabular(report["rows"], "auc")


def _tabular(rows: list[Row], what: str) -> Grid:
    found = {(row["model"], row["data"]): row.get("beside", {}).get(what, {}) for row in rows}
    better = _better(found)

    def cell(row: Row) -> str:
        # Four figures, since the best differ by less than three show.
        text = with_spread(row[what], row["paper"] if what == "accuracy" else None, 4)
        place = row["model"], row["data"]
        return _with_interval(bold(text, place in better), found[place].get("difference", {}), 4)

    return a_line_each("", rows, cell)


def a_line_each(corner: str, rows: list[Row], cell: Callable[[Row], str]) -> Grid:
    """A line for each model, in the order in which they are listed; unlisted ones come last.

    Args:
        corner: What stands above the models' names.
        rows: Those of a report.
        cell: What is written of a row.
    """
    found, data, models = by(rows, "model", "data"), each(rows, "data"), each(rows, "model")
    known = [model for model in MODELS if model in models]
    lines = [
        [
            MODELS[model].title if model in MODELS else model,
            *cells_of(found, [(model, name) for name in data], cell),
        ]
        for model in [*known, *(model for model in models if model not in MODELS)]
    ]
    return Grid([corner, *map(set_title, data)], lines)
