"""Results as tables in Markdown: one function a table, which reads the reports of its experiments.

The docstring of a table is its title on the page.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ahop.paper.pages.markdown import Report, figure, plain, read, short, table, with_spread

MODELS = {
    "mlp": "4-layer perceptron",
    "a-hop-adam": "a-hop, Adam as in the paper",
    "b-hop*": "**b-hop, no labels** (`b-hop*`)",
    "b-hop": "**b-hop**",
    "oracle": "Oracle (Bayes ceiling)",
}

CLASSIFIERS = {
    "default": "`HopfieldClassifier()`",
    "a-hop-cases": "a vote of a-hop, all rows as cases",
    "ours": "**a vote of memories**",
    "m-hop": "m-hop, prototypes as in the paper",
    "k2-hop": "k2-hop, likewise",
    "a-hop": "a-hop, likewise",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "adaboost": "AdaBoost",
    "extra trees": "extra trees",
    "random forest": "random forest",
}

BOTH = "queries and origins"
LEARNS = {"whitening": BOTH, "a-hop": BOTH, "b-hop": BOTH, "b-hop*": "queries alone"}


def retrieval(folder: Path) -> str:
    """Table 2: accuracy under mixed corruption."""
    return _retrieval(folder, "accuracy")


def errors(folder: Path) -> str:
    """Table 2: squared error a dimension."""
    return _retrieval(folder, "error")


def _retrieval(folder: Path, what: str) -> str:
    rows: dict[tuple[str, str, float], dict[str, Any]] = {}
    for data in ("synthetic", "mnist"):
        for row in read(folder, f"retrieval-{data}")["rows"]:
            rows[row["model"], data, row["intensities"][0]] = row
    columns = sorted({key[1:] for key in rows}, key=lambda column: (column[0] == "mnist", column[1]))
    lines = []
    for model in dict.fromkeys(model for model, *_ in rows):
        cells = []
        for data, difficulty in columns:
            row = rows.get((model, data, difficulty))
            # Adam is ours to compare with, and the paper's figure stands beside the network once.
            paper = row["paper"][what] if row and row["paper"] and model != "a-hop-adam" else None
            cells.append(with_spread(row[what], paper) if row else "")
        lines.append([MODELS.get(model, model), *cells])
    names = {"synthetic": "synthetic", "mnist": "MNIST"}
    return table(["", *(f"{names[data]} {figure(value, 1)}" for data, value in columns)], lines)


def worlds(folder: Path) -> str:
    """How close to the Oracle's first choices."""
    rows = read(folder, "worlds")["rows"]
    found = {(row["world"], row["model"]): row["fraction_of_oracle"] for row in rows}
    lines = []
    for world in dict.fromkeys(row["world"] for row in rows):
        blind = found[world, "b-hop*"]
        cells = [found[world, "m-hop"]["mean"], blind["mean"], min(blind["runs"]), found[world, "b-hop"]["mean"]]
        lines.append([world, *map(figure, cells)])
    return table(["world", "m-hop", "b-hop, no labels", "its worst run", "b-hop"], lines)


def real(folder: Path) -> str:
    """Items that were measured twice."""
    rows = read(folder, "real")["rows"]
    found = {(row["model"], row["data"]): row for row in rows}
    names = {"tablets": "tablets", "gas": "gas", "wifi": "Wi-Fi"}
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        title = f"**{model}**" if model.startswith("b-hop") else model
        lines.append([title, LEARNS.get(model, "nothing"), *(figure(found[model, data]["accuracy"]) for data in names)])
    return table(["", "learns from", *names.values()], lines)


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
    return table(["", *(names.get(name, name.capitalize()) for name in data)], lines)


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
    return table(["", *models], lines)


def images(folder: Path) -> str:
    """A transformer of Hopfield layers on CIFAR-10, and what a step costs."""
    accuracy = {row["model"]: row["accuracy"] for row in read(folder, "images-cifar10")["rows"]}
    costs = {row["model"]: row for row in read(folder, "layers-cuda")["rows"]}
    models = list(costs)

    def right(model: str) -> str:
        if model not in accuracy:
            return ""
        return with_spread(accuracy[model]) + (" (one seed)" if len(accuracy[model]["runs"]) == 1 else "")

    def cost(model: str) -> str:
        if model == "m-hop":
            return f"1 ({plain(costs[model]['milliseconds'])} ms)"
        return plain(costs[model]["ratio"])

    names = ["a-hop, one base" if model == "a-hop-1" else model for model in models]
    most = max(len(figures["runs"]) for figures in accuracy.values())
    lines = [[f"accuracy, {most} seeds", *map(right, models)], ["a training step", *map(cost, models)]]
    return table(["", *names], lines)


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
    return table(head, lines)


