"""Draws the pictures of pages from what the pages' own code has made: ``python docs/pictures/draw.py``."""

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import torch

import ahop

HERE = Path(__file__).parent
# Told apart by those who see no colours, too; shapes and hatching say the same.
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"


def run(page: str) -> dict[str, Any]:
    """All names that the code of a page leaves behind."""
    names: dict[str, Any] = {}
    text = (HERE.parent / f"{page}.md").read_text()
    with contextlib.redirect_stdout(io.StringIO()):
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(block, names)
    return names


def changed_embeddings(names: dict[str, Any]) -> None:
    """Old vectors, new ones, and new ones where the memory puts them."""
    old, new, items = names["old"], names["new"], names["items"]
    brought = torch.nn.functional.normalize(names["adapter"](new), dim=1)
    some = torch.arange(40)
    shade = torch.linspace(0, 1, 40)
    shade = shade[old[items[some], 0].argsort().argsort()]
    _, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharex=True, sharey=True)
    for axis, title in zip(axes, ("old model", "new model", "brought to the old space"), strict=True):
        axis.set(title=title, xlabel="first value")
    axes[0].set_ylabel("second value")
    for axis in (axes[0], axes[2]):
        vectors = old[items[some]]
        edges = plt.colormaps["viridis"](shade.numpy())
        axis.scatter(vectors[:, 0], vectors[:, 1], s=70, facecolors="none", edgecolors=edges, linewidths=1.5)
    for axis, vectors in ((axes[1], new[some]), (axes[2], brought[some])):
        axis.scatter(vectors[:, 0], vectors[:, 1], s=28, c=shade, cmap="viridis", marker="x")


def spectra(names: dict[str, Any]) -> None:
    """One item by both instruments, and the one that lies nearest."""
    wrong = (names["nearest"] != names["items"]).nonzero()[0, 0]
    axis = plt.subplots(figsize=(7, 3.2))[1]
    library, item = names["library"], names["items"][wrong]
    for spectrum, line, colour, label in (
        (library[item], "-", BLUE, "the item in the library"),
        (names["second"][item], "--", ORANGE, "the item by the second instrument"),
        (library[names["nearest"][wrong]], ":", GREY, "nearest in the library: another item"),
    ):
        axis.plot(names["wavelength"], spectrum, line, color=colour, label=label)
    axis.set(xlabel="wavelength (nm)", ylabel="absorbance (arbitrary units)")
    axis.legend(frameon=False, fontsize=8)


def missing_values(names: dict[str, Any]) -> None:
    """What is heard, against the survey."""
    survey, heard = names["survey"][names["where"]][:60].flatten(), names["heard"][:60].flatten()
    floored = heard == -95
    axis = plt.subplots(figsize=(6, 3.6))[1]
    axis.plot([-95, -40], [-95, -40], color=GREY, linewidth=1, label="as in the survey")
    axis.scatter(survey[~floored], heard[~floored], s=14, facecolors="none", edgecolors=BLUE, label="heard")
    axis.scatter(survey[floored], heard[floored], s=18, color=ORANGE, marker="x", label="at the floor")
    axis.set(xlabel="signal in the survey (dBm)", ylabel="signal heard (dBm)")
    axis.legend(frameon=False, fontsize=8)


def strangers(names: dict[str, Any]) -> None:
    """Familiarity of those that are stored and those that are not."""
    memory = names["memory"]
    axis = plt.subplots(figsize=(6, 3.2))[1]
    for queries, hatch, colour, label in (
        (names["strangers"], "///", ORANGE, "strangers"),
        (names["genuine"], None, BLUE, "genuine queries"),
    ):
        axis.hist(memory.familiarity(queries), 24, hatch=hatch, color=colour, alpha=0.6, edgecolor="black", label=label)
    level = float(memory.similarity.least_familiar(0.05))
    axis.axvline(level, color="black", linestyle="--", label="refused to the left")
    axis.set(xlabel="familiarity (natural logarithm of a ratio)", ylabel="queries")
    axis.legend(frameon=False, fontsize=8)


def stream(names: dict[str, Any]) -> None:
    """Right first choices, month by month."""
    axis = plt.subplots(figsize=(6, 3.2))[1]
    months = range(1, 1 + len(names["followed"]))
    axis.plot(months, names["followed"], "o-", color=BLUE, label="follows the drift")
    axis.plot(months, names["stayed"], "s--", color=ORANGE, markerfacecolor="white", label="learned once")
    axis.set(xlabel="months", ylabel="share of right first choices", ylim=(0, 1.05), xticks=list(months))
    axis.legend(frameon=False, fontsize=8)


def zoo_energies(names: dict[str, Any]) -> None:
    """The energy of every memory on the same patterns, and where queries roll."""
    _, axes = plt.subplots(2, 4, figsize=(11, 5.6), sharex=True, sharey=True)
    for axis, (title, memory) in zip(axes.flat, names["memories"].items(), strict=True):
        ahop.plot.energy(memory, names["queries"][::13], ax=axis)
        axis.get_legend().remove()
        axis.set(title=title, xlabel="", ylabel="")
    for axis in axes[1]:
        axis.set_xlabel("first value")
    for axis in axes[:, 0]:
        axis.set_ylabel("second value")


def save(picture: str, draw: Callable[[dict[str, Any]], None], page: str) -> None:
    """Draw a picture of what a page has made, and keep it."""
    draw(run(page))
    plt.tight_layout()
    plt.savefig(HERE / f"{picture}.png", dpi=110)
    plt.close()


if __name__ == "__main__":
    for draw in (changed_embeddings, spectra, missing_values, strangers, stream):
        guide = draw.__name__.replace("_", "-")
        save(guide, draw, f"guides/{guide}")
    save("zoo-energies", zoo_energies, "results/zoo")
