"""What an M-step of :mod:`.correlated` needs to know of the queries: their means, variances and covariance.

Known origins make it a sum over pairs, unknown ones a sum over all patterns, by how likely each is. The covariance is
kept as it is cheapest: as rows where there are fewer of them than dimensions, as a matrix else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

# Dimensions up to which all eigenvectors take no longer than a few.
_MAX_FULL_DIMENSIONS = 128


class Moments(Protocol):
    """Weighted means and variances of queries x and the patterns k that they are taken to come from, ``(d,)`` each."""

    mean_x: Tensor
    mean_k: Tensor
    xk: Tensor
    kk: Tensor

    def covariance(self, gain: Tensor) -> Spread:
        """The covariance of what the patterns leave unexplained."""


class Spread(Protocol):
    """A covariance matrix ``(d, d)``, however it is kept."""

    def diagonal(self) -> Tensor: ...

    def leading(self, scale: Tensor, count: int, start: Tensor) -> tuple[Tensor, Tensor]:
        """The largest eigenvalues and their vectors, after every dimension was divided by its scale.

        Args:
            scale: ``(d,)``.
            count: How many.
            start: A guess of the vectors, ``(d, count)``.

        Returns:
            Eigenvalues ``(count,)``, the largest last, and vectors ``(d, count)``.
        """


@dataclass
class OfRows:
    """The sum of the outer products of rows ``(n, d)``."""

    rows: Tensor

    def diagonal(self) -> Tensor:
        return self.rows.square().sum(0)

    def leading(self, scale: Tensor, count: int, start: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.rows / scale
        if len(rows) >= rows.shape[1]:
            return OfMatrix(rows.mT @ rows).leading(torch.ones_like(scale), count, start)
        # Fewer rows than dimensions: their own products have the same eigenvalues.
        values, turn = (part[..., -count:] for part in torch.linalg.eigh(rows @ rows.mT))
        return values, rows.mT @ turn / values.clamp_min(1e-30).sqrt()


@dataclass
class OfMatrix:
    """The matrix itself."""

    matrix: Tensor

    def diagonal(self) -> Tensor:
        return self.matrix.diagonal()

    def leading(self, scale: Tensor, count: int, start: Tensor) -> tuple[Tensor, Tensor]:
        matrix = self.matrix / scale[:, None] / scale
        if len(matrix) <= _MAX_FULL_DIMENSIONS or not count:
            values, vectors = torch.linalg.eigh(matrix)
            return values[len(values) - count :], vectors[:, len(values) - count :]
        # By subspace iteration: a few of many eigenvectors, from those of the last time. torch.lobpcg fails on a start
        # of zeros, as the first is; one of its own is drawn from the global generator, and then takes twice as long.
        generator = torch.Generator().manual_seed(0)
        more = torch.randn(len(matrix), count + 8, generator=generator, dtype=torch.float64).to(matrix)
        basis = torch.cat([start / scale[:, None], more], 1)
        for _ in range(8):
            basis, _ = torch.linalg.qr(matrix @ basis)
        values, turn = torch.linalg.eigh(basis.mT @ matrix @ basis)
        return values[-count:], basis @ turn[:, -count:]


@dataclass
class PairMoments:
    """Of queries and the patterns they came from, ``(m, d)`` each, and how much each pair counts, ``(m,)``; of so many
    queries in all. Where it is not sure what was measured of the patterns, its covariance is ``left`` ``(d, d)``,
    summed over pairs."""

    queries: Tensor
    origins: Tensor
    weights: Tensor
    amount: int
    left: Tensor | None = None

    def __post_init__(self) -> None:
        share = self.weights / self.weights.sum()
        self.mean_x, self.mean_k = share @ self.queries, share @ self.origins
        self._x, self._k = self.queries - self.mean_x, self.origins - self.mean_k
        self.xk, self.kk = self.weights @ (self._x * self._k), self.weights @ self._k.square()
        if self.left is not None:
            self.kk = self.kk + self.left.diagonal()

    def covariance(self, gain: Tensor) -> Spread:
        rows = (self._x - gain * self._k) * (self.weights / self.amount).sqrt()[:, None]
        if self.left is not None:
            return OfMatrix(rows.mT @ rows + gain**2 * self.left / self.amount)
        # More rows than twice the dimensions are less work as a matrix.
        return OfRows(rows) if len(rows) <= 2 * rows.shape[1] else OfMatrix(rows.mT @ rows)


@dataclass
class ShareMoments:
    """Of queries that ``weights`` ``(n, N)`` share out among all patterns."""

    queries: Tensor
    patterns: Tensor
    weights: Tensor

    def __post_init__(self) -> None:
        by_query, by_pattern = (self.weights.sum(over).to(self.queries) for over in (1, 0))
        total = by_query.sum()
        self.mean_x, self.mean_k = by_query @ self.queries / total, by_pattern @ self.patterns / total
        x, k = self.queries - self.mean_x, self.patterns - self.mean_k
        self._xx, self._kk = x.mT @ (by_query[:, None] * x), k.mT @ (by_pattern[:, None] * k)
        self._xk = x.mT @ (self.weights @ k.to(self.weights)).to(x)
        self.xk, self.kk = self._xk.diagonal(), self._kk.diagonal()

    def covariance(self, gain: Tensor) -> Spread:
        return OfMatrix((self._xx - gain * (self._xk + self._xk.mT) + gain**2 * self._kk) / len(self.queries))
