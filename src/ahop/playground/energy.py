"""A memory of six points on a plane: its energy, its wells, and the basin of each, from where states roll into it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.energy import Energetic, basins
from ahop.memories import (
    AdaptiveHopfield,
    AssociativeMemory,
    BayesianHopfield,
    FourierHopfield,
    GaussianHopfield,
    ModernHopfield,
    SparseHopfield,
)
from ahop.separation import Epanechnikov, KSubsets, Normmax, Softmax

PATTERNS = torch.tensor([[-1.0, -0.6], [-0.7, 0.7], [0.1, 0.1], [0.4, -0.9], [0.6, 0.9], [1.0, 0.0]])
# Inverse temperatures to choose from, and the one to begin with.
LEAST_BETA, MOST_BETA, BETA = 0.5, 30.0, 8.0
# How far the picture goes, and how many states along a side roll down.
REACH, SIDE = 1.8, 48
# How near a well is to a pattern that has it for its own; and wells that have a colour.
_NEAR, _MOST_WELLS = 0.15, 12
# Of those that learn: queries of each pattern, which are blurred sideways.
_QUERIES, _BLUR = 30, (0.3, 0.06)
# The sum of a memory that keeps no patterns; small, for it is asked often.
_FEATURES = 256


class Kind(NamedTuple):
    """What a memory goes by, how one is made at an inverse temperature, and whether that changes anything."""

    about: str
    make: Callable[[float], Energetic]
    tempered: bool = True


class Landscape(NamedTuple):
    """The energy over a square, from the upper left.

    Attributes:
        heights: The energy, ``(s, s)``.
        wells: Where states come to rest, lowest first, ``(w, 2)``.
        basins: The well that each place rolls into, ``(s, s)``; -1 where it rolls away or stays where it is.
    """

    heights: Tensor
    wells: Tensor
    basins: Tensor

    @property
    def own(self) -> int:
        """How many patterns have a well of their own."""
        return int((torch.cdist(PATTERNS, self.wells) < _NEAR).any(1).sum())

    @property
    def without(self) -> float:
        """The share of places from where nothing rolls into a well."""
        return float((self.basins < 0).double().mean())


def _examples() -> tuple[Tensor, Tensor]:
    origins = torch.arange(len(PATTERNS)).repeat(_QUERIES)
    noise = torch.randn(len(origins), 2, generator=torch.Generator().manual_seed(0))
    return PATTERNS[origins] + torch.tensor(_BLUR) * noise, origins


KINDS = {
    "m-hop": Kind("dot product, softmax", lambda beta: ModernHopfield(PATTERNS, beta=beta)),
    "s-hop": Kind("dot product, sparsemax", lambda beta: SparseHopfield(PATTERNS, beta=beta)),
    "normmax": Kind("dot product, normmax", lambda beta: AssociativeMemory(PATTERNS, "dot", Normmax(beta=beta))),
    "ksubsets": Kind(
        "dot product, two patterns at once", lambda beta: AssociativeMemory(PATTERNS, "dot", KSubsets(2, beta))
    ),
    "distance": Kind("distance, softmax", lambda beta: AssociativeMemory(PATTERNS, "distance", Softmax(beta))),
    "epanechnikov": Kind(
        "distance, a reach for every pattern",
        lambda beta: AssociativeMemory(PATTERNS, "distance", Epanechnikov(beta)),
    ),
    "f-hop": Kind(
        f"distance, all patterns in one sum of {_FEATURES} numbers",
        lambda beta: FourierHopfield(2, features=_FEATURES, beta=beta).add(PATTERNS),
    ),
    "classical": Kind("dot product, identity", lambda beta: AssociativeMemory(PATTERNS, "dot", "identity"), False),
    "a-hop": Kind("learned weights of sorted terms", lambda beta: AdaptiveHopfield(PATTERNS).fit(*_examples()), False),
    "g-hop": Kind("learned bias and normal noise", lambda beta: GaussianHopfield(PATTERNS).fit(*_examples()), False),
    "b-hop": Kind(
        "learned likelihood", lambda beta: BayesianHopfield(PATTERNS).fit(*_examples(), verbose=False), False
    ),
}


@lru_cache(maxsize=64)
def landscape(name: str, beta: float = BETA) -> Landscape:
    """The energy of a memory by its name, with its wells and their basins."""
    memory = KINDS[name].make(beta)
    side = torch.linspace(-REACH, REACH, SIDE)
    starts = torch.cartesian_prod(side.flip(0), side).flip(1)
    with torch.no_grad():
        heights = memory.energy(starts).double().reshape(SIDE, SIDE)
    wells, found = basins(memory, starts, most=_MOST_WELLS)
    return Landscape(heights, wells, found.reshape(SIDE, SIDE))
