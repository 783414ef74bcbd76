"""Queries of a moved space as vectors for an index: of codes, or of the old vectors as they are."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from ahop._checks import as_tensor, choice
from ahop.similarity.codes import Asked, Codes, refuse_masks
from ahop.similarity.squares import squared_distances
from ahop.similarity.whitened import in_digits, right

# How strongly an adapter may draw queries to the patterns' mean, and how many queries are drawn to choose.
_RIDGE_STRENGTHS = (0.03, 0.1, 0.3, 1.0)
_SIMULATED_QUERIES = 1000
_LEAST_VARIANCE = 1e-6


class Map(Protocol):
    """What is asked of the likelihood around a linear map, as :class:`ahop.similarity.Moved` has it."""

    dim: int
    query_dim: int
    matrix: nn.Parameter
    bias: nn.Parameter
    log_factor: nn.Parameter

    @property
    def factor(self) -> Tensor: ...

    def whiten(self, rows: Tensor) -> Tensor: ...

    def density(self, squares: Tensor, log_determinant: Tensor, count: Tensor | int) -> Tensor: ...


class Bridge(Codes):
    r"""Dot products that order patterns as a :class:`Moved` likelihood does.

    .. math:: \phi(\xi) = (L^{-1} A (\xi - c),\, -\tfrac12\lVert L^{-1} A (\xi - c) \rVert^2), \qquad
        \psi(x) = (L^{-1}(x - b - A c),\, 1)

    They equal the scores up to a constant of the query when tails are normal; heavy tails keep the order alone.

    Args:
        likelihood: What was learned.
        centre: c, a point amid the patterns ``(d,)``, from which all are counted; None is zero. Codes are of its type.
    """

    dim: int
    centre: Tensor

    def __init__(self, likelihood: Map, centre: Tensor | None = None) -> None:
        super().__init__()
        self.likelihood, self.dim, self.query_dim = likelihood, likelihood.dim, likelihood.query_dim
        zero = torch.zeros_like(likelihood.matrix[0].detach())
        given = zero if centre is None else centre.to(zero.device, torch.promote_types(centre.dtype, zero.dtype))
        self.register_buffer("centre", given)

    @classmethod
    @torch.no_grad()
    def around(cls, likelihood: Map, patterns: Tensor) -> Bridge:
        """Codes for patterns like these; in float64 as in :class:`~ahop.similarity.Whitened`."""
        return in_digits(lambda centre: cls(likelihood, centre), patterns)

    def covers(self, patterns: Tensor) -> bool:
        return right(self.encode_patterns(patterns), self.centre.dtype)

    def fit_float32(self, patterns: Tensor) -> bool:
        return right(self.encode_patterns(patterns), torch.float32)

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store, ``(N, d' + 1)``."""
        patterns = as_tensor(patterns, "patterns").to(self.centre)
        rows = self.likelihood.whiten((patterns - self.centre) @ self.likelihood.matrix.mT.to(patterns))
        return torch.cat([rows, -0.5 * rows.square().sum(-1, keepdim=True)], -1)

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with, ``(Q, d' + 1)``."""
        refuse_masks(observed, self)
        queries = as_tensor(queries, "queries").to(self.centre)
        rows = self.likelihood.whiten(queries - self.likelihood.bias - self.likelihood.matrix.to(queries) @ self.centre)
        own, volume = rows.square().sum(-1, keepdim=True), self.likelihood.log_factor.diagonal().sum()

        def bend(products: Tensor) -> Tensor:
            return self.likelihood.density(own - 2 * products, volume, len(self.likelihood.bias))

        return Asked(torch.cat([rows, torch.ones_like(rows[..., :1])], -1), bend=bend)


class Adapter(nn.Module):
    r"""Queries of a moved space as vectors for an index that holds the patterns as they are.

    .. math:: y = W x + c

    An index knows one score, and the noise another, so something is lost; where patterns have equal lengths and the
    map is close to a rotation, little is. :meth:`of` says how W and c are chosen.

    Args:
        weight: W, ``(d, d')``.
        offset: c, ``(d,)``.

    Shape:
        queries ``(..., d')`` to ``(..., d)``.
    """

    weight: Tensor
    offset: Tensor

    def __init__(self, weight: Tensor, offset: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("offset", offset)

    @classmethod
    @torch.no_grad()
    def of(cls, likelihood: Map, patterns: Tensor, metric: str, seed: int = 0) -> Adapter:
        r"""The adapter for an index of these patterns that ranks by this metric.

        Candidates are the likelihood's slope at the patterns' mean m, and where a query's pattern is to be expected if
        patterns are normal with covariance C, more or less drawn to their mean:

        .. math:: h = A^\top \Sigma^{-1} (x - b - A m), \qquad
            m + (A^\top \Sigma^{-1} A + \lambda C^{-1})^{-1} h

        The one that finds most origins of queries drawn from the likelihood is taken.

        Args:
            likelihood: What was learned.
            patterns: What the index holds, ``(N, d)``.
            metric: ``"inner"``, ``"cosine"`` or ``"l2"``.
            seed: For the queries that are drawn.
        """
        choice(metric, "metric", ("inner", "cosine", "l2"))
        stored, matrix, factor = patterns.double(), likelihood.matrix.double(), likelihood.factor.double()
        mean = stored.mean(0)
        if not bool((stored != stored[0]).any()):
            raise ValueError("patterns must differ for an index to tell them apart, and all are the same")
        spread = torch.cov(stored.mT, correction=0) + _LEAST_VARIANCE * stored.var(0, correction=0).mean() * torch.eye(
            len(mean)
        ).to(stored)
        slope = torch.cholesky_solve(matrix, factor).mT
        expected = [
            torch.linalg.solve(slope @ matrix + belief * torch.linalg.inv(spread), slope) for belief in _RIDGE_STRENGTHS
        ]
        base = likelihood.bias.double() + matrix @ mean
        candidates = [cls(slope, -slope @ base), *(cls(some, mean - some @ base) for some in expected)]

        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randperm(len(stored), generator=generator)[:_SIMULATED_QUERIES].to(stored.device)
        noise = torch.randn(len(drawn), len(factor), generator=generator, dtype=torch.float64).to(stored.device)
        queries = stored[drawn] @ matrix.mT + likelihood.bias.double() + noise @ factor.mT
        found = [float((_ranked(adapter(queries), stored, metric) == drawn).double().mean()) for adapter in candidates]
        return candidates[found.index(max(found))].to(patterns)

    def forward(self, queries: Tensor) -> Tensor:
        queries = as_tensor(queries, "queries").to(self.weight)
        if queries.ndim == 0 or queries.shape[-1] != self.weight.shape[1]:
            raise ValueError(f"queries must have {self.weight.shape[1]} values each, got shape {tuple(queries.shape)}")
        return queries @ self.weight.mT + self.offset


def _ranked(vectors: Tensor, stored: Tensor, metric: str) -> Tensor:
    """The first choice of an index for each vector."""
    if metric == "l2":
        return squared_distances(stored, vectors).argmin(1)
    return (vectors @ (nn.functional.normalize(stored, dim=1) if metric == "cosine" else stored).mT).argmax(1)
