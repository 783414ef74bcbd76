"""Rows of any distribution, queries that have nothing to do with them, and queries that were corrupted at random."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ahop.datasets.files import DataFile, fetch
from ahop.datasets.real import EMBEDDINGS
from ahop_paper.drawing import Draw, World
from ahop_paper.text_models import TEXT

Population = Callable[[int, int, Draw], Tensor]


def _normal(count: int, dim: int, draw: Draw) -> Tensor:
    return draw.normal(count, dim)


def _heavy_tailed(count: int, dim: int, draw: Draw) -> Tensor:
    """Student's t with two degrees of freedom."""
    return draw.normal(count, dim) / (-(1 - draw.uniform(count, dim)).log()).sqrt().clamp_min(1e-3)


def _uniform(count: int, dim: int, draw: Draw) -> Tensor:
    return draw.uniform(count, dim)


def _log_normal(count: int, dim: int, draw: Draw) -> Tensor:
    return draw.normal(count, dim).exp()


def _counts(count: int, dim: int, draw: Draw) -> Tensor:
    """Poisson, at a rate of the column's own."""
    return torch.poisson((3 * draw.normal(dim).exp()).expand(count, dim), generator=draw.generator)


def _binary(count: int, dim: int, draw: Draw) -> Tensor:
    return (draw.uniform(count, dim) < 0.1 + 0.8 * draw.uniform(dim)).float()


def _clustered(count: int, dim: int, draw: Draw) -> Tensor:
    """About ten centres."""
    return (3 * draw.normal(10, dim))[draw.below(10, count)] + draw.normal(count, dim)


def _correlated(count: int, dim: int, draw: Draw) -> Tensor:
    """Three hidden causes, and a little of each column's own."""
    return draw.normal(count, 3) @ draw.normal(3, dim) + 0.3 * draw.normal(count, dim)


def _mostly_nought(count: int, dim: int, draw: Draw) -> Tensor:
    return draw.normal(count, dim).exp() * (draw.uniform(count, dim) < 0.3)


def _curves(count: int, dim: int, draw: Draw) -> Tensor:
    """Random walks along the columns."""
    return draw.normal(count, dim).cumsum(1)


POPULATIONS: dict[str, Population] = {
    "normal": _normal,
    "heavy-tailed": _heavy_tailed,
    "uniform": _uniform,
    "log-normal": _log_normal,
    "counts": _counts,
    "binary": _binary,
    "clustered": _clustered,
    "correlated": _correlated,
    "mostly nought": _mostly_nought,
    "curves": _curves,
}


def between(low: float, high: float, draw: Draw) -> int:
    """A whole number, its logarithm uniform."""
    return round(low * (high / low) ** float(draw.uniform(1)))


def _of(kind: str, number: int) -> Draw:
    """Numbers of one seed, others for every kind."""
    return Draw(len(POPULATIONS) * number + list(POPULATIONS).index(kind))


def unrelated(kind: str, seed: int) -> World:
    """50 to 2,000 rows of 2 to 200 numbers, and other rows of the same population as queries: none has an origin."""
    draw = _of(kind, seed)
    count, dim, queries = between(50, 2000, draw), between(2, 200, draw), between(50, 1000, draw)
    rows = POPULATIONS[kind](count + queries, dim, draw)
    none = torch.full((queries,), -1)
    return World(rows[:count], rows[count:], none, rows[count:], none)


Spaces = Callable[[int, int, Draw], tuple[Tensor, Tensor]]


@cache
def _rows(file: DataFile, *names: str) -> list[Tensor]:
    with np.load(fetch(file), allow_pickle=False) as archive:
        return [torch.from_numpy(archive[name]).float() for name in names]


def _drawn(population: Population) -> Spaces:
    """Two draws of one population, each around centres of its own."""
    return lambda stored, asked, draw: (population(stored, 64, draw), population(asked, 64, draw))


def _shuffled(stored: int, asked: int, draw: Draw) -> tuple[Tensor, Tensor]:
    """Images by two models; every column of the queries is in an order of its own."""
    old, new = _rows(EMBEDDINGS, "old", "new")
    rows = new[draw.below(len(new), asked)]
    return old[draw.below(len(old), stored)], rows.gather(0, draw.uniform(*rows.shape).argsort(0))


