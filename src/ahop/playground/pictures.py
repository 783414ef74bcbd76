"""Pictures to store: small sets that need no download, and pictures of your own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from ahop import datasets
from ahop._extras import require
from ahop._registry import Registry
from ahop.playground import faces

# Of each photograph, and a tile's pixels a side.
_ROWS, _COLUMNS, _SIDE = 4, 6, 12


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures ``(N, h * w)`` with shades in [-1, 1] (black to white), the shape ``(h, w)`` of one, and their names."""

    patterns: Tensor
    shape: tuple[int, int]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.patterns)


SETS: Registry[Callable[[], Pictures]] = Registry("set of pictures")


@SETS.register("digits")
@cache
def digits() -> Pictures:
    """Six of each of scikit-learn's digits, 8 x 8."""
    images = datasets.load("digits")
    first = torch.cat([(images.labels == digit).nonzero().squeeze(1)[:6] for digit in range(10)])
    names = tuple(f"a {digit}" for digit in images.labels[first].tolist())
    return Pictures(images.patterns[first], (8, 8), names)


@SETS.register("photos")
@cache
def photos() -> Pictures:
    """Tiles of scikit-learn's two photographs, 12 x 12 in grey.

    A temple by danielbuechele and a flower by vultilion, both on Flickr, CC BY 2.0.
    """
    # Scikit-learn reads its photographs with it.
    require("PIL", extra="playground")
    from PIL import Image
    from sklearn.datasets import load_sample_images

    tiles, names = [], []
    for name, photo in zip(("temple", "flower"), load_sample_images().images, strict=True):
        grey = Image.fromarray(photo).convert("L")
        small = np.asarray(grey.resize((_COLUMNS * _SIDE, _ROWS * _SIDE), Image.Resampling.BOX), np.float32)
        cut = small.reshape(_ROWS, _SIDE, _COLUMNS, _SIDE).swapaxes(1, 2).reshape(-1, _SIDE * _SIDE)
        tiles.append(torch.from_numpy(cut / 127.5 - 1))
        names += [f"{name}, row {row + 1}, column {column + 1}" for row in range(_ROWS) for column in range(_COLUMNS)]
    return Pictures(torch.cat(tiles), (_SIDE, _SIDE), tuple(names))


@SETS.register("faces")
@cache
def drawn_faces() -> Pictures:
    """Forty-eight drawn faces, 12 x 12."""
    patterns, names = faces.faces()
    return Pictures(patterns, (faces.SIDE, faces.SIDE), tuple(names))
