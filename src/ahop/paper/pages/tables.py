"""Results as tables: one function a table, which makes it of the reports of its experiments.

Commands print what their table's function makes of the report that they have in hand, and documents and the page show
what it makes of the reports in ``results/``: rows and columns are decided here, once. A cell whose figure is not in the
report stays empty. The docstring of a table is its title on the page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ahop import datasets
from ahop._registry import Registry
from ahop.paper import retrieval as benchmark
from ahop.paper.pages.markdown import Grid, Report, figure, plain, read, short, table, with_spread
from ahop.paper.real_models import MODELS as MEASURED
from ahop.paper.table_models import CONTESTANTS

Row = dict[str, Any]
Maker = Callable[..., Grid]


class Table(NamedTuple):
    """How a table is made, of which reports, and what it is called on the page."""

    make: Maker
    reads: tuple[str, ...]
    title: str


TABLES: Registry[Table] = Registry("table")


def shown(name: str, *reads: str) -> Callable[[Maker], Maker]:
    """A table that documents and the page show under ``name``, made of these reports."""

    def join(make: Maker) -> Maker:
        TABLES.add(name, Table(make, reads, make.__doc__ or ""))
        return make

    return join


def made(name: str, folder: str | os.PathLike[str]) -> str:
    """The table of this name in Markdown, from the reports of the folder."""
    wanted = TABLES.named(name)
    try:
        return table(*wanted.make(*(read(folder, report) for report in wanted.reads)))
    except (LookupError, TypeError, AttributeError) as error:
        lacks = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"table {name!r} cannot be made from the reports in {Path(folder)}, which lack a part: {lacks}"
        ) from error


# --- rows and columns -----------------------------------------------------------------------------------------


def _each(rows: Iterable[Row], *keys: str) -> list[Any]:
    """What stands under the key, or under several, in the order in which it comes first."""
    return list(dict.fromkeys(row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys) for row in rows))


def _by(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], Row]:
    return {tuple(row[key] for key in keys): row for row in rows}


def _cells(
    found: dict[tuple[Any, ...], Row], places: Iterable[tuple[Any, ...]], write: Callable[[Row], str]
) -> list[str]:
    """What is written of the row at each place, and nothing where there is none."""
    return [write(found[place]) if place in found else "" for place in places]


def _beside_paper(what: str, digits: int = 3) -> Callable[[Row], str]:
    return lambda row: with_spread(row[what], row["paper"], digits)


def _model(name: str) -> str:
    """What the benchmark calls a network, ours in bold."""
    known = benchmark.MODELS.get(name)
    if known is None:
        return name
    if not known.ours:
        return known.title
    return f"**{known.title}**" + ("" if known.title == name else f" (`{name}`)")


def _set(name: str) -> str:
    return datasets.ENTRIES[name].title if name in datasets.ENTRIES else name


# --- the tables -----------------------------------------------------------------------------------------------


@shown("retrieval", "retrieval-synthetic", "retrieval-mnist")
def retrieval(*reports: Report) -> Grid:
    """Table 2: accuracy under mixed corruption."""
    return _retrieval(reports, "accuracy")


@shown("errors", "retrieval-synthetic", "retrieval-mnist")
def errors(*reports: Report) -> Grid:
    """Table 2: squared error a dimension."""
    return _retrieval(reports, "error")


def _retrieval(reports: Sequence[Report], what: str) -> Grid:
    rows = [
        {**row, "data": report["config"]["data"], "level": row["intensities"][0]}
        for report in reports
        for row in report["rows"]
    ]
    found = _by(rows, "model", "data", "level")
    columns = [
        (data, level)
        for data in _each(rows, "data")
        for level in sorted(_each([row for row in rows if row["data"] == data], "level"))
    ]

    def cell(row: Row) -> str:
        # Adam is ours to compare with, and the paper's figure stands beside the network once.
        paper = row["paper"][what] if row["paper"] and row["model"] != "a-hop-adam" else None
        return with_spread(row[what], paper)

    lines = [
        [_model(model), *_cells(found, [(model, *column) for column in columns], cell)]
        for model in _each(rows, "model")
    ]
    return Grid(["", *(f"{_set(data)} {figure(level, 1)}" for data, level in columns)], lines)


@shown("twelve", "retrieval-twelve-2048", "retrieval-twelve-4096")
def twelve(*reports: Report) -> Grid:
    """The retrieval figure: accuracy in twelve settings, with 2,048 and with 4,096 patterns."""
    rows = [{**row, "patterns": report["config"]["patterns"]} for report in reports for row in report["rows"]]
    found = _by(rows, "patterns", "setting", "model")
    models, counts = _each(rows, "model"), _each(rows, "patterns")
    lines = []
    for setting in _each(rows, "setting"):
        pairs = [
            _cells(found, [(count, setting, model) for count in counts], lambda row: figure(row["accuracy"]["mean"], 2))
            for model in models
        ]
        lines.append([setting, *(", ".join(filter(None, pair)) for pair in pairs)])
    return Grid(["", *("Oracle" if model == "oracle" else model for model in models)], lines)


@shown("generators", "retrieval-literal", "retrieval-std", "retrieval-synthetic")
def generators(*reports: Report) -> Grid:
    """Which way of drawing queries gives the paper's own figures for networks that learn nothing."""
    titles = {
        "literal": "as its text says: noise of variance d, mask, bias d",
        "std": "the same with noise of standard deviation d",
        "published": "`published`: noise of standard deviation d, bias 1.5 d, mask",
    }
    rows = [
        {**row, "preset": report["config"]["preset"], "level": row["intensities"][0]}
        for report in reports
        for row in report["rows"]
        if row["model"] in ("m-hop", "u-hop")
    ]
    found = _by(rows, "preset", "model", "level")
    columns = sorted(_each(rows, "model", "level"))
    papers = {(row["model"], row["level"]): row for row in rows if row["paper"]}
    lines = [["**the paper**", *_cells(papers, columns, lambda row: figure(row["paper"]["accuracy"]))]]
    for preset, title in titles.items():
        places = [(preset, *column) for column in columns]
        lines.append([title, *_cells(found, places, lambda row: with_spread(row["accuracy"]))])
    return Grid(["", *(f"{model}, d = {figure(value, 1)}" for model, value in columns)], lines)