def modalities(folder: Path) -> str:
    """Concepts that are found through two modalities."""
    rows = read(folder, "multimodal")["rows"]
    counts = list(dict.fromkeys(row["concepts"] for row in rows))
    found = {(row["first"], row["second"], row["concepts"]): row for row in rows}
    lines = []
    for first, second in dict.fromkeys((row["first"], row["second"]) for row in rows):
        own = [found[first, second, count] for count in counts]
        lines.append([f"{first}, then {second}", *(with_spread(row["accuracy"], row["paper"]) for row in own)])
    return table(["", *(f"{count} concepts" for count in counts)], lines)


def twelve(folder: Path) -> str:
    """The retrieval figure: accuracy in twelve settings, with 2,048 and with 4,096 patterns."""
    reports = {count: read(folder, f"retrieval-twelve-{count}")["rows"] for count in (2048, 4096)}
    models = list(dict.fromkeys(row["model"] for row in reports[2048]))
    found = {
        (count, row["setting"], row["model"]): row["accuracy"]["mean"]
        for count, rows in reports.items()
        for row in rows
    }
    lines = []
    for setting in dict.fromkeys(row["setting"] for row in reports[2048]):
        pairs = [[figure(found[count, setting, model], 2) for count in reports] for model in models]
        lines.append([setting, *(", ".join(pair) for pair in pairs)])
    return table(["", *("Oracle" if model == "oracle" else model for model in models)], lines)


def generators(folder: Path) -> str:
    """Which way of drawing queries gives the paper's own figures for networks that learn nothing."""
    titles = {
        "literal": "as its text says: noise of variance d, mask, bias d",
        "std": "the same with noise of standard deviation d",
        "synthetic": "`published`: noise of standard deviation d, bias 1.5 d, mask",
    }
    reports = {name: read(folder, f"retrieval-{name}")["rows"] for name in titles}
    found = {
        (name, row["model"], row["intensities"][0]): row
        for name, rows in reports.items()
        for row in rows
        if row["model"] in ("m-hop", "u-hop")
    }
    columns = sorted({key[1:] for key in found})
    paper = [figure(found[("literal", *column)]["paper"]["accuracy"]) for column in columns]
    lines = [["**the paper**", *paper]]
    for name, title in titles.items():
        lines.append([title, *(with_spread(found[(name, *column)]["accuracy"]) for column in columns)])
    return table(["", *(f"{model}, d = {figure(value, 1)}" for model, value in columns)], lines)


def ablations(folder: Path) -> str:
    """What each part of a-hop is good for."""
    rows = read(folder, "ablations")["rows"]
    found = {(row["study"], row["condition"], row["difficulty"]): row for row in rows}
    difficulties = list(dict.fromkeys(row["difficulty"] for row in rows))
    lines, before = [], ""
    for study, condition in dict.fromkeys((row["study"], row["condition"]) for row in rows):
        own = [found[study, condition, difficulty] for difficulty in difficulties]
        cells = [with_spread(row["accuracy"], row["paper"]) for row in own]
        lines.append([study if study != before else "", condition, *cells])
        before = study
    return table(["", "", *(f"difficulty {figure(value, 1)}" for value in difficulties)], lines)


def sound(folder: Path) -> str:
    """Table 3 with sound features: accuracy."""
    return _tabular(read(folder, "tabular-sound")["rows"], "accuracy")


def areas(folder: Path) -> str:
    """The same: area under the curve."""
    return _tabular(read(folder, "tabular-sound")["rows"], "auc")


def benchmark(folder: Path) -> str:
    """Table 3 with the paper's features: accuracy."""
    return _tabular(read(folder, "tabular-benchmark")["rows"], "accuracy")


def benchmark_areas(folder: Path) -> str:
    """The same: area under the curve."""
    return _tabular(read(folder, "tabular-benchmark")["rows"], "auc")


def _tabular(rows: list[dict[str, Any]], what: str) -> str:
    found = {(row["model"], row["data"]): row for row in rows}
    data = list(dict.fromkeys(row["data"] for row in rows))
    best = {name: max(row[what]["mean"] for row in rows if row["data"] == name) for name in data}

    def cell(model: str, name: str) -> str:
        row = found.get((model, name))
        if row is None:
            return ""
        # Four figures, since the best differ by less than three show.
        text = with_spread(row[what], row["paper"] if what == "accuracy" else None, 4)
        return f"**{text}**" if row[what]["mean"] == best[name] else text

    shown = [model for model in CLASSIFIERS if any(model == row["model"] for row in rows)]
    lines = [[CLASSIFIERS[model], *(cell(model, name) for name in data)] for model in shown]
    return table(["", *(name.capitalize() for name in data)], lines)


