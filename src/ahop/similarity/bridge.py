"""Queries of a moved space as vectors for an index: of codes, or of the old vectors as they are."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from ahop._checks import as_tensor, choice
from ahop.similarity.base import Similarity


class Map(Protocol):
    """What is asked of the likelihood around a linear map, as :class:`ahop.similarity.Moved` has it."""

    dim: int
    query_dim: int
    matrix: nn.Parameter
    bias: nn.Parameter

    @property
    def factor(self) -> Tensor: ...

    def whiten(self, rows: Tensor) -> Tensor: ...


class Bridge(Similarity):
    r"""Dot products that order patterns as a :class:`Moved` likelihood does.

    .. math:: \phi(\xi) = (L^{-1} A \xi,\, -\tfrac12\lVert L^{-1} A \xi \rVert^2), \qquad \psi(x) = (L^{-1}(x - b),\, 1)

    They equal the scores up to a constant of the query when tails are normal; heavy tails keep the order alone.

    Args:
        likelihood: What was learned.
    """

    dim: int

    def __init__(self, likelihood: Map) -> None:
        super().__init__()
        self.likelihood, self.dim, self.query_dim = likelihood, likelihood.dim, likelihood.query_dim

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store, ``(N, d' + 1)``."""
        patterns = as_tensor(patterns, "patterns").to(self.likelihood.bias)
        rows = self.likelihood.whiten(patterns @ self.likelihood.matrix.mT)
        return torch.cat([rows, -0.5 * rows.square().sum(-1, keepdim=True)], -1)

    def encode_queries(self, queries: Tensor) -> Tensor:
        """The codes to ask with, ``(Q, d' + 1)``."""
        queries = as_tensor(queries, "queries").to(self.likelihood.bias)
        rows = self.likelihood.whiten(queries - self.likelihood.bias)
        return torch.cat([rows, torch.ones_like(rows[..., :1])], -1)

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is not None:
            raise ValueError("observed is not supported by Bridge: it asks with whole queries")
        return self.encode_queries(queries) @ self.encode_patterns(patterns).mT


class Adapter(nn.Module):
    @classmethod
    def of(cls, *a): ...
