"""Tables of the page on retrieval: benchmarks, worlds and modalities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ahop_paper import retrieval as benchmark
from ahop_paper.baselines import ALONE, BOTH, PLAIN
from ahop_paper.pages.markdown import Grid, Report, figure, with_spread
from ahop_paper.pages.tables.registry import Row, beside_paper, by, cells_of, each, model_title, set_title, shown


@shown("retrieval", "retrieval-synthetic", "retrieval-mnist")
def retrieval(*reports: Report) -> Grid:
    """Table 2: accuracy under mixed corruption."""
    return by_level(reports, "accuracy")


@shown("errors", "retrieval-synthetic", "retrieval-mnist")
def errors(*reports: Report) -> Grid:
    """Table 2: squared error a dimension."""
    return by_level(reports, "error")


def by_level(reports: Sequence[Report], what: str) -> Grid:
    """A line for each network, and a column for each data set and intensity, with the paper's figure in brackets."""
    rows = [
        {**row, "data": report["config"]["data"], "level": row["intensities"][0]}
        for report in reports
        for row in report["rows"]
    ]
    found = by(rows, "model", "data", "level")
    columns = [
        (data, level)
        for data in each(rows, "data")
        for level in sorted(each([row for row in rows if row["data"] == data], "level"))
    ]

    def cell(row: Row) -> str:
        # The paper's figure stands beside the network once, not beside its variants as well.
        variant = row["model"] in benchmark.MODELS and benchmark.MODELS[row["model"]].variant_of
        return with_spread(row[what], None if variant or not row["paper"] else row["paper"][what])

    lines = [
        [model_title(model), *cells_of(found, [(model, *column) for column in columns], cell)]
        for model in each(rows, "model")
    ]
    return Grid(["", *(f"{set_title(data)} {figure(level, 1)}" for data, level in columns)], lines)


def settings(report: Report) -> Grid:
    """One benchmark in full: for each setting, what every network makes of it."""
    rows = report["rows"]
    compared = any(row["paper"] for row in rows)
    lines, before = [], ""
    for row in sorted(rows, key=lambda row: each(rows, "setting").index(row["setting"])):
        paper = f"{figure(row['paper']['accuracy'])} / {figure(row['paper']['error'])}" if row["paper"] else ""
        lines.append(
            [
                row["setting"] if row["setting"] != before else "",
                row["model"],
                with_spread(row["accuracy"]),
                with_spread(row["error"]),
                figure(row["first_choice"]["mean"]),
                f"{row['fraction_of_oracle']['mean']:.1%}",
                *([paper] if compared else []),
            ]
        )
        before = row["setting"]
    head = ["setting", "model", "accuracy", "error", "1st choice", "of Oracle"]
    return Grid([*head, "paper: accuracy / error"] if compared else head, lines)


def with_best_baselines(rows: list[Row], what: str, *keys: str) -> list[Row]:
    """The rows of networks, and for each place, which the keys name, the best baseline without labels and with."""
    found = [row for row in rows if row["model"] not in PLAIN]
    for learns, title in ((ALONE, "best baseline, no labels"), (BOTH, "best baseline, labels")):
        best: dict[tuple[Any, ...], Row] = {}
        for row in rows:
            place = tuple(row[key] for key in keys)
            if row["model"] in PLAIN and PLAIN[row["model"]].learns == learns:
                best[place] = max(best.get(place, row), row, key=lambda one: one[what]["mean"])
        found += [{**row, "model": title, "baseline": row["model"]} for row in best.values()]
    return found


def with_name(row: Row, what: str, digits: int = 3) -> str:
    """A figure, and whose it is where it is that of a baseline.

    Args:
        row: The row of a report.
        what: The figure.
        digits: After the point.
    """
    return " ".join([figure(row[what]["mean"], digits), *([row["baseline"]] if "baseline" in row else [])])


