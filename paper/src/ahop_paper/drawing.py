"""Random numbers of one seed, and the worlds that benchmarks and tests draw with them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class World(NamedTuple):
    """Patterns ``(N, d)``, queries to learn from and queries to be asked, with their origins; -1 is not stored."""

    patterns: Tensor
    queries: Tensor
    origins: Tensor
    asked: Tensor
    wanted: Tensor


class Draw:
    """Numbers of one seed.

    Example:
        >>> Draw(0).below(10, 3).equal(Draw(0).below(10, 3))
        True
    """

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator)

    def below(self, top: int, *shape: int) -> Tensor:
        return torch.randint(top, shape, generator=self.generator)