@shown("ablations", "ablations")
def ablations(report: Report) -> Grid:
    """What each part of a-hop is good for."""
    rows = report["rows"]
    found = _by(rows, "study", "condition", "difficulty")
    difficulties = _each(rows, "difficulty")
    lines, before = [], ""
    for study, condition in _each(rows, "study", "condition"):
        places = [(study, condition, difficulty) for difficulty in difficulties]
        cells = _cells(found, places, _beside_paper("accuracy"))
        lines.append([study if study != before else "", condition, *cells])
        before = study
    return Grid(["", "", *(f"difficulty {figure(value, 1)}" for value in difficulties)], lines)


@shown("worlds", "worlds")
def worlds(report: Report) -> Grid:
    """How close to the Oracle's first choices."""
    rows = [row for row in report["rows"] if row["model"] != "oracle"]
    found = _by(rows, "world", "model")
    columns: list[tuple[str, str, Callable[[Row], str]]] = []
    for model in _each(rows, "model"):
        title = benchmark.MODELS[model].title if model in benchmark.MODELS else model
        columns.append((model, title, lambda row: figure(row["fraction_of_oracle"]["mean"])))
        if model.endswith("*"):
            columns.append((model, "its worst run", lambda row: figure(min(row["fraction_of_oracle"]["runs"]))))
    lines = [
        [world, *(cell for model, _, write in columns for cell in _cells(found, [(world, model)], write))]
        for world in _each(rows, "world")
    ]
    return Grid(["world", *(title for _, title, _ in columns)], lines)


