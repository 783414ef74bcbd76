"""A likelihood for queries that live in another space than the patterns."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ahop._blocks import pairwise
from ahop._precision import holds
from ahop.similarity.bridge import Adapter, Bridge
from ahop.similarity.density import Density
from ahop.similarity.families import student
from ahop.similarity.families.posterior import Prior, expected
from ahop.similarity.squares import ROUNDING, squared_distances

# Maps that differ by less are called the same.
_MAP_TOLERANCE = 0.1


class Moved(Density):
    r"""The log-likelihood when queries come from a space that a linear map leads to, with noise and heavy tails.

    .. math:: x = A \xi + b + e, \qquad s(\xi, x) = \log t_\nu(x;\, A\xi + b,\, L L^\top)

    Another embedding model, another instrument with other channels, another basis. A may lead to any number of
    dimensions. In coordinates where :math:`L L^\top` is the identity, the score is a function of a plain distance.
    :mod:`ahop.similarity.families.moved.learning` fits all of it from pairs; without them, see :class:`Bent`.

    Args:
        dim: Number of dimensions d of patterns.
        query_dim: Number of dimensions d' of queries; None is as many.
        tails: Degrees of freedom :math:`\nu`; few let a query lie far off, infinity is a normal distribution.

    Attributes:
        explained: The share of what varies in queries that the map explains, of origins it was not fitted to.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d')`` to ``(Q, N)``.

    Example:
        >>> patterns = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
        >>> queries = patterns.flip(1) @ torch.ones(3, 4).triu()
        >>> moved = Moved(dim=3, query_dim=4)
        >>> moved.fit(patterns, queries[:20], torch.arange(20)).converged
        True
        >>> bool((moved(patterns, queries).argmax(1) == torch.arange(50)).all())
        True
    """

    dim: int
    query_dim: int
    explained: Tensor

    def __init__(self, dim: int, query_dim: int | None = None, *, tails: float = math.inf) -> None:
        super().__init__()
        self.dim, self.query_dim, self.tails = dim, dim if query_dim is None else query_dim, tails
        if dim < 1 or self.query_dim < 1:
            raise ValueError(f"dim and query_dim must be at least 1, got {dim} and {query_dim}")
        if not tails > 0:
            raise ValueError(f"tails must be more than 0, got {tails}")
        self.matrix = nn.Parameter(torch.eye(self.query_dim, dim))
        self.bias = nn.Parameter(torch.zeros(self.query_dim))
        # Below the diagonal as L is; on it the logarithm, so that no step can make the noise negative.
        self.log_factor = nn.Parameter(torch.zeros(self.query_dim, self.query_dim))
        self.register_buffer("explained", torch.tensor(0.0))

    @classmethod
    def around(cls, matrix: Tensor, bias: Tensor, covariance: Tensor, tails: float, explained: float) -> Moved:
        """The likelihood around a map that is known.

        Args:
            matrix: The map, ``(d', d)``.
            bias: What is added, ``(d',)``.
            covariance: The scale of the noise, ``(d', d')``.
            tails: The degrees of freedom of the noise; infinite for a normal one.
            explained: The share of the queries' variance that the map explains.
        """
        new = cls(matrix.shape[1], matrix.shape[0], tails=tails).to(matrix)
        factor = torch.linalg.cholesky(covariance)
        new.matrix.data.copy_(matrix)
        new.bias.data.copy_(bias)
        new.log_factor.data.copy_(factor.tril(-1) + torch.diag(factor.diagonal().log()))
        new.explained.fill_(explained)
        return new

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.matrix.copy_(torch.eye(self.query_dim, self.dim))
        for zeros in (self.bias, self.log_factor, self.explained):
            zeros.zero_()

    @property
    def factor(self) -> Tensor:
        """The lower triangular L, ``(d', d')``."""
        return self.log_factor.tril(-1) + torch.diag(self.log_factor.diagonal().exp())

    def whiten(self, rows: Tensor) -> Tensor:
        r"""Rows in coordinates where :math:`L L^\top` is the identity."""
        return torch.linalg.solve_triangular(self.factor.to(rows), rows.mT, upper=False).mT

    def density(self, squares: Tensor, log_determinant: Tensor, count: Tensor | int) -> Tensor:
        """The log density of queries at given distances from a pattern.

        Args:
            squares: Squared whitened distances.
            log_determinant: That of the factor L of the covariance.
            count: In how many dimensions the distances are taken.
        """
        return student.log_density(squares.clamp_min(0), self.tails, count) - log_determinant

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        dtype, finest = queries.dtype, self.log_factor.diagonal().min().exp()
        # Around the patterns' mean, so that a common offset costs no digits.
        centre = patterns.detach().mean(-2, keepdim=True)
        stored, asked = self._compared(patterns, queries, centre)
        if not holds(finest, stored, asked):
            stored, asked = self._compared(patterns.double(), queries.double(), centre.double())
        if observed is not None and not bool(observed.all()):
            return self._of_the_observed(stored, asked, observed.to(asked.dtype)).to(dtype)
        squares = squared_distances(self.whiten(stored), self.whiten(asked))
        return self.density(squares, self.log_factor.diagonal().sum(), self.query_dim).to(dtype)

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return 2**-9 + ROUNDING * best.abs()

    def _compared(self, patterns: Tensor, queries: Tensor, centre: Tensor) -> tuple[Tensor, Tensor]:
        """Both where queries live."""
        matrix = self.matrix.to(queries)
        return (patterns - centre) @ matrix.mT, queries - self.bias - centre @ matrix.mT

    def _of_the_observed(self, stored: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
        """Each query has a covariance of its own: that of the values it has."""
        factor = self.factor.to(asked)
        covariance = factor @ factor.mT

        def block(stored: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
            own = covariance * mask.unsqueeze(-1) * mask.unsqueeze(-2) + torch.diag_embed(1 - mask)
            factor = torch.linalg.cholesky(own)
            gaps = (asked.unsqueeze(-2) - stored.unsqueeze(-3)) * mask.unsqueeze(-2)
            squares = torch.linalg.solve_triangular(factor, gaps.mT, upper=False).square().sum(-2)
            log_determinant = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
            return self.density(squares, log_determinant, mask.sum(-1, keepdim=True))

        width = 4 * self.query_dim
        return pairwise(block, stored, asked, width=width, per_query=(mask,), learned=self.parameters())

    @torch.no_grad()
    def codes(self, patterns: Tensor, tolerance: float) -> Bridge:
        """See :class:`~ahop.similarity.bridge.Bridge`; they need no tolerance."""
        return Bridge.around(copy.deepcopy(self), patterns)

    def adapter(self, patterns: Tensor, metric: str = "cosine") -> Adapter:
        return Adapter.of(self, patterns, metric)

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Moved:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        new = copy.deepcopy(self)
        new.bias.copy_(unit * self.bias + shift * (1 - self.matrix.sum(1)))
        new.log_factor.copy_(unit * self.log_factor.tril(-1) + torch.diag(self.log_factor.diagonal() + math.log(unit)))
        return new

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The log evidence under a pattern drawn from a normal distribution like the stored ones, ``(Q,)``."""
        centre = patterns.mean(0, keepdim=True)
        spread = (patterns - centre) @ self.matrix.mT
        covariance = self.factor @ self.factor.mT + spread.mT @ spread / len(patterns)
        wider = Moved.around(self.matrix, self.bias, covariance, self.tails, 0.0)
        scores: Tensor = wider(centre, queries, observed)
        return scores.squeeze(-1)

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """The noise stays, around where the others are moved to."""
        return queries + (others - own) @ self.matrix.mT

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """Back by the map, as far as the noise, taken for normal, lets it be known."""
        if observed is not None and not bool(observed.all()):
            raise ValueError("observed must be None: a map between spaces is inverted for complete queries only")
        prior = Prior.of(patterns)
        there = self.whiten(self.matrix.double().mT).mT
        cross = prior.covariance @ there.mT
        gaps = self.whiten(queries.double() - self.bias) - there @ prior.mean
        return expected(prior.mean, cross, there @ cross, torch.ones_like(gaps[0]), gaps)

    @torch.no_grad()
    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """Shift, noise, and how much the map stretches."""
        stretch = torch.linalg.svdvals(self.matrix).cpu()
        shift, noise = self.bias.cpu(), self._noise().cpu()
        return [
            ("shift of values", shift, None),
            ("noise of each dimension", noise, None),
            ("stretch of the map, by rank", stretch, torch.arange(1, 1 + len(stretch))),
        ]

    def _noise(self) -> Tensor:
        return self.factor.square().sum(1).sqrt()

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words.

        Example:
            >>> print(Moved(dim=3).describe())
            Queries are where patterns are, but for a shift and noise.
            Values are shifted by 0 on average.
            Noise, from 1 to 1 by dimension, is correlated by 0.00 at most.
        """
        stretch = torch.linalg.svdvals(self.matrix)
        size, spread = float(stretch.mean()), float(stretch.std(unbiased=False) / stretch.mean().clamp_min(1e-30))
        turned = self.dim != self.query_dim or float((self.matrix - torch.eye(self.dim).to(self.matrix)).norm()) > (
            _MAP_TOLERANCE * math.sqrt(self.dim)
        )
        lines = ["Queries are where patterns are, but for a shift and noise."]
        if turned:
            widths = "" if self.dim == self.query_dim else f", from {self.dim} dimensions to {self.query_dim}"
            kind = "a rotation" if spread < _MAP_TOLERANCE else "a linear map that is no rotation"
            lines = [f"Queries lie in another space{widths}: {kind} leads there, stretching by {size:.2g} on average."]
        if float(self.explained) > 0:
            lines.append(f"That explains {100 * float(self.explained):.0f} % of what varies in queries.")
        noise = self._noise()
        lines.append(f"Values are shifted by {float(self.bias.abs().mean()):.2g} on average.")
        covariance = self.factor @ self.factor.mT / noise / noise[:, None]
        most = float((covariance - torch.diag(covariance.diagonal())).abs().max())
        lines.append(
            f"Noise, from {noise.min():.2g} to {noise.max():.2g} by dimension, is correlated by {most:.2f} at most."
        )
        if math.isfinite(self.tails):
            lines.append("Some queries lie much farther off than others.")
        return "\n".join(lines)
