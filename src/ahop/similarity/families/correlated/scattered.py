r"""Hidden causes beside patterns that scatter: each has a covariance of its own,

.. math:: \Sigma_k = W W^\top + D_k, \qquad D_k = \mathrm{diag}(\psi + a^2 \sigma_k^2), \qquad
    \Sigma_k^{-1} = D_k^{-1} - A_k^\top A_k, \qquad A_k = L_k^{-1} W^\top D_k^{-1}, \qquad
    L_k L_k^\top = I + W^\top D_k^{-1} W

(Woodbury), which as many numbers hold as W has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.families import student
from ahop.similarity.scatter import mean_and_variance


class Causes(Protocol):
    """What a model of hidden causes knows: :class:`~ahop.similarity.Correlated`."""

    dim: int
    rank: int

    @property
    def gain(self) -> Tensor: ...

    @property
    def bias(self) -> Tensor: ...

    @property
    def loading(self) -> Tensor: ...

    @property
    def log_psi(self) -> Tensor: ...


@dataclass(frozen=True)
class Inverses:
    """The inverse covariance of each pattern ``(N,)``, and where queries of it lie on average.

    Attributes:
        centres: There, ``(N, d)``.
        scatter: What measurements of it add to the variance, :math:`a^2 \\sigma_k^2` ``(N, d)``.
        precision: :math:`D_k^{-1}` ``(N, d)``.
        causes: :math:`A_k` ``(N, r, d)``.
        log_determinant: Of the covariance, ``(N,)``.
    """

    centres: Tensor
    scatter: Tensor
    precision: Tensor
    causes: Tensor
    log_determinant: Tensor

    def distances(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Squared whitened distances of queries ``(Q, d)`` to all patterns, ``(Q, N)``, and the log determinants."""
        middle = self.centres.detach().mean(0)
        centres, asked = self.centres - middle, queries - middle
        weighed = self.precision * centres
        squares = asked.square() @ self.precision.mT - 2 * asked @ weighed.mT + (centres * weighed).sum(1)
        moved = torch.einsum("nrd,qd->qnr", self.causes, asked) - (self.causes @ centres[:, :, None]).squeeze(2)
        return (squares - moved.square().sum(2)).clamp_min(0), self.log_determinant

    def beside(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Queries ``(N, d)``, one of each pattern: squared distances ``(N,)``, and by how far what was measured lay
        off the pattern on average, times the gain, ``(N, d)``."""
        gaps = queries - self.centres
        weighed = self.precision * gaps - (self.causes * (self.causes @ gaps[:, :, None])).sum(1)
        return (gaps * weighed).sum(1), self.scatter * weighed

    def left(self, shares: Tensor) -> Tensor:
        """How uncertain that still is: the covariance ``(d, d)``, a sum of shares ``(N,)`` of each pattern."""
        alone = shares @ (self.scatter * (1 - self.scatter * self.precision))
        moved = (shares.sqrt()[:, None, None] * self.causes * self.scatter[:, None]).flatten(0, 1)
        return torch.diag(alone) + moved.mT @ moved


def of(model: Causes, patterns: Tensor) -> Inverses:
    """Those of patterns that scatter, ``(N, 2d)``."""
    mean, variance = mean_and_variance(patterns, model.dim)
    gain, loading = model.gain.to(mean), model.loading.to(mean)
    scatter = gain.square() * variance
    total = model.log_psi.to(mean).exp() + scatter
    causes = loading.mT / total[:, None]
    inner = torch.eye(model.rank).to(mean) + causes @ loading
    root = torch.linalg.cholesky(inner)
    log_determinant = total.log().sum(1) + 2 * root.diagonal(dim1=1, dim2=2).log().sum(1)
    causes = torch.linalg.solve_triangular(root, causes, upper=False)
    return Inverses(gain * mean + model.bias.to(mean), scatter, 1 / total, causes, log_determinant)


def transferred(model: Causes, gaps: Tensor, scatter: Tensor, wider: Tensor) -> Tensor:
    """Gaps to patterns that scatter, transferred to patterns that scatter otherwise: as far off as they were, whitened.

    Args:
        model: The noise beside the scatter.
        gaps: ``(n, d)``.
        scatter: The variance of each gap's own pattern, ``(n, d)``.
        wider: That of the other one, ``(n, d)``.

    Returns:
        The gaps to the other patterns, ``(n, d)``.
    """
    loading, psi, square = model.loading.double(), model.log_psi.double().exp(), model.gain.double().square()
    common, found = loading @ loading.mT, torch.empty_like(gaps)
    for row in range(len(gaps)):
        before, after = (
            torch.linalg.cholesky(common + torch.diag(psi + square * variance[row].double()))
            for variance in (scatter, wider)
        )
        white = torch.linalg.solve_triangular(before, gaps[row, :, None].double(), upper=False)
        found[row] = (after @ white).squeeze(1).to(gaps)
    return found


@dataclass
class Measured:
    """What was measured of patterns, as the queries of each tell: an M-step goes by it as if it were known.

    Attributes:
        origins: It, on average, for each pair ``(m, d)``.
        left: How uncertain it is: a covariance ``(d, d)``, summed over all pairs.
        squares: Squared whitened distances, ``(m,)``.
        log_determinant: ``(m,)``.
    """

    origins: Tensor
    left: Tensor
    squares: Tensor
    log_determinant: Tensor

    @classmethod
    def of(cls, model: Causes, patterns: Tensor, queries: Tensor, shares: Tensor | None = None) -> Measured:
        """What the queries of pairs tell of their patterns.

        Args:
            model: The noise beside the scatter.
            patterns: The pattern of each query, ``(m, 2d)``.
            queries: ``(m, d)``.
            shares: How much each pair counts, ``(m,)``; None counts all alike.
        """
        dim, found = model.dim, []
        shares = queries.new_ones(len(queries)) if shares is None else shares
        total = queries.new_zeros(dim, dim)
        for part in split(len(queries), (4 + 3 * model.rank) * dim * queries.element_size()):
            inverses = of(model, patterns[part].to(queries))
            squares, off = inverses.beside(queries[part])
            total += inverses.left(shares[part])
            found.append((patterns[part, :dim] + off / model.gain, squares, inverses.log_determinant))
        origins, squares, log_determinant = (torch.cat(column) for column in zip(*found, strict=True))
        return cls(origins, total / model.gain.square(), squares, log_determinant)

    def weights(self, tails: float) -> Tensor:
        """How much each pair counts by how far off it is, ``(m,)``."""
        return student.weight(self.squares, tails, self.origins.shape[1])