def _other_subjects(stored: int, asked: int, draw: Draw) -> tuple[Tensor, Tensor]:
    """Images of one kind of thing by one model, and of another kind by another model."""
    old, new, label = _rows(EMBEDDINGS, "old", "new", "label")
    kinds = draw.uniform(int(label.max()) + 1).argsort()
    first, second = (torch.isin(label, half).nonzero().squeeze(1) for half in kinds.tensor_split(2))
    return old[first[draw.below(len(first), stored)]], new[second[draw.below(len(second), asked)]]


def _text_of_images(stored: int, asked: int, draw: Draw) -> tuple[Tensor, Tensor]:
    """Images by one model, and definitions of words by a text model."""
    (old,), (llama,) = _rows(EMBEDDINGS, "old"), _rows(TEXT, "llama")
    return old[draw.below(len(old), stored)], llama[draw.below(len(llama), asked)]


SPACES: dict[str, Spaces] = {
    "normal spaces": _drawn(_normal),
    "clustered spaces": _drawn(_clustered),
    "heavy-tailed spaces": _drawn(_heavy_tailed),
    "shuffled columns": _shuffled,
    "other subjects": _other_subjects,
    "text for images": _text_of_images,
}


def unrelated_spaces(kind: str, seed: int) -> World:
    """Rows of a space and queries of another, either turned at random into 16 to 64 numbers: 200 to 600 of each side in
    unlike widths or, by every fourth seed, 1,500 to 1,800 in one width, enough to look for a rotation. None has an
    origin."""
    draw, alike = Draw(len(SPACES) * seed + list(SPACES).index(kind)), seed % 4 == 3
    stored, asked = (between(*((1500, 1800) if alike else (200, 600)), draw) for _ in range(2))
    width = between(16, 64, draw)
    other = width if alike else 16 + (width - 15 + int(draw.below(48))) % 49
    patterns, queries = (
        rows @ torch.linalg.qr(draw.normal(rows.shape[1], most)).Q
        for rows, most in zip(SPACES[kind](stored, asked, draw), (width, other), strict=True)
    )
    none = torch.full((len(queries),), -1)
    return World(patterns, queries, none, queries, none)


def corrupted(kind: str, number: int, seed: int, asked: int) -> World:
    """50 to 1,500 rows of 4 to 64 numbers, with noise and whatever else the number brings, drawn by the seed.

    Args:
        kind: The population that the rows are of.
        number: Which of its worlds: their sizes, noise and what else happens.
        seed: Of what is drawn.
        asked: How many queries beside those to learn from.
    """
    world, draw = _of(kind, number), Draw(seed)
    count, dim, learned = between(50, 1500, world), between(4, 64, world), between(50, 800, world)
    noise, lost, causes = 0.1 * 15 ** float(world.uniform(1)), 0.6 * float(world.uniform(1)), between(1, 4, world)
    shifted, moved, scaled, mixed = (world.uniform(4) < torch.tensor([0.5, 0.3, 0.3, 0.3])).tolist()
    patterns = POPULATIONS[kind](count, dim, draw)
    unit = patterns.std(0).clamp_min(1e-6)
    origins = draw.below(count, learned + asked)
    rows = patterns[origins]
    if shifted:
        rows = rows + unit * draw.normal(dim)
    if moved:
        # What a few hidden causes do to all columns at once.
        rows = rows + unit * (draw.normal(len(rows), causes) @ draw.normal(causes, dim))
    if scaled:
        rows = rows * (1 + 0.4 * draw.normal(len(rows), 1))
    rows = rows + noise * unit * draw.normal(*rows.shape)
    if mixed:
        # Some values are those of other patterns.
        foreign = patterns.gather(0, draw.below(count, *rows.shape))
        rows = torch.where(draw.uniform(*rows.shape) < lost, foreign, rows)
    return World(patterns, rows[:learned], origins[:learned], rows[learned:], origins[learned:])
