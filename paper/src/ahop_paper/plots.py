"""Pictures of results, in one style: without a ground of their own, so that they follow a page in light and in dark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._files import atomic_file
from ahop.plot.canvas import BLUE, GREY
from ahop.similarity import Density, Similarity
from ahop_paper._libraries import require
from ahop_paper.baselines import PLAIN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Near Okabe and Ito's colours, which colour-blind readers can tell apart, each with a contrast of three to white and to
# black; the Oracle is grey, being out of reach.
COLOURS = {
    "m-hop": "#0072B2",
    "centred L1": "#9A6324",
    "z-scored cosine": "#4799C9",
    "u-hop": "#4799C9",
    "s-hop": "#6F9A3A",
    "k-hop": "#C77F00",
    "k2-hop": "#9C9500",
    "mlp": "#C66F9F",
    "a-hop": "#009E73",
    "a-hop-adam": "#459B82",
    "b-hop": "#D55E00",
    "b-hop*": "#B0407F",
    "oracle": GREY,
}
STYLE: Any = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), GREY),
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
}


def accuracy(report: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """How often each model's first choice is right over the settings; the Oracle's is the ceiling."""
    if not report.get("rows"):
        raise ValueError("report must have rows to be drawn, got none")
    # Of baselines only those that have a colour: so many lines could not be told apart.
    rows = [row for row in report["rows"] if row["model"] not in PLAIN or row["model"] in COLOURS]
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    intensities = {row["setting"]: row["intensities"] for row in rows}
    found = {(row["model"], row["setting"]): row["first_choice"] for row in rows}
    if len(settings) > 1 and all(len(set(intensities[name])) == 1 for name in settings):
        _ladder(found, {name: intensities[name][0] for name in settings}, path)
    else:
        # In a lane not even these.
        named = {key: figures for key, figures in found.items() if key[0] not in PLAIN}
        _lanes(named, settings, report["config"]["patterns"], path)


def _ladder(
    found: dict[tuple[str, str], dict[str, Any]], places: dict[str, float], path: str | os.PathLike[str]
) -> None:
    """Lines over one difficulty that grows."""
    with canvas(7, 4.2) as figure:
        axes = figure.subplots()
        for model in dict.fromkeys(model for model, _ in found):
            there = [name for name in places if (model, name) in found]
            own = [found[model, name] for name in there]
            axes.errorbar(
                [places[name] for name in there],
                [one["mean"] for one in own],
                yerr=[one["std"] for one in own],
                label=model,
                color=COLOURS.get(model),
                marker="o",
                capsize=3,
                linestyle="--" if model == "oracle" else ":" if model in PLAIN else "-",
            )
        axes.set_ylim(-0.03, 1.03)
        axes.set_ylabel("first choice is right")
        axes.set_xlabel("difficulty (mask = noise = bias)")
        axes.set_xticks(list(places.values()))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        write(figure, path)


def _lanes(
    found: dict[tuple[str, str], dict[str, Any]], settings: Sequence[str], patterns: int, path: str | os.PathLike[str]
) -> None:
    """A lane for each setting, in which the models stand one below the other and the ceiling is a bar across."""
    models = list(dict.fromkeys(model for model, _ in found if model != "oracle"))
    with canvas(7, 1.4 + 0.55 * len(settings)) as figure:
        axes = figure.subplots()
        for lane, setting in enumerate(settings):
            if lane % 2:
                axes.axhspan(lane - 0.5, lane + 0.5, color=GREY, alpha=0.12, linewidth=0, zorder=0)
            if ("oracle", setting) in found:
                ceiling = found["oracle", setting]["mean"]
                axes.plot([ceiling] * 2, [lane - 0.42, lane + 0.42], color=COLOURS["oracle"], linewidth=2, zorder=1)
        for place, model in enumerate(models):
            there = [(lane, setting) for lane, setting in enumerate(settings) if (model, setting) in found]
            own = [found[model, setting] for _, setting in there]
            axes.errorbar(
                [one["mean"] for one in own],
                [lane + 0.7 * ((place + 0.5) / len(models) - 0.5) for lane, _ in there],
                xerr=[one["std"] for one in own],
                label=model,
                color=COLOURS.get(model),
                marker="o",
                markersize=5,
                linestyle="none",
            )
        axes.plot([], [], color=COLOURS["oracle"], linewidth=2, label="oracle")
        axes.set_yticks(range(len(settings)), settings)
        axes.set_ylim(len(settings) - 0.5, -0.5)
        axes.set_xlim(-0.03, 1.03)
        axes.set_xlabel(f"first choice is right, {patterns:,} patterns")
        axes.grid(visible=False, axis="y")
        axes.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4, frameon=False)
        write(figure, path)


def recalled(
    origins: Tensor, queries: Tensor, answers: dict[str, Tensor], shape: Sequence[int], path: str | os.PathLike[str]
) -> None:
    """Rows of images: the originals, their corrupted queries, and what each model recalled.

    Args:
        origins: The originals, ``(n, d)``.
        queries: ``(n, d)``.
        answers: What each model read out, ``(n, d)``.
        shape: That of one image.
        path: Where to write.
    """
    rows = {"original": origins, "query": queries, **answers}
    with canvas(1.1 * len(origins) + 1.2, 1.15 * len(rows)) as figure:
        grid = figure.subplots(len(rows), len(origins), squeeze=False)
        for line, (name, images) in zip(grid, rows.items(), strict=True):
            for axes, image in zip(line, images, strict=True):
                axes.imshow(image.reshape(*shape).numpy(), cmap="gray", vmin=-1, vmax=1)
                axes.set_xticks([])
                axes.set_yticks([])
                axes.grid(visible=False)
            line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        write(figure, path)


def corruption(similarity: Similarity, path: str | os.PathLike[str]) -> None:
    """What a learned likelihood says happens to queries, dimension by dimension."""
    if not isinstance(similarity, Density):
        raise TypeError(f"similarity must be a likelihood (a Density), got {type(similarity).__name__}")
    several = similarity.parts()
    parts = [(f"{100 * share:.0f} % of queries" if len(several) > 1 else "", part) for share, part in several]
    with canvas(9, 2.6 * len(parts)) as figure:
        for line, (title, part) in zip(figure.subplots(len(parts), 3, squeeze=False), parts, strict=True):
            for axes, (name, learned, places) in zip(line, part.curves(), strict=True):
                values = learned.detach()
                if places is None:
                    axes.plot(values.numpy(), color=COLOURS["b-hop"], marker=".", linestyle="none")
                    axes.set_xlabel("dimension")
                else:
                    axes.fill_between(places.numpy(), values.numpy(), color=BLUE, alpha=0.6)
                    axes.set_xlabel("value" if places.is_floating_point() else "rank")
                axes.set_ylim(min(0.0, 1.1 * float(values.min())), max(1.1 * float(values.max()), 1e-3))
                axes.set_title(name, fontsize=11)
            line[0].set_ylabel(title)
        write(figure, path)


def tinted(weights: Tensor, colour: str) -> Tensor:
    """Pixels of one colour, as opaque as their weights in 0 to 1: where nothing is, the page is.

    Example:
        >>> tinted(torch.tensor([[0.0, 0.5]]), "#ff0000")
        tensor([[[1.0000, 0.0000, 0.0000, 0.0000],
                 [1.0000, 0.0000, 0.0000, 0.5000]]])
    """
    from matplotlib.colors import to_rgb

    ink = weights.new_tensor(to_rgb(colour)).expand(*weights.shape, 3)
    return torch.cat([ink, weights[..., None]], -1)


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """A figure in the library's style."""
    # Loaded when something is drawn: most commands draw nothing, and it is slow to load.
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def write(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Into a file, of the kind that its ending says."""
    with atomic_file(path) as file:
        figure.savefig(file, dpi=150, format=Path(path).suffix[1:] or "png")