def times(folder: Path) -> str:
    """How long classifiers of tables take to fit and to predict: ratios to XGBoost's time."""
    rows = [row for row in read(folder, "tabular-sound")["rows"] if "fit" in row and row["model"] != "xgboost"]
    rows += [{**row, "model": "alone"} for row in read(folder, "tabular-cpu")["rows"] if row["model"] == "default"]
    found = {(row["model"], row["data"]): f"{plain(row['fit'])}, {plain(row['predict'])}" for row in rows}
    data = list(dict.fromkeys(row["data"] for row in rows))
    names = {"alone": "`HopfieldClassifier()`, no GPU", **CLASSIFIERS}
    shown = [model for model in names if any(model == row["model"] for row in rows)]
    lines = [[names[model], *(found.get((model, name), "") for name in data)] for model in shown]
    return table(["fit, predict", *(name.capitalize() for name in data)], lines)


def timing(folder: Path) -> str:
    """The timing table: milliseconds on an H200."""
    return _timing(read(folder, "timing-cuda"), lambda what, own: figure(own, 4 if what == "query" else 0), short)


def ratios(folder: Path) -> str:
    """The timing table on two cores: ratios to its first cell, sorted."""
    return _timing(read(folder, "timing-cpu"), lambda what, own: plain(own), plain)


def _timing(report: Report, ours: Callable[[str, float], str], papers: Callable[[float], str]) -> str:
    rows = report["rows"]
    sizes = list(dict.fromkeys((row["dim"], row["patterns"]) for row in rows))
    found = {(row["sort"], (row["dim"], row["patterns"])): row for row in rows}
    lines = []
    # The paper learns by Adam.
    for what, title, paper in (
        ("fit", "convex fit", None),
        ("adam", "fit by Adam", "fit"),
        ("query", "query", "query"),
    ):
        for sort, kind in ((True, "sorted"), (False, "not sorted")):
            own = [found[sort, size] for size in sizes]
            cells = [ours(what, row[what]) + (f" ({papers(row['paper'][paper])})" if paper else "") for row in own]
            lines.append([f"{title}, {kind}" + (" (paper)" if paper else ""), *cells])
    return table(["d, N", *(f"{dim}, {count}" for dim, count in sizes)], lines)


def kernels(folder: Path) -> str:
    """How many times faster than the plain definition."""
    lines: list[list[str]] = []
    dims: list[int] = []
    asked = {
        "cpu": ("two cores", ("scores", "weight_gradient", "gradients")),
        "cuda": ("H200", ("scores", "gradients")),
    }
    titles = {
        "scores": "scores, times the definition",
        "weight_gradient": "with the gradient to the weights",
        "gradients": "with all gradients",
    }
    for device, (place, figures) in asked.items():
        rows = {row["dim"]: row for row in read(folder, f"kernels-{device}")["rows"] if "scores_ratio" in row}
        dims = dims or list(rows)
        lines += [
            [f"{place}: {titles[what]}", *(plain(rows[dim][f"{what}_ratio"]) for dim in dims)] for what in figures
        ]
    return table(["d", *map(str, dims)], lines)


def claims(folder: Path) -> str:
    """What the paper proves, as printed and as it holds."""
    rows = read(folder, "claims")["rows"]
    lines = [
        [row["where"], row["says"], row["measured"], short(row["printed"]), short(row["corrected"]), row["holds"]]
        for row in rows
    ]
    return table(["where", "the paper says", "measured", "as printed", "corrected", "what holds"], lines)


TABLES: dict[str, Callable[[Path], str]] = {
    "retrieval": retrieval,
    "errors": errors,
    "twelve": twelve,
    "generators": generators,
    "ablations": ablations,
    "worlds": worlds,
    "real": real,
    "bags": bags,
    "checks": checks,
    "images": images,
    "published": published,
    "modalities": modalities,
    "tables-sound": sound,
    "tables-areas": areas,
    "tables-paper": benchmark,
    "tables-paper-areas": benchmark_areas,
    "times": times,
    "timing": timing,
    "ratios": ratios,
    "kernels": kernels,
    "claims": claims,
}


def made(name: str, folder: str | os.PathLike[str]) -> str:
    """The table of this name, from the reports of the folder."""
    if name not in TABLES:
        raise ValueError(f"there is no table {name!r}; known: {', '.join(TABLES)}")
    try:
        return TABLES[name](Path(folder))
    except (LookupError, TypeError, AttributeError) as error:
        lacks = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"table {name!r} cannot be made from the reports in {folder}, which lack a part: {lacks}"
        ) from error