@shown("real", "real")
def real(report: Report) -> Grid:
    """Items measured twice: ours, the best other with no more labels, 95 % of the difference; bold is better."""
    rows = [row for row in report["rows"] if row["model"] in MEASURED and MEASURED[row["model"]].ours]
    found = _by(rows, "model", "data")
    names = _each(rows, "data")
    columns: list[tuple[str, list[str]]] = []
    before: list[str] = []
    for model in sorted(_each(rows, "model"), key=list(MEASURED).index):
        places = [(model, data) for data in names]
        others = _cells(found, places, _other)
        # Where a few labels give no other model a chance to be better, it stands there already.
        if others != before:
            columns.append((f"best other for {MEASURED[model].learns}", others))
        columns.append((f"**{model}**", _cells(found, places, _ours)))
        before = others
    lines = [[_set(data), *(cells[place] for _, cells in columns)] for place, data in enumerate(names)]
    return Grid(["", *(head for head, _ in columns)], lines)


def _ours(row: Row) -> str:
    accuracy = with_spread(row["accuracy"])
    low, high = (row.get("difference", {}).get(end) for end in ("low", "high"))
    if low is None:
        return accuracy
    return f"{_bold(accuracy, low > 0)} ({_signed(low)} to {_signed(high)})"


def _other(row: Row) -> str:
    if "best_other" not in row:
        return ""
    best, high = row["best_other"], row["difference"]["high"]
    return f"{_bold(with_spread(best['accuracy']), high is not None and high < 0)} {best['model']}"


def _bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted else text


def _signed(value: float) -> str:
    return ("+" if value >= 0 else "") + figure(value)


@shown("real-models", "real")
def real_models(report: Report) -> Grid:
    """All models on items measured twice: first choices that are right, on items that were not learned from."""
    rows = report["rows"]
    found = _by(rows, "model", "data")
    names, models = _each(rows, "data"), _each(rows, "model")
    known = [model for model in MEASURED if model in models]
    lines = []
    for model in [*known, *(model for model in models if model not in MEASURED)]:
        ours, learns = (MEASURED[model].ours, MEASURED[model].learns) if model in MEASURED else (False, "")
        cells = _cells(found, [(model, data) for data in names], lambda row: with_spread(row["accuracy"]))
        lines.append([_bold(model, ours), learns, *cells])
    return Grid(["", "learns from", *map(_set, names)], lines)


@shown("real-calibration", "real")
def calibration(report: Report) -> Grid:
    """Items measured twice: expected calibration error; in brackets how sure, and how often right."""
    rows = [row for row in report["rows"] if "calibration_error" in row]
    found = _by(rows, "model", "data")
    names, models = _each(rows, "data"), _each(rows, "model")

    def cell(row: Row) -> str:
        error, sure, right = (row[key]["mean"] for key in ("calibration_error", "confidence", "accuracy"))
        return f"{figure(error)} ({figure(sure, 2)}, {figure(right, 2)})"

    lines = [[_set(data), *_cells(found, [(model, data) for model in models], cell)] for data in names]
    return Grid(["", *models], lines)


@shown("bags", "mil")
def bags(report: Report) -> Grid:
    """Table 4: multiple-instance learning."""
    rows = report["rows"]
    found = _by(rows, "model", "data")
    data = _each(rows, "data")
    lines = [
        [model, *_cells(found, [(model, name) for name in data], _beside_paper("auc"))]
        for model in _each(rows, "model")
    ]
    return Grid(["", *map(_set, data)], lines)


@shown("checks", "mil-checks")
def checks(report: Report) -> Grid:
    """What a pooling network may learn."""
    rows = report["rows"]
    found = _by(rows, "check", "model")
    models = _each(rows, "model")
    titles = {"standard": "standard: a mark on negative bags", "frequency": "frequency: one concept many times, or two"}

    def cell(row: Row) -> str:
        area = row["test"]["mean"]
        return f"**{figure(area)}**" if area > 0.9 else figure(area)

    lines = [
        [titles.get(check, check), *_cells(found, [(check, model) for model in models], cell)]
        for check in _each(rows, "check")
    ]
    return Grid(["", *models], lines)


