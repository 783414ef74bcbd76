"""Several corruptions, each query suffering one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ahop.similarity import reranking
from ahop.similarity.codes import Codes
from ahop.similarity.density import Density
from ahop.similarity.families.independent.likelihood import Likelihood

_TINY = 1e-30


class Regimes(Density):
    r"""The log-likelihood when a whole query belongs to one of a few regimes.

    .. math:: s(\xi, x) = \log \sum_r \rho_r \prod_i p_r(x_i \mid \xi_i)

    A mixture for each dimension by itself cannot say that a query was either noisy everywhere or masked
    everywhere; this can.

    Args:
        regimes: One :class:`Likelihood` each.
    """

    takes_spread = True
    dim: int

    def __init__(self, regimes: Sequence[Likelihood]) -> None:
        super().__init__()
        if not regimes:
            raise ValueError("regimes must be a list of at least one Likelihood, got none")
        self.regimes = nn.ModuleList(regimes)
        self.dim = regimes[0].dim
        self.log_rho = nn.Parameter(torch.full((len(regimes),), 1 / len(regimes)).log())

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for regime in self.regimes:
            regime.reset_parameters()  # type: ignore[operator]
        self.log_rho.fill_(-math.log(len(self.regimes)))

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is None and (table := reranking.table(self, patterns, queries)) is not None:
            return table
        return self._mixed([regime(patterns, queries, observed) for regime in self.regimes])

    def _mixed(self, scores: list[Tensor]) -> Tensor:
        return torch.logsumexp(torch.stack(scores, -1) + torch.log_softmax(self.log_rho, 0), -1)

    def approximate(self, patterns: Tensor, queries: int) -> reranking.Table | None:
        """As in :meth:`Likelihood.approximate`: by that of every regime."""
        tables = [regime.approximate(patterns, queries) for _, regime in self.parts()]
        if any(table is None for table in tables):
            return None
        return lambda queries: self._mixed([table(queries) for table in tables if table is not None])

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As in :meth:`Likelihood.exact`."""
        return self._mixed([regime.exact(patterns, chosen, queries, observed) for regime in self.regimes])  # type: ignore[operator]

    def mixture(self, patterns: Tensor, tolerance: float) -> list[tuple[float, Codes]]:
        return [(math.log(max(share, _TINY)), regime.codes(patterns, tolerance)) for share, regime in self.parts()]

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As in :meth:`Likelihood.restored`, each regime counting as much as it explains a query of nothing stored."""
        regimes = [regime for _, regime in self.parts()]
        scores = torch.stack([regime.stranger(patterns, queries, observed) for regime in regimes], -1) + self.log_rho
        found = torch.stack([regime.restored(patterns, queries, observed) for regime in regimes], -1)
        return (found * torch.softmax(scores.double(), -1)[:, None]).sum(-1)

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Regimes:
        """As in :meth:`Likelihood.rescaled`."""
        new = Regimes([regime.rescaled(unit, shift) for _, regime in self.parts()]).to(self.log_rho)
        new.log_rho.copy_(self.log_rho)
        return new

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As in :meth:`Likelihood.stranger`, over the regimes."""
        totals = torch.stack([regime.stranger(patterns, queries, observed) for regime in self.regimes], -1)  # type: ignore[operator]
        return torch.logsumexp(totals + torch.log_softmax(self.log_rho, 0), -1)

    @torch.no_grad()
    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """As in :meth:`Likelihood.transferred`, by the likeliest regime of each query."""
        parts = [regime for _, regime in self.parts()]
        scores = torch.stack([regime.terms(own, queries).sum(-1) for regime in parts], -1) + self.log_rho
        moved = torch.stack([regime.transferred(queries, own, others) for regime in parts], 1)
        return moved[torch.arange(len(queries), device=queries.device), scores.argmax(-1)]

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words."""
        parts = [(share, regime.describe(columns).replace("\n", "\n  ")) for share, regime in self.parts()]
        return "\n".join(f"Of 100 queries, {100 * share:.0f} suffer this:\n  {text}" for share, text in parts)

    def parts(self) -> list[tuple[float, Likelihood]]:  # type: ignore[override]
        """The share of queries that suffer each regime, and the regime."""
        shares = torch.softmax(self.log_rho.detach(), 0).tolist()
        return list(zip(shares, self.regimes, strict=True))  # type: ignore[arg-type]
