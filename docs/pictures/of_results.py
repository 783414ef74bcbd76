"""Pictures of the results, each from a report in ``results/``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ahop.plot.canvas import BLUE, GREY, ORANGE, figure, legend
from ahop_paper.spread import with_interval

RESULTS = Path(__file__).parents[2] / "results"
GREEN, LIGHT = "#2a9d74", "#b08fc7"


def rows(report: str) -> list[dict[str, Any]]:
    """The rows of a report's table."""
    return json.loads((RESULTS / f"{report}.json").read_text())["rows"]


def ladder() -> None:
    """Accuracy against difficulty, beside the ceiling."""
    lines = {
        "oracle": ("the ceiling: an Oracle", GREY, "--"),
        "b-hop": ("b-hop", BLUE, "o-"),
        "b-hop*": ("b-hop, no labels", GREEN, "s-"),
        "a-hop": ("a-hop", LIGHT, "D-"),
        "z-scored cosine": ("z-scored cosine", GREY, "^:"),
        "m-hop": ("m-hop, the modern Hopfield network", ORANGE, "v-"),
    }
    with figure(1, 7.0, 3.4) as made:
        for model, (label, colour, style) in lines.items():
            found = [row for row in rows("retrieval-ladder") if row["model"] == model]
            across = [row["intensities"][0] for row in found]
            up = [_mean(row["first_choice"]) for row in found]
            made.axes[0].plot(across, up, style, color=colour, label=label, markersize=4)
        made.axes[0].set(xlabel="difficulty: how much is lost, noisy and shifted", ylabel="right first choices")
        made.axes[0].set_ylim(0, 1.03)
        legend(made.axes[0])


def measured() -> None:
    """Items that were measured twice: what is plain beside what is learned."""
    sets = {
        "tablets": "tablets, two spectrometers",
        "ms2": "mass spectra of laboratories",
        "wifi": "Wi-Fi of another phone",
        "gas": "gas sensors, years later",
    }
    marks = {
        "centred cosine": ("centred cosine", GREY, "x"),
        "ridge": ("ridge regression, all labels", ORANGE, "s"),
        "b-hop*": ("b-hop, no labels", GREEN, "o"),
        "b-hop": ("b-hop, all labels", BLUE, "D"),
    }
    found = {(row["data"], row["model"]): row["accuracy"]["mean"] for row in rows("real")}
    with figure(1, 7.0, 2.9) as made:
        _dots(made.axes[0], sets, marks, found)
        made.axes[0].set(xlabel="right first choices on held-out items", xlim=(-0.02, 1.02))


def pairs() -> None:
    """Between two spaces: accuracy by how many pairs are known."""
    sets = {
        "embeddings-new": "a later image model",
        "text-glove": "GloVe asks WordLlama",
        "text-llama": "WordLlama asks GloVe",
    }
    known = {count: place for place, count in enumerate(("0", "5", "10", "100", "500", "all"))}
    methods = {
        "b-hop": (BLUE, "o-"),
        "VecMap": (GREEN, "D-"),
        "ridge": (ORANGE, "s-"),
        "ridge and inverted softmax": (GREY, "^"),
    }
    with figure(3, 2.7, 2.8) as made:
        for axis, (data, title) in zip(made.axes, sets.items(), strict=True):
            found = [row for row in rows("spaces") if row["data"] == data]
            for method, (colour, style) in methods.items():
                shares = sorted(
                    (known[row["labels"]], row["right"]["mean"]) for row in found if row["method"] == method
                )
                axis.plot(*zip(*shares, strict=True), style, color=colour, label=method)
            axis.set(title=title, ylim=(0, 1), xlabel="known pairs")
            axis.set_xticks(range(6), ["0", "5", "10", "100", "500", "5,000"])
        made.axes[0].set_ylabel("right first choices")
        legend(made.axes[0], loc="center left")


def sure_and_right() -> None:
    """Mean confidence against accuracy, of default fits."""
    ways = {"no labels": ("o", ORANGE), "20 answers checked": ("s", GREEN), "100 labels": ("D", BLUE)}
    with figure(1, 4.6, 3.8) as made:
        axis = made.axes[0]
        axis.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--", label="as sure as right")
        for way, (mark, colour) in ways.items():
            found = [row for row in rows("trust") if row["way"] == way and row["found"]]
            across, up = [row["sure"] for row in found], [row["right"] for row in found]
            axis.plot(across, up, mark, color=colour, label=way, markersize=5)
        axis.set(xlabel="mean confidence", ylabel="right first choices", xlim=(0, 1.03), ylim=(0, 1.03))
        legend(axis)


def boosted_trees() -> None:
    """The difference to the best trees, a table each."""
    kinds = {"default": (ORANGE, "s", "a single memory, its defaults"), "ours": (BLUE, "o", "an ensemble, tuned")}
    found = [row for row in rows("tabular-sound") if row["model"] in kinds]
    names = list(dict.fromkeys(row["data"] for row in found))
    with figure(1, 6.5, 2.8) as made:
        axis = made.axes[0]
        axis.axvline(0, color=GREY, linewidth=1)
        for shift, (model, (colour, mark, label)) in zip((0.14, -0.14), kinds.items(), strict=True):
            own = {row["data"]: row["beside"]["accuracy"]["difference"] for row in found if row["model"] == model}
            mean = np.array([own[name]["mean"] for name in names])
            ends = np.abs(np.array([[own[name][end] for name in names] for end in ("low", "high")]) - mean)
            up = np.arange(len(names)) + shift
            axis.errorbar(100 * mean, up, xerr=100 * ends, fmt=mark, color=colour, label=label, markersize=5)
        axis.set_yticks(range(len(names)), map(str.capitalize, names))
        axis.invert_yaxis()
        axis.set_xlabel("accuracy less that of the best trees, in points, with 95 % confidence interval")
        legend(axis)