@shown("worlds", "worlds")
def worlds(report: Report) -> Grid:
    """How close to the Oracle's first choices."""
    rows = [row for row in report["rows"] if row["model"] != "oracle"]
    rows = with_best_baselines(rows, "fraction_of_oracle", "world")
    found = by(rows, "world", "model")
    columns: list[tuple[str, str, Callable[[Row], str]]] = []
    for model in each(rows, "model"):
        known = benchmark.MODELS.get(model)
        columns.append((model, known.title if known else model, lambda row: with_name(row, "fraction_of_oracle")))
        if known and not known.labels:
            columns.append((model, "its worst run", lambda row: figure(min(row["fraction_of_oracle"]["runs"]))))
    lines = [
        [world, *(cell for model, _, write in columns for cell in cells_of(found, [(world, model)], write))]
        for world in each(rows, "world")
    ]
    return Grid(["world", *(title for _, title, _ in columns)], lines)


@shown("worlds-untuned", "worlds-untuned")
def untuned(report: Report) -> Grid:
    """Worlds that nobody tuned on: the Oracle's first choices that are right, and what part of them others find."""
    return _beside_the_best_metric(report, "fraction_of_oracle", min)


@shown("worlds-untuned-calibration", "worlds-untuned")
def untuned_calibration(report: Report) -> Grid:
    """The same: expected calibration error."""
    return _beside_the_best_metric(report, "calibration_error", max)


@shown("worlds-untuned-metrics", "worlds-untuned")
def untuned_metrics(report: Report) -> Grid:
    """The same: what part of the Oracle's first choices the baselines find."""
    rows = [row for row in report["rows"] if row["model"] in benchmark.BASELINES]
    found, models = by(rows, "world", "model"), each(rows, "model")
    cell = _with_worst("fraction_of_oracle", min)
    lines = [[world, *cells_of(found, [(world, model) for model in models], cell)] for world in each(rows, "world")]
    return Grid(["world", *models], lines)


def _beside_the_best_metric(report: Report, what: str, worst: Callable[[list[float]], float]) -> Grid:
    """Networks beside the baseline of the highest first choices in each world, which says nothing of how sure it is."""
    rows = report["rows"]
    found = by(rows, "world", "model")
    models = [model for model in each(rows, "model") if model not in benchmark.BASELINES and model != "oracle"]
    cell, of_oracle = _with_worst(what, worst), "first_choice" if what == "fraction_of_oracle" else what
    lines = []
    for world in each(rows, "world"):
        metrics = [row for row in rows if row["world"] == world and row["model"] in benchmark.BASELINES]
        best = max(metrics, key=lambda row: row["first_choice"]["mean"], default=None)
        simple = f"{cell(best)} {best['model']}" if best and what in best else ""
        ceiling = cells_of(found, [(world, "oracle")], lambda row: figure(row[of_oracle]["mean"]))
        lines.append([world, *ceiling, simple, *cells_of(found, [(world, model) for model in models], cell)])
    titles = [benchmark.MODELS[model].title if model in benchmark.MODELS else model for model in models]
    return Grid(["world", "Oracle", "best baseline", *titles], lines)


def _with_worst(what: str, worst: Callable[[list[float]], float]) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        several = f" ({figure(worst(row[what]['runs']))})" if len(row[what]["runs"]) > 1 else ""
        return figure(row[what]["mean"]) + several

    return cell


def worlds_in_full(report: Report) -> Grid:
    """For each world what every memory finds, its worst run, its calibration, and how it tells strangers."""
    columns = ("first_choice", "fraction_of_oracle", "calibration_error", "rejection_auroc")
    lines, before = [], ""
    for row in report["rows"]:
        means = [figure(row[column]["mean"]) if column in row else "" for column in columns]
        means.insert(2, figure(min(row["fraction_of_oracle"]["runs"])))
        lines.append([row["world"] if row["world"] != before else "", row["model"], *means])
        before = row["world"]
    head = ["world", "model", "1st choice", "of Oracle", "worst run", "calibration error", "strangers AUROC"]
    return Grid(head, lines)


@shown("modalities", "multimodal")
def modalities(report: Report) -> Grid:
    """Concepts that are found through two modalities."""
    rows = report["rows"]
    found = by(rows, "first", "second", "concepts")
    counts = each(rows, "concepts")
    lines = [
        [
            f"{first}, then {second}",
            *cells_of(found, [(first, second, count) for count in counts], beside_paper("accuracy")),
        ]
        for first, second in each(rows, "first", "second")
    ]
    return Grid(["", *(f"{count} concepts" for count in counts)], lines)