@shown("images", "images-cifar10", "layers-cuda")
def images(trained: Report, timed: Report) -> Grid:
    """A transformer of Hopfield layers on CIFAR-10, and what a step costs."""
    accuracy, costs = _by(trained["rows"], "model"), _by(timed["rows"], "model")
    models = [(model,) for model in _each([*timed["rows"], *trained["rows"]], "model")]

    def right(row: Row) -> str:
        return with_spread(row["accuracy"]) + (" (one seed)" if len(row["accuracy"]["runs"]) == 1 else "")

    def cost(row: Row) -> str:
        return f"1 ({plain(row['milliseconds'])} ms)" if row["model"] == "m-hop" else plain(row["ratio"])

    most = max(len(row["accuracy"]["runs"]) for row in trained["rows"])
    lines = [
        [f"accuracy, {most} seeds", *_cells(accuracy, models, right)],
        ["a training step", *_cells(costs, models, cost)],
    ]
    return Grid(["", *("a-hop, one base" if model == "a-hop-1" else model for (model,) in models)], lines)


@shown("published", "images-published-cifar10", "images-published-cifar100", "images-published-tiny-imagenet")
def published(*reports: Report) -> Grid:
    """The paper's protocol for images."""
    head = [""]
    for report in reports:
        part = report["images"]["train"] / report["images"]["published"]
        head.append(_set(report["config"]["data"]) + ("" if part == 1 else f", {100 * part:.0f} % of it"))
    rows = [{**row, "data": report["config"]["data"]} for report in reports for row in report["rows"]]
    found = _by(rows, "model", "data")
    lines = [
        [model, *_cells(found, [(model, report["config"]["data"]) for report in reports], _beside_paper("accuracy"))]
        for model in _each(rows, "model")
    ]
    return Grid(head, lines)


@shown("modalities", "multimodal")
def modalities(report: Report) -> Grid:
    """Concepts that are found through two modalities."""
    rows = report["rows"]
    found = _by(rows, "first", "second", "concepts")
    counts = _each(rows, "concepts")
    lines = [
        [
            f"{first}, then {second}",
            *_cells(found, [(first, second, count) for count in counts], _beside_paper("accuracy")),
        ]
        for first, second in _each(rows, "first", "second")
    ]
    return Grid(["", *(f"{count} concepts" for count in counts)], lines)


@shown("tables-sound", "tabular-sound")
def accuracies(report: Report) -> Grid:
    """Table 3 with sound features: accuracy."""
    return _tabular(report["rows"], "accuracy")


@shown("tables-areas", "tabular-sound")
def areas(report: Report) -> Grid:
    """The same: area under the curve."""
    return _tabular(report["rows"], "auc")


@shown("tables-paper", "tabular-benchmark")
def papers_accuracies(report: Report) -> Grid:
    """Table 3 with the paper's features: accuracy."""
    return _tabular(report["rows"], "accuracy")


@shown("tables-paper-areas", "tabular-benchmark")
def papers_areas(report: Report) -> Grid:
    """The same: area under the curve."""
    return _tabular(report["rows"], "auc")


def _tabular(rows: list[Row], what: str) -> Grid:
    data = _each(rows, "data")
    best = {name: max(row[what]["mean"] for row in rows if row["data"] == name) for name in data}

    def cell(row: Row) -> str:
        # Four figures, since the best differ by less than three show.
        text = with_spread(row[what], row["paper"] if what == "accuracy" else None, 4)
        return f"**{text}**" if row[what]["mean"] == best[row["data"]] else text

    return _classifiers("", rows, cell)


def _classifiers(corner: str, rows: list[Row], cell: Callable[[Row], str]) -> Grid:
    """A line for each model, in the order of the contestants; those that nobody knows any more come last."""
    found, data, models = _by(rows, "model", "data"), _each(rows, "data"), _each(rows, "model")
    known = [model for model in CONTESTANTS if model in models]
    lines = [
        [
            CONTESTANTS[model].title if model in CONTESTANTS else model,
            *_cells(found, [(model, name) for name in data], cell),
        ]
        for model in [*known, *(model for model in models if model not in CONTESTANTS)]
    ]
    return Grid([corner, *map(_set, data)], lines)


