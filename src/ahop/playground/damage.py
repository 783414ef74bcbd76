"""What the sliders and the brush do to a picture: a corruption that can be drawn and, without paint, scored."""

from __future__ import annotations

import json
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.variants import Biased, Compose, Masked, Noisy, Scaled, Variant
from ahop.variants.channel import Channel


class Sliders(NamedTuple):
    """How much of each damage.

    Attributes:
        top, bottom: The share of rows that are hidden there.
        noise: Standard deviation of what is added to each pixel.
        blur: Width of the blur, in pixels.
        light: What is added to every pixel.
        contrast: What every pixel is multiplied by.
    """

    top: float = 0.0
    bottom: float = 0.0
    noise: float = 0.0
    blur: float = 0.0
    light: float = 0.0
    contrast: float = 1.0


class Paint(NamedTuple):
    """Cells that were painted over, counted row by row, and the shade of each in [-1, 1]."""

    cells: tuple[int, ...] = ()
    shades: tuple[float, ...] = ()


def paint_of(text: str | None, pixels: int) -> Paint:
    """What the brush sent, ``{"cells": [...], "shades": [...]}`` in JSON; nothing where that cannot be read.

    Example:
        >>> paint_of('{"cells": [3, 99], "shades": [1, 1]}', pixels=64)
        Paint(cells=(3,), shades=(1.0,))
    """
    try:
        sent = json.loads(text or "{}")
        strokes = {int(cell): float(shade) for cell, shade in zip(sent["cells"], sent["shades"], strict=True)}
    except (ValueError, TypeError, KeyError):
        return Paint()
    kept = {cell: shade for cell, shade in strokes.items() if 0 <= cell < pixels and -1 <= shade <= 1}
    return Paint(tuple(kept), tuple(kept.values()))


class Damage(Variant):
    r"""Blur, then other light, then hidden rows, then paint, then noise.

    .. math:: x = m \odot (c \, B \xi + l) + \sigma \varepsilon

    with hidden pixels at 0, a middle grey. Paint is part of the draw: an example has strokes of the same form
    elsewhere, because nobody knows where the next ones will be.

    Args:
        shape: Rows and columns of a picture.
        sliders: How much of each.
        paint: What the brush did.
        seed: For the draws.
    """

    def __init__(self, shape: tuple[int, int], sliders: Sliders, paint: Paint | None = None, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.shape, self.sliders, self.paint = shape, sliders, paint or Paint()
        pixels = shape[0] * shape[1]
        hidden = torch.zeros(shape)
        hidden[: round(sliders.top * shape[0])] = 1
        hidden[shape[0] - round(sliders.bottom * shape[0]) :] = 1
        self.scene = Compose(
            [Scaled(sliders.contrast), Biased(torch.full((pixels,), sliders.light)), Masked(hidden.flatten(), fill=0.0)]
        )
        self.camera = Noisy(sliders.noise)

    @property
    def scored(self) -> bool:
        """Whether the likelihood is known; nobody can say how likely a stroke of yours was."""
        return not self.paint.cells

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        damaged = self.scene.corrupt(blurred(patterns, self.shape, self.sliders.blur), generator)
        if self.paint.cells:
            rows, columns = (torch.randint(size, (len(damaged),), generator=generator).tolist() for size in self.shape)
            damaged = torch.stack([self.painted(one, (r, c)) for one, r, c in zip(damaged, rows, columns, strict=True)])
        return self.camera.corrupt(damaged, generator)

    def query(self, pattern: Tensor, seed: int = 0) -> Tensor:
        """One damaged picture ``(d,)``, with the paint where the brush put it."""
        generator = torch.Generator().manual_seed(seed)
        damaged = self.scene.corrupt(blurred(pattern[None], self.shape, self.sliders.blur), generator)
        return self.camera.corrupt(self.painted(damaged[0])[None], generator)[0]

    def painted(self, picture: Tensor, moved: tuple[int, int] = (0, 0)) -> Tensor:
        """The picture ``(d,)`` with the strokes moved down and right, around the edge."""
        if not self.paint.cells:
            return picture
        height, width = self.shape
        cells = torch.tensor(self.paint.cells)
        rows, columns = (cells // width + moved[0]) % height, (cells % width + moved[1]) % width
        return picture.index_copy(0, rows * width + columns, torch.tensor(self.paint.shades).to(picture))

    def pass_through(self, channel: Channel) -> Channel:
        return self.camera.pass_through(self.scene.pass_through(channel))

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        if not self.scored:
            raise ValueError("paint cannot be scored: nobody can say how likely a stroke was")
        return super()._scores(blurred(patterns, self.shape, self.sliders.blur), queries)

    def _scattered_scores(self, patterns: Tensor, variance: Tensor, queries: Tensor) -> Tensor:
        raise ValueError(
            "damage cannot be scored where pictures have a spread: neighbours share it once they are blurred"
        )


def blurred(pictures: Tensor, shape: tuple[int, int], width: float) -> Tensor:
    r"""Pictures ``(n, h * w)`` through a Gaussian lens, rows and columns one after the other.

    Each pixel becomes a mean of those around it with weights :math:`e^{-\Delta^2 / 2 w^2}`; beyond the edge is nothing.

    Args:
        pictures: ``(n, h * w)``.
        shape: The height and the width of a picture.
        width: w, the standard deviation of the lens in pixels; zero changes nothing.
    """
    if width <= 0:
        return pictures
    lenses = []
    for size in shape:
        places = torch.arange(size, dtype=pictures.dtype)
        lenses.append(torch.softmax(-((places[:, None] - places) ** 2) / (2 * width**2), 1))
    return torch.einsum("ij,njk,lk->nil", lenses[0], pictures.reshape(-1, *shape), lenses[1]).flatten(1)
