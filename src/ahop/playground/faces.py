"""Forty-eight small faces, drawn here: alike in most pixels, so that what is hidden decides."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

SIDE = 12
_NIGHT, _SKIN, _DARK, _WHITE = -1.0, 0.45, -0.75, 0.95
# Rows and columns from, up to, and the shade between them; later parts lie over earlier ones.
Part = tuple[int, int, int, int, float]
_HEAD: tuple[Part, ...] = ((1, 11, 2, 10, _SKIN), (2, 9, 1, 11, _SKIN), (11, 12, 4, 8, 0.1), (6, 7, 5, 7, 0.15))
_HAIR: dict[str, tuple[Part, ...]] = {
    "no hair": (),
    "short hair": ((0, 2, 2, 10, _DARK), (2, 4, 1, 2, _DARK), (2, 4, 10, 11, _DARK)),
    "long hair": ((0, 2, 2, 10, 0.0), (1, 11, 0, 2, 0.0), (1, 11, 10, 12, 0.0)),
    "hat": ((0, 2, 3, 9, _WHITE), (2, 3, 0, 12, _WHITE)),
}
_EYES: dict[str, tuple[Part, ...]] = {
    "awake": ((4, 6, 3, 5, _WHITE), (4, 6, 7, 9, _WHITE), (4, 6, 4, 5, _NIGHT), (4, 6, 7, 8, _NIGHT)),
    "asleep": ((5, 6, 3, 5, _DARK), (5, 6, 7, 9, _DARK)),
}
_MOUTH: dict[str, tuple[Part, ...]] = {
    "glad": ((8, 9, 3, 4, _DARK), (9, 10, 4, 8, _DARK), (8, 9, 8, 9, _DARK)),
    "calm": ((8, 9, 4, 8, _DARK),),
    "amazed": ((8, 10, 5, 7, _NIGHT),),
}
_GLASSES: dict[str, tuple[Part, ...]] = {
    "": (),
    "glasses": ((3, 4, 2, 10, _NIGHT), (4, 6, 2, 3, _NIGHT), (4, 6, 9, 10, _NIGHT), (4, 5, 5, 7, _NIGHT)),
}


def faces() -> tuple[Tensor, list[str]]:
    """All faces ``(48, 144)`` in [-1, 1], and what each has: hair, eyes, mouth and glasses."""
    drawn, names = [], []
    for choice in product(_HAIR, _EYES, _MOUTH, _GLASSES):
        hair, eyes, mouth, glasses = choice
        face = torch.full((SIDE, SIDE), _NIGHT)
        for top, bottom, left, right, shade in (*_HEAD, *_HAIR[hair], *_EYES[eyes], *_MOUTH[mouth], *_GLASSES[glasses]):
            face[top:bottom, left:right] = shade
        drawn.append(face.flatten())
        names.append(", ".join(part for part in choice if part))
    return torch.stack(drawn), names
