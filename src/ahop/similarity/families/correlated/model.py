"""A likelihood for corruption that moves many dimensions at once."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ahop._blocks import pairwise
from ahop._precision import holds
from ahop._queries import Queries
from ahop.similarity.codes import NoCodesError
from ahop.similarity.density import Density, column_name
from ahop.similarity.families import student
from ahop.similarity.families.correlated import scattered
from ahop.similarity.families.posterior import Prior, expected
from ahop.similarity.scatter import mean_and_variance
from ahop.similarity.squares import ROUNDING, squared_distances
from ahop.similarity.whitened import Whitened


class Correlated(Density):
    r"""The log-likelihood when a few hidden causes move many dimensions at once, with heavy tails.

    .. math:: x = a \, \xi + b + W z + e, \qquad
        s(\xi, x) = \beta \log t_\nu(x;\, a\xi + b,\, \Sigma), \qquad \Sigma = W W^\top + \mathrm{diag}(\psi)

    A drifting sensor, another lamp or another instrument moves a query along the columns of W, and such moves
    cost little. In coordinates where :math:`\Sigma` is the identity, the score is a function of a plain distance.
    :math:`\beta` makes up for what is still dependent: without it, posteriors are far too sure of themselves.
    :mod:`ahop.similarity.families.correlated.learning` fits all of it. A pattern that scatters is its mean, followed by
    its standard deviations; :math:`\Sigma` then has their squares, times :math:`a^2`, on its diagonal as well.

    Args:
        dim: Number of dimensions d.
        rank: Number of hidden causes, the columns of W; 0 leaves a noise for each dimension.
        tails: Degrees of freedom :math:`\nu`; few let a query lie far off, infinity is a normal distribution.

    Shape:
        patterns ``(N, d)`` or ``(N, 2d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> drift = Correlated(dim=3, rank=1)
        >>> _ = drift.loading.data.copy_(torch.tensor([[9.0], [9.0], [0.0]]))   # the first two drift together
        >>> drift(torch.eye(3), torch.tensor([[6.0, 5.0, 0.0]])).argmax(1)
        tensor([0])
    """

    takes_spread = True
    dim: int

    def __init__(self, dim: int, rank: int = 0, *, tails: float = 4.0) -> None:
        super().__init__()
        if dim < 1 or not 0 <= rank <= dim:
            raise ValueError(f"rank must be between 0 and dim, and dim be at least 1; got {rank} and {dim}")
        if not tails > 0:
            raise ValueError(f"tails must be more than 0, got {tails}")
        self.dim, self.rank, self.tails = dim, rank, tails
        self.gain = nn.Parameter(torch.ones(()))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.loading = nn.Parameter(torch.zeros(dim, rank))
        self.log_psi = nn.Parameter(torch.zeros(dim))
        self.log_beta = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            parameter.zero_()
        self.gain.fill_(1.0)

    @property
    def noise(self) -> Tensor:
        """The standard deviation that each dimension has for itself, ``(d,)``."""
        return (self.log_psi / 2).exp()

    def whiten(self, rows: Tensor, *, beside: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
        r"""Rows in coordinates where :math:`\Sigma` is the identity, and the log determinant of :math:`\Sigma`.

        ``beside`` is variance to be added to :math:`\psi`.
        """
        loading, variance = self.loading.to(rows), self.log_psi.to(rows).exp() + beside
        if torch.is_grad_enabled():
            # Its gradient exists even where hidden causes are equally strong.
            factor = torch.linalg.cholesky(loading @ loading.mT + torch.diag(variance))
            whitened = torch.linalg.solve_triangular(factor, rows.mT, upper=False).mT
            return whitened, 2 * factor.diagonal().log().sum()
        # The symmetric root of the inverse, by way of the few hidden causes.
        causes = loading / variance.sqrt()[:, None]
        strength, turn = torch.linalg.eigh(causes.mT @ causes)
        strength = strength.clamp_min(0)
        root, causes = (1 + strength).sqrt(), causes @ turn
        rows = rows / variance.sqrt()
        rows = rows - (rows @ causes / (root * (1 + root))) @ causes.mT
        return rows, variance.log().sum() + strength.log1p().sum()

    def density(self, squares: Tensor, log_determinant: Tensor, count: Tensor | int) -> Tensor:
        """The log density of queries at given distances from a pattern.

        Args:
            squares: Squared whitened distances.
            log_determinant: That of the covariance.
            count: In how many dimensions the distances are taken.
        """
        return student.log_density(squares, self.tails, count) - log_determinant / 2

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        dtype = queries.dtype
        if patterns.shape[-1] > self.dim:
            return self._of_scattered(patterns, queries, observed).to(dtype)
        # Around the patterns' mean, so that a common offset costs no digits.
        centre = patterns.detach().mean(-2, keepdim=True)
        if not holds(self.noise.min(), patterns - centre, queries - centre):
            patterns, queries, centre = patterns.double(), queries.double(), centre.double()
        stored, asked = self.gain * (patterns - centre), queries - centre - (self.bias + (self.gain - 1) * centre)
        if observed is not None and not bool(observed.all()):
            return self._of_the_observed(stored, asked, observed.to(queries.dtype)).to(dtype)
        rows, log_determinant = self.whiten(torch.cat([stored, asked], -2))
        count = patterns.shape[-2]
        squares = squared_distances(rows[..., :count, :], rows[..., count:, :])
        return (self.log_beta.exp() * self.density(squares, log_determinant, self.dim)).to(dtype)

    def _of_scattered(self, patterns: Tensor, queries: Tensor, observed: Tensor | None) -> Tensor:
        if observed is not None and not bool(observed.all()):
            raise ValueError("observed must be None: hidden causes take complete queries where patterns have a spread")

        def block(patterns: Tensor, queries: Tensor) -> Tensor:
            squares, log_determinant = scattered.of(self, patterns).distances(queries)
            return self.log_beta.exp() * self.density(squares, log_determinant, self.dim)

        patterns, queries = patterns.double(), queries.double()
        # Of one pattern each: a covariance's causes, and what they leave of every query.
        width = self.dim * (self.rank + 4) // max(1, len(queries)) + self.rank + 3
        return pairwise(block, patterns, queries, width=width, learned=self.parameters())

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return 2**-9 + ROUNDING * best.abs()

    def _of_the_observed(self, stored: Tensor, asked: Tensor, mask: Tensor) -> Tensor:
        """Each query has a covariance of its own, inverted by way of its few hidden causes (Woodbury)."""
        loading, log_psi = self.loading.to(asked), self.log_psi.to(asked)
        precision = mask * (-log_psi).exp()
        inner = torch.eye(self.rank).to(asked) + torch.einsum("...i,ir,is->...rs", precision, loading, loading)
        factor = torch.linalg.cholesky(inner)
        log_determinant = (mask * log_psi).sum(-1) + 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)

        def block(
            stored: Tensor, asked: Tensor, mask: Tensor, precision: Tensor, factor: Tensor, log_determinant: Tensor
        ) -> Tensor:
            gaps = asked.unsqueeze(-2) - stored.unsqueeze(-3)
            weighed = gaps * precision.unsqueeze(-2)
            moved = torch.linalg.solve_triangular(factor, (weighed @ loading).mT, upper=False)
            squares = (gaps * weighed).sum(-1) - moved.square().sum(-2)
            count = mask.sum(-1, keepdim=True)
            return self.log_beta.exp() * self.density(squares.clamp_min(0), log_determinant[..., None], count)

        return pairwise(
            block,
            stored,
            asked,
            width=2 * (self.dim + self.rank),
            per_query=(mask, precision, factor, log_determinant),
            learned=self.parameters(),
        )

    @torch.no_grad()
    def codes(self, patterns: Tensor, tolerance: float) -> Whitened:
        """See :class:`~ahop.similarity.Whitened`; they need no tolerance."""
        if patterns.shape[-1] > self.dim:
            raise NoCodesError("codes are not known where patterns have a spread")
        return Whitened.around(copy.deepcopy(self), patterns)

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Correlated:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        new = Correlated(self.dim, self.rank, tails=self.tails)
        new.load_state_dict(self.state_dict())
        new = new.to(self.bias)
        new.bias.copy_(unit * self.bias + shift * (1 - self.gain))
        new.loading.mul_(unit)
        new.log_psi.add_(2 * math.log(unit))
        return new

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The log evidence under a pattern whose dimensions are normal, as the stored ones are spread, ``(Q,)``."""
        if observed is not None and not bool(observed.all()):
            wider = Correlated(self.dim, self.rank, tails=self.tails).to(queries)
            for name, value in self.named_parameters():
                wider.get_parameter(name).data.copy_(value.data)
            wider.log_psi.data.copy_((self.log_psi.exp() + self._spread(patterns)).log())
            return wider(patterns[:, : self.dim].mean(0, keepdim=True), queries, observed).squeeze(-1)
        centre = self.gain * patterns[:, : self.dim].mean(0) + self.bias
        rows, log_determinant = self.whiten(queries - centre, beside=self._spread(patterns))
        return self.log_beta.exp() * self.density(rows.square().sum(-1), log_determinant, self.dim)

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """The noise stays, with the hidden causes; where patterns scatter, as far off as it was among their own."""
        (old, scatter), (new, wider) = (mean_and_variance(rows, self.dim) for rows in (own, others))
        if isinstance(scatter, Tensor) and isinstance(wider, Tensor):
            gaps = queries - self.bias - self.gain * old
            return self.bias + self.gain * new + scattered.transferred(self, gaps, scatter, wider)
        return queries + self.gain * (new - old)

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """Hidden causes are told from patterns by how either spreads; noise is taken for normal, of its scale."""
        prior, gain, loading = Prior.of(patterns), self.gain.double(), self.loading.double()
        precision = (-self.log_psi).double().exp()
        return expected(
            prior.mean,
            gain * prior.covariance,
            gain.square() * prior.covariance + loading @ loading.mT,
            Queries(queries, observed).masked(precision),
            queries.double() - self.bias - gain * prior.mean,
        )

    def _spread(self, patterns: Tensor) -> Tensor:
        mean, scatter = mean_and_variance(patterns, self.dim)
        within = scatter.mean(0) if isinstance(scatter, Tensor) else scatter
        return self.gain.square() * (mean.var(0, unbiased=False) + within)

    @torch.no_grad()
    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """Bias, noise, and how far hidden causes move each dimension."""
        moved = self.loading.cpu().square().sum(1).sqrt()
        shift, noise = ("shift of values", self.bias.cpu(), None), ("noise of each dimension", self.noise.cpu(), None)
        return [shift, noise, ("moved together by", moved, None)]

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words."""
        own, common = self.log_psi.exp(), self.loading.square()
        share = float(common.sum() / (common.sum() + own.sum()))
        lines = []
        if self.rank:
            cause = "hidden cause moves" if self.rank == 1 else "hidden causes move"
            lines.append(f"{self.rank} {cause} many dimensions at once, with {100 * share:.0f} % of all that varies.")
            most = int(common.sum(1).argmax())
            lines.append(f"They move {column_name(columns, most)} most, by {common.sum(1)[most].sqrt():.2g}.")
        else:
            lines.append("Nothing moves several dimensions at once.")
        low, high = float(self.noise.min()), float(self.noise.max())
        lines.append(
            f"Each dimension has noise of its own, from {low:.2g} to {high:.2g}."
            if high > 1.01 * low
            else f"Beside that, all dimensions have noise of {low:.2g}."
        )
        if abs(float(self.gain) - 1) >= 0.02:
            lines.append(f"Values are scaled by {float(self.gain):.2f}.")
        farthest = int(self.bias.abs().argmax())
        size, shift = float(self.bias.abs().mean()), float(self.bias[farthest])
        lines.append(
            f"Values are shifted by {size:.2g} on average, and most in {column_name(columns, farthest)}, by "
            f"{shift:+.2g}."
        )
        if math.isfinite(self.tails):
            lines.append("Some queries lie much farther off than others.")
        return "\n".join(lines)
