"""The two pictures that explain the paper: what a corruption does, and how a footprint sees through it."""

from __future__ import annotations

import os
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.memories import AdaptiveHopfield
from ahop.plot.canvas import BLUE, GREY
from ahop.similarity import footprint
from ahop.variants import Biased, Compose, Masked, Noisy, Variant
from ahop_paper.plots import COLOURS, canvas, tinted, write

# A value that is kept exactly is a line without width; so much noise makes it one that can be seen.
_PEN = 0.02
_HEN = """
......##........
.....####.......
.....##o#.......
....#####++.....
....####........
....#####.......
#...######......
##..#######.....
###.########....
.###########....
.##########.....
..#########.....
...#######......
.....#..#.......
.....#..#.......
....##.##.......
"""
_CHICK = """
................
.....######.....
....########....
...####o#####...
...##########++.
...#########....
..###########...
.#############..
.##############.
.##############.
.##############.
.##############.
..############..
...##########...
.....##..##.....
....###.###.....
"""


class Cloud(NamedTuple):
    """A corruption and what it is called."""

    name: str
    variant: Variant


def clouds() -> list[Cloud]:
    """The four corruptions of the paper's first figure, in two dimensions."""
    masked = Masked(rate=0.4, exact=False)
    return [
        Cloud("noisy", Noisy(sigma=0.25)),
        Cloud("masked", Compose([masked, Noisy(sigma=_PEN)])),
        Cloud("biased", Compose([Biased(0.5, seed=3), Noisy(sigma=_PEN)])),
        Cloud("noisy + masked", Compose([Noisy(sigma=0.15), masked])),
    ]


def draw_clouds(path: str | os.PathLike[str], places: int = 201) -> None:
    """Where the variants of one pattern lie: their likelihood over the plane, from the variants' own formulas."""
    line = torch.linspace(-1, 1, places)
    plane = torch.cartesian_prod(line, line)
    pattern = torch.zeros(1, 2)
    with canvas(9, 2.6) as figure:
        for axes, (name, variant) in zip(figure.subplots(1, 4), clouds(), strict=True):
            density = variant.log_likelihood(pattern, plane)[:, 0].reshape(places, places).T
            # The fourth root shows what is a thousand times rarer than the peak, too.
            shade = (density - density.max()).exp() ** 0.25
            axes.imshow(tinted(shade, BLUE).numpy(), origin="lower", extent=(-1, 1, -1, 1))
            axes.plot(0, 0, marker="o", color=COLOURS["b-hop"], markersize=4)
            axes.set_title(name, fontsize=11)
            axes.set_xticks([-1, 0, 1])
            axes.set_yticks([-1, 0, 1])
            axes.grid(visible=False)
        write(figure, path)


class Example(NamedTuple):
    """Two stored images, a query from the first, and the memory that learned the corruption."""

    patterns: Tensor
    query: Tensor
    memory: AdaptiveHopfield


def example() -> Example:
    """A hen and a chick, and a damaged hen that lies nearer to the chick."""
    shades = {".": -1.0, "#": 0.6, "o": -1.0, "+": 1.0}
    patterns = torch.stack([torch.tensor([shades[sign] for sign in art if sign != "\n"]) for art in (_HEN, _CHICK)])
    # What covers a pixel is as bright as feathers, and the chick has more of those.
    world = Compose([Noisy(sigma=0.15), Masked(rate=0.6, fill=(0.2, 1.0))])
    memory = AdaptiveHopfield(patterns, bases=["distance"]).fit(*world.sample(patterns, 512))
    for seed in range(1000):
        query = world.corrupt(patterns[:1], torch.Generator().manual_seed(seed))[0]
        # How often chance is on the chick's side is no matter here; that it can be is.
        apart = (patterns - query).square().sum(1)
        if apart[1] < apart[0] and memory.recall(query[None]).indices.item() == 0:
            return Example(patterns, query, memory)
    raise RuntimeError("no query of a thousand lies nearer to the other image")


def draw_example(path: str | os.PathLike[str]) -> None:
    """Step by step: terms of both pairs, sorted, added up, weighed; the distance fails and the footprint does not."""
    patterns, query, memory = example()
    terms = -(patterns - query).square()
    ordered = terms.sort(1, descending=True).values
    prints = footprint(patterns, query, "distance")
    with torch.no_grad():
        learned = memory.scores(query[None])[0]
        weights = memory.similarity.order_weights()[0]
    colours = [COLOURS["a-hop"], COLOURS["k-hop"]]
    with canvas(11, 6.4) as figure:
        grid = figure.subplot_mosaic([["hen", "hen q", "query", "sorted", "weights"],
                                      ["chick", "chick q", "scores", "footprints", "learned"]])  # fmt: skip
        for name, image in (("hen", patterns[0]), ("chick", patterns[1]), ("query", query)):
            grid[name].imshow(image.reshape(16, 16).numpy(), cmap="gray", vmin=-1.5, vmax=1.5)
            grid[name].set_title(name if name == "query" else f"stored: {name}", fontsize=11)
        for name, values in (("hen q", terms[0]), ("chick q", terms[1])):
            unlike = (-values / 4).clamp(0, 1).reshape(16, 16)
            grid[name].imshow(tinted(unlike, BLUE).numpy())
            grid[name].set_title("1. alike in each pixel", fontsize=11)
        for name in ("hen", "chick", "query", "hen q", "chick q"):
            grid[name].set_xticks([])
            grid[name].set_yticks([])
            grid[name].grid(visible=False)
        for place, (name, colour) in enumerate(zip(("hen", "chick"), colours, strict=True)):
            grid["sorted"].plot(ordered[place].numpy(), color=colour, label=name)
        grid["sorted"].set_title("2. sorted", fontsize=11)
        grid["sorted"].legend(frameon=False)
        ahead = (prints[0] - prints[1]).numpy()
        grid["footprints"].plot(ahead, color=GREY)
        for part, colour in ((ahead > 0, colours[0]), (ahead < 0, colours[1])):
            grid["footprints"].fill_between(range(len(ahead)), ahead, where=part, color=colour, alpha=0.5)
        grid["footprints"].set_title("3. added up: hen ahead by", fontsize=11)
        grid["footprints"].set_xlabel("best k pixels")
        grid["weights"].plot(weights.numpy(), color=GREY)
        grid["weights"].set_title("learned weight of rank", fontsize=11)
        grid["weights"].set_xlabel("rank")
        for name, scores, title in (
            ("scores", terms.sum(1), "distance: the chick"),
            ("learned", learned, "4. weighed: the hen"),
        ):
            better = (scores - scores.mean()).numpy()
            grid[name].bar(["hen", "chick"], better, color=colours)
            grid[name].axhline(0, color=GREY, linewidth=0.8)
            grid[name].set_title(title, fontsize=11)
            grid[name].set_ylabel("score, from their mean")
        write(figure, path)
