"""Sets of patterns and queries, some to be learned from and others, of the same kind, to be asked."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ahop.datasets.files import fetch
from ahop_paper import real
from ahop_paper.drawing import Draw, World
from ahop_paper.text_models import TEXT

# Queries of a set that are asked, and that are learned from, at most.
ASKED, LEARNED = 400, 1000


def asked_of(patterns: Tensor, corrupt: Callable[[Tensor], Tensor], learned: int, draw: Draw) -> World:
    """Queries of any pattern, some of which are learned from."""
    origins = draw.below(len(patterns), learned + ASKED)
    queries = corrupt(patterns[origins])
    return World(patterns, queries[:learned], origins[:learned], queries[learned:], origins[learned:])


def rotation(draw: Draw) -> World:
    """All values turned into one another, with a little noise."""
    turned = torch.linalg.qr(draw.normal(20, 20)).Q
    return asked_of(draw.normal(300, 20), lambda rows: rows @ turned + 0.05 * draw.normal(*rows.shape), 300, draw)


def gains(draw: Draw) -> World:
    """Every value is multiplied by a log-normal gain of its own column, another one for each query."""
    spread = 1 + 2 * draw.uniform(40)
    return asked_of(
        draw.normal(200, 40).exp(), lambda rows: rows * (spread * draw.normal(*rows.shape)).exp(), 300, draw
    )


def _spectra(count: int, channels: int, draw: Draw) -> Tensor:
    """A common shape and a few components, each a sum of wide peaks."""
    at = torch.linspace(0, 1, channels)
    peaks = torch.exp(-((at - draw.uniform(30, 1)) ** 2) / (2 * (0.02 + 0.05 * draw.uniform(30, 1)) ** 2))
    components = draw.uniform(8, 30) @ peaks
    return 2 * peaks.sum(0) / 5 + 0.05 * draw.normal(count, 8) @ components


def _scattered(rows: Tensor, draw: Draw) -> Tensor:
    """Light is scattered: each spectrum has an offset, a gain and a slope of its own."""
    at = torch.linspace(-1, 1, rows.shape[1])
    gain, offset, slope = (amount * draw.normal(len(rows), 1) for amount in (0.1, 0.5, 0.3))
    return rows * (1 + gain) + offset + slope * at + 0.1 * draw.normal(*rows.shape)


def raw_spectra(draw: Draw) -> World:
    """60 samples measured again, their light scattered."""
    patterns = _spectra(60, 200, draw)
    learned = _scattered(patterns, draw)
    every = torch.arange(60)
    return World(patterns, learned, every, _scattered(patterns, draw), every)


def instrument(draw: Draw) -> World:
    """80 samples on another instrument, which shifts channels and has a sensitivity of its own; 40 are learned from."""
    patterns = _spectra(80, 300, draw)
    second = patterns.roll(2, 1) * (1 + 0.2 * draw.normal(300).cumsum(0) / math.sqrt(300)) + 0.2 * draw.normal(80, 300)
    every = torch.arange(80)
    return World(patterns, second[:40], every[:40], second[40:], every[40:])


def faces(draw: Draw) -> World:
    """Smooth images of 24 x 24 in another light: a gradient of brightness that multiplies."""
    side = torch.linspace(-1, 1, 24)
    blur = torch.exp(-((side[:, None] - side) ** 2) / 0.02)
    patterns = 0.5 + 0.15 * (blur @ draw.normal(120, 24, 24) @ blur).flatten(1) / blur.sum(0).mean()
    across, down = (grid.flatten() for grid in torch.meshgrid(side, side, indexing="ij"))

    def lit(rows: Tensor) -> Tensor:
        light = draw.normal(len(rows), 1) * across + draw.normal(len(rows), 1) * down
        return rows * (0.8 * light).exp() + 0.6 * draw.normal(*rows.shape)

    return asked_of(patterns, lit, 300, draw)


def records(draw: Draw) -> World:
    """Records of 30 numbers, some mistyped; 20 % of the queries come from none of those that are stored."""
    every = draw.below(8, 500, 30).float()
    origins = draw.below(400, 400 + ASKED)
    strange = draw.uniform(len(origins)) < 0.2
    rows = torch.where(strange[:, None], every[400 + draw.below(100, len(origins))], every[origins])
    typed = torch.where(draw.uniform(*rows.shape) < 0.3, draw.below(8, *rows.shape).float(), rows)
    origins = origins.masked_fill(strange, -1)
    return World(every[:400], typed[:400], origins[:400], typed[400:], origins[400:])


def measured(name: str, seed: int, items: int | None = None) -> World:
    """Items measured twice, so many at most; those that are asked about were not learned from.

    Args:
        name: The data set.
        seed: Of the split, and of the order.
        items: The most items; None for all.
    """
    data = real.split(real.load(name, real.Config(items=items)), seed)
    order = torch.randperm(len(data.queries), generator=torch.Generator().manual_seed(seed))
    learn, ask = (order[data.learn[order] == side][:most] for side, most in ((True, LEARNED), (False, ASKED)))
    return World(data.patterns, data.queries[learn], data.origins[learn], data.queries[ask], data.origins[ask])


def text(seed: int) -> World:
    """3,000 definitions by another text model."""
    order = torch.randperm(10_000, generator=torch.Generator().manual_seed(seed))[:3000]
    with np.load(fetch(TEXT), allow_pickle=False) as archive:
        stored, asked = (torch.from_numpy(archive[side]).float()[order] for side in ("llama", "glove"))
    every = torch.arange(3000)
    return World(stored, asked[:2600], every[:2600], asked[2600:], every[2600:])


DRAWN: dict[str, Callable[[Draw], World]] = {
    "a rotation, 300 x 20": rotation,
    "log-normal gains": gains,
    "raw spectra": raw_spectra,
    "another instrument": instrument,
    "faces in another light": faces,
    "records, 20 % strangers": records,
}
