"""Results as tables in Markdown: one function a table, which reads the reports of its experiments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Report = dict[str, Any]

MODELS = {
    "mlp": "4-layer perceptron",
    "a-hop-adam": "a-hop, Adam as in the paper",
    "b-hop*": "**b-hop, no labels** (`b-hop*`)",
    "b-hop": "**b-hop**",
    "oracle": "Oracle (Bayes ceiling)",
}

BOTH = "queries and origins"
LEARNS = {"whitening": BOTH, "a-hop": BOTH, "b-hop": BOTH, "b-hop*": "queries alone"}


def read(folder: Path, name: str) -> Report:
    """One report of the folder."""
    path = folder / f"{name}.json"
    try:
        report = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path} cannot be read; it is needed for the report") from error
    except ValueError as error:
        raise ValueError(f"{path} is no report") from error
    if not isinstance(report, dict) or not report.get("rows"):
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


def with_spread(figures: dict[str, Any], paper: float | None = None) -> str:
    """Mean and standard deviation, and the paper's figure in brackets."""
    several = f" ± {figure(figures['std'])}" if len(figures["runs"]) > 1 else ""
    return figure(figures["mean"]) + several + (f" ({figure(paper)})" if paper is not None else "")


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    rows = ["|".join(["", *(f" {cell} " if cell else " " for cell in cells), ""]) for cells in (head, *lines)]
    return "\n".join([rows[0], "|---" * len(head) + "|", *rows[1:]])


def retrieval(folder: Path) -> str:
    """Table 2: accuracy under mixed corruption."""
    rows: dict[tuple[str, str, float], dict[str, Any]] = {}
    order: list[str] = []
    for data in ("synthetic", "mnist"):
        for row in read(folder, f"retrieval-{data}")["rows"]:
            rows[row["model"], data, row["intensities"][0]] = row
            if row["model"] not in order:
                order.append(row["model"])
    columns = sorted({key[1:] for key in rows}, key=lambda column: (column[0] == "mnist", column[1]))
    lines = []
    for model in order:
        cells = []
        for data, difficulty in columns:
            row = rows.get((model, data, difficulty))
            # Adam is ours to compare with, and the paper's figure stands beside the network once.
            paper = row["paper"]["accuracy"] if row and row["paper"] and model != "a-hop-adam" else None
            cells.append(with_spread(row["accuracy"], paper) if row else "")
        lines.append([MODELS.get(model, model), *cells])
    names = {"synthetic": "synthetic", "mnist": "MNIST"}
    return markdown(["", *(f"{names[data]} {figure(value, 1)}" for data, value in columns)], lines)


def worlds(folder: Path) -> str:
    """How close to the Oracle's first choices."""
    rows = read(folder, "worlds")["rows"]
    found = {(row["world"], row["model"]): row["fraction_of_oracle"] for row in rows}
    lines = []
    for world in dict.fromkeys(row["world"] for row in rows):
        blind = found[world, "b-hop*"]
        cells = [found[world, "m-hop"]["mean"], blind["mean"], min(blind["runs"]), found[world, "b-hop"]["mean"]]
        lines.append([world, *map(figure, cells)])
    return markdown(["world", "m-hop", "b-hop, no labels", "its worst run", "b-hop"], lines)


def real(folder: Path) -> str:
    """Items that were measured twice."""
    rows = read(folder, "real")["rows"]
    found = {(row["model"], row["data"]): row for row in rows}
    names = {"tablets": "tablets", "gas": "gas", "wifi": "Wi-Fi"}
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        title = f"**{model}**" if model.startswith("b-hop") else model
        lines.append([title, LEARNS.get(model, "nothing"), *(figure(found[model, data]["accuracy"]) for data in names)])
    return markdown(["", "learns from", *names.values()], lines)