def pooling() -> None:
    """Six sets of bags: Hopfield pooling beside plain pooling."""
    names = {
        "tiger": "Tiger",
        "fox": "Fox",
        "elephant": "Elephant",
        "ucsb": "UCSB",
        "musk1": "Musk 1",
        "musk2": "Musk 2",
    }
    marks = {
        "mean": ("mean", GREY, "x"),
        "max": ("max", ORANGE, "s"),
        "attention": ("attention", LIGHT, "^"),
        "a-hop": ("a-hop", GREEN, "o"),
        "b-hop": ("b-hop", BLUE, "D"),
    }
    found = {(row["data"], row["model"]): row["auc"]["mean"] for row in rows("mil")}
    with figure(1, 6.5, 2.8) as made:
        _dots(made.axes[0], names, marks, found)
        made.axes[0].set(xlabel="area under the ROC curve", xlim=(0.6, 1))


def transformers() -> None:
    """Accuracy and time of a small vision transformer, by its similarity."""
    found, times = rows("images-cifar10"), {row["model"]: row["ratio"] for row in rows("layers-cuda")}
    with figure(1, 5.5, 2.8) as made:
        axis = made.axes[0]
        for row in found:
            across, share = times[row["model"]], row["accuracy"]
            axis.errorbar(across, 100 * share["mean"], yerr=100 * share["std"], fmt="o", color=BLUE)
            axis.annotate(row["model"], (across, 100 * share["mean"]), (7, 4), textcoords="offset points", color=GREY)
        axis.set(xlabel="time of a training step, times that of fused attention", ylabel="accuracy on CIFAR-10 (%)")
        axis.set_xlim(0.8, 4.1)


def kernels() -> None:
    """How many times faster footprints are than in plain PyTorch."""
    machines = {
        "arm": ("two ARM cores", GREEN, "s"),
        "x86": ("two x86 cores", ORANGE, "^"),
        "cuda": ("H200", BLUE, "o"),
    }
    with figure(1, 6.0, 3.0) as made:
        axis = made.axes[0]
        for machine, (label, colour, mark) in machines.items():
            found = rows(f"kernels-{machine}")
            across, up = [row["dim"] for row in found], [row["scores_ratio"] for row in found]
            axis.plot(across, up, f"{mark}-", color=colour, label=label, markersize=5)
        axis.set(xscale="log", yscale="log", xlabel="dimensions", ylabel="times as fast as plain PyTorch")
        axis.set_xticks([16, 64, 256, 1000], ["16", "64", "256", "1,000"])
        axis.set_yticks([5, 10, 20, 50, 100], ["5", "10", "20", "50", "100"])
        axis.minorticks_off()
        legend(axis)


def many_patterns() -> None:
    """What recall of a learned likelihood costs beside a plain dot product, on a GPU."""
    found = [row for row in rows("scale-cuda") if "milliseconds" in row]
    names = [
        f"{row['patterns']:,} patterns\n{row['queries']:,} quer{'y' if row['queries'] == 1 else 'ies'}" for row in found
    ]
    with figure(1, 6.5, 2.8) as made:
        axis = made.axes[0]
        for place, (key, label, colour) in enumerate(
            (
                ("milliseconds", "recall by a learned likelihood", BLUE),
                ("dot_product_milliseconds", "dot products, topk", ORANGE),
                ("half_precision_milliseconds", "dot products in half precision, topk", GREY),
            )
        ):
            axis.bar(
                np.arange(len(found)) + 0.27 * (place - 1), [row[key] for row in found], 0.25, color=colour, label=label
            )
        axis.set(yscale="log", ylabel="milliseconds on an H200")
        axis.set_xticks(range(len(names)), names)
        legend(axis)


def blends() -> None:
    """How often the whole set comes back, by how many patterns a query is the mean of."""
    ways = {
        "b-hop, best k": (BLUE, "D-"),
        "softmax, best k": (ORANGE, "s-"),
        "ksubsets at rest": (GREEN, "o-"),
        "support of sparsemax": (LIGHT, "^-"),
        "softmax at rest": (GREY, "x--"),
    }
    with figure(1, 6.0, 3.0) as made:
        axis = made.axes[0]
        for way, (colour, style) in ways.items():
            found = [row for row in rows("blends") if row["way"] == way]
            across, up = [row["size"] for row in found], [row["whole"]["mean"] for row in found]
            sure = [with_interval(row["whole"]["runs"]) for row in found]
            half = [(one["high"] - one["low"]) / 2 for one in sure]
            axis.errorbar(across, up, yerr=half, fmt=style, color=colour, label=way, markersize=5)
        axis.set(xlabel="patterns that a query is the mean of", ylabel="whole sets that come back", ylim=(-0.03, 1.03))
        axis.set_xticks([2, 3, 4])
        legend(axis, loc="center left", bbox_to_anchor=(1, 0.5))


def _dots(axis: Axes, names: dict[str, str], marks: dict[str, tuple[str, str, str]], found: dict[Any, float]) -> None:
    """A line a data set, a mark a method."""
    for model, (label, colour, mark) in marks.items():
        across = [found.get((name, model), np.nan) for name in names]
        axis.plot(across, range(len(names)), mark, color=colour, label=label, markersize=6)
    axis.set_yticks(range(len(names)), list(names.values()))
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="y", color=GREY, alpha=0.3)
    legend(axis, loc="center left", bbox_to_anchor=(1, 0.5))


def _mean(share: Any) -> float:
    return share["mean"] if isinstance(share, dict) else share


DRAWN = (
    ladder, measured, pairs, sure_and_right, boosted_trees, pooling, transformers, kernels, many_patterns, blends
)  # fmt: skip