@shown("times", "tabular-sound", "tabular-cpu")
def times(report: Report, alone: Report) -> Grid:
    """How long classifiers of tables take to fit and to predict: ratios to XGBoost's time."""
    title = "`HopfieldClassifier()`, no GPU"
    rows = [row for row in report["rows"] if "fit" in row and row["model"] != "xgboost"]
    rows += [{**row, "model": title} for row in alone["rows"] if row["model"] == "default"]
    head, lines = ratios_to_trees({"rows": rows})
    return Grid(head, sorted(lines, key=lambda line: line[0] != title))


def ratios_to_trees(report: Report) -> Grid:
    """How long each model took to fit and to predict, as ratios to XGBoost's time."""

    def cell(row: Row) -> str:
        return f"{plain(row['fit'])}, {plain(row['predict'])}" if "fit" in row else "not timed"

    return _classifiers("fit, predict", report["rows"], cell)


@shown("timing", "timing-cuda")
def timing(report: Report) -> Grid:
    """The timing table: milliseconds on an H200."""
    return _timing(report, lambda what, own: figure(own, 4 if what == "query" else 0), short)


@shown("ratios", "timing-cpu")
def ratios(report: Report) -> Grid:
    """The timing table on two cores: ratios to its first cell, sorted."""
    return _timing(report, lambda what, own: plain(own), plain)


def _timing(report: Report, ours: Callable[[str, float], str], papers: Callable[[float], str]) -> Grid:
    rows = report["rows"]
    sizes = _each(rows, "dim", "patterns")
    found = _by(rows, "sort", "dim", "patterns")
    lines = []
    # The paper learns by Adam.
    for what, title, paper in (
        ("fit", "convex fit", None),
        ("adam", "fit by Adam", "fit"),
        ("query", "query", "query"),
    ):

        def cell(row: Row, what: str = what, paper: str | None = paper) -> str:
            printed = row["paper"][paper] if paper else None
            return ours(what, row[what]) + ("" if printed is None else f" ({papers(printed)})")

        for sort, kind in ((True, "sorted"), (False, "not sorted")):
            cells = _cells(found, [(sort, *size) for size in sizes], cell)
            lines.append([f"{title}, {kind}" + (" (paper)" if paper else ""), *cells])
    return Grid(["d, N", *(f"{dim}, {count}" for dim, count in sizes)], lines)


@shown("kernels", "kernels-cpu", "kernels-cuda")
def kernels(*reports: Report) -> Grid:
    """How many times faster than the plain definition."""
    places = (("two cores", ("scores", "weight_gradient", "gradients")), ("H200", ("scores", "gradients")))
    titles = {
        "scores": "scores, times the definition",
        "weight_gradient": "with the gradient to the weights",
        "gradients": "with all gradients",
    }
    timed = [[row for row in report["rows"] if "scores_ratio" in row] for report in reports]
    dims = next((_each(rows, "dim") for rows in timed if rows), [])
    lines = []
    for (place, figures), rows in zip(places, timed, strict=True):
        found = _by(rows, "dim")
        for what in figures:
            cells = _cells(found, [(dim,) for dim in dims], lambda row, what=what: plain(row[f"{what}_ratio"]))  # type: ignore[misc]
            lines.append([f"{place}: {titles[what]}", *cells])
    return Grid(["d", *map(str, dims)], lines)


@shown("claims", "claims")
def claims(report: Report) -> Grid:
    """What the paper proves, as printed and as it holds."""
    lines = [
        [row["where"], row["says"], row["measured"], short(row["printed"]), short(row["corrected"]), row["holds"]]
        for row in report["rows"]
    ]
    return Grid(["where", "the paper says", "measured", "as printed", "corrected", "what holds"], lines)