def bags(folder: Path) -> str:
    """Table 4: multiple-instance learning."""
    rows = read(folder, "mil")["rows"]
    found = {(row["model"], row["data"]): row for row in rows}
    names = {"ucsb": "UCSB", "musk1": "Musk 1", "musk2": "Musk 2"}
    data = list(dict.fromkeys(row["data"] for row in rows))
    lines = [
        [model, *(with_spread(found[model, name]["auc"], found[model, name]["paper"]) for name in data)]
        for model in dict.fromkeys(row["model"] for row in rows)
    ]
    return markdown(["", *(names.get(name, name.capitalize()) for name in data)], lines)


def checks(folder: Path) -> str:
    """What a pooling network may learn."""
    rows = read(folder, "mil-checks")["rows"]
    found = {(row["check"], row["model"]): row["test"]["mean"] for row in rows}
    models = list(dict.fromkeys(row["model"] for row in rows))
    titles = {"standard": "standard: a mark on negative bags", "frequency": "frequency: one concept many times, or two"}
    lines = []
    for check, title in titles.items():
        figures = [found[check, model] for model in models]
        cells = [f"**{figure(value)}**" if value > 0.9 else figure(value) for value in figures]
        lines.append([title, *cells])
    return markdown(["", *models], lines)


def images(folder: Path) -> str:
    """A transformer of Hopfield layers on CIFAR-10, and what a step costs."""
    accuracy = {row["model"]: row["accuracy"] for row in read(folder, "images-cifar10")["rows"]}
    costs = {row["model"]: row for row in read(folder, "layers-cuda")["rows"]}
    models = list(costs)
    most = max(len(figures["runs"]) for figures in accuracy.values())

    def right(model: str) -> str:
        if model not in accuracy:
            return ""
        several = len(accuracy[model]["runs"])
        return with_spread(accuracy[model]) + (
            "" if several == most else " (one seed)" if several == 1 else f" ({several})"
        )

    def cost(model: str) -> str:
        if model == "m-hop":
            return f"1 ({plain(costs[model]['milliseconds'])} ms)"
        return plain(costs[model]["ratio"])

    words = {3: "three"}
    names = ["a-hop, one base" if model == "a-hop-1" else model for model in models]
    lines = [
        [f"accuracy, {words.get(most, most)} seeds", *map(right, models)],
        ["a training step", *map(cost, models)],
    ]
    return markdown(["", *names], lines)


def published(folder: Path) -> str:
    """The paper's protocol for images."""
    titles = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "tiny-imagenet": "Tiny ImageNet"}
    reports = {name: read(folder, f"images-published-{name}") for name in titles}
    head = [""]
    for name, report in reports.items():
        part = report["images"]["train"] / report["images"]["published"]
        head.append(titles[name] + ("" if part == 1 else f", {100 * part:.0f} % of it"))
    found = {(row["model"], name): row for name, report in reports.items() for row in report["rows"]}
    lines = [
        [model, *(with_spread(found[model, name]["accuracy"], found[model, name]["paper"]) for name in titles)]
        for model in dict.fromkeys(model for model, _ in found)
    ]
    return markdown(head, lines)


def modalities(folder: Path) -> str:
    """Concepts that are found through two modalities."""
    rows = read(folder, "multimodal")["rows"]
    counts = list(dict.fromkeys(row["concepts"] for row in rows))
    found = {(row["first"], row["second"], row["concepts"]): row for row in rows}
    lines = []
    for first, second in dict.fromkeys((row["first"], row["second"]) for row in rows):
        own = [found[first, second, count] for count in counts]
        lines.append([f"{first}, then {second}", *(with_spread(row["accuracy"], row["paper"]) for row in own)])
    return markdown(["", *(f"{count} concepts" for count in counts)], lines)


TABLES: dict[str, Callable[[Path], str]] = {
    "retrieval": retrieval,
    "worlds": worlds,
    "real": real,
    "bags": bags,
    "checks": checks,
    "images": images,
    "published": published,
    "modalities": modalities,
}
