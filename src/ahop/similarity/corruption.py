"""A likelihood of whatever kind the queries ask for."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from ahop._checks import whole
from ahop.learning import corruption
from ahop.learning.report import FitReport
from ahop.similarity.base import Similarity
from ahop.similarity.correlated import Correlated
from ahop.similarity.density import Density
from ahop.similarity.likelihood import Likelihood
from ahop.similarity.regimes import Regimes

_FAMILIES = corruption.Families(Likelihood, Regimes, Correlated)
# A stream is learned from anew as long as its queries are few.
_FEW = 256
_LEAST = 32


class Corruption(Density):
    r"""The log-likelihood of a query under a corruption that is learned, its kind included.

    :meth:`fit` finds out whether every dimension is hit by itself (:class:`Likelihood`), queries are of several kinds
    (:class:`Regimes`), or hidden causes move many dimensions at once (:class:`Correlated`); what it found is ``model``.

    Args:
        dim: Number of dimensions d.
        model: A likelihood that is already known; None starts from a plain one.

    Attributes:
        known: Of how many queries ``model`` knows; one that was given knows enough.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> patterns = torch.rand(50, 8, generator=torch.Generator().manual_seed(0))
        >>> similarity = Corruption(dim=8)
        >>> queries, origins = ahop.variants.Biased(2.0).sample(patterns, 100)
        >>> similarity.fit(patterns, queries).converged
        True
        >>> bool((similarity(patterns, queries).argmax(1) == origins).all())
        True
    """

    known: Tensor

    def __init__(self, dim: int, model: Density | None = None) -> None:
        super().__init__()
        if model is not None and not isinstance(model, Density):
            raise TypeError(f"model must be a likelihood (a Density) or None, got {type(model).__name__}")
        self.dim, self.model = dim, Likelihood(dim) if model is None else model
        self.register_buffer("known", torch.tensor(0 if model is None else _FEW))

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        scores: Tensor = self.model(patterns, queries, observed)
        return scores

    def best(
        self,
        patterns: Tensor,
        queries: Tensor,
        observed: Tensor | None,
        k: int,
        beta: Tensor | float,
        log_prior: Tensor | None,
    ) -> tuple[Tensor, Tensor] | None:
        return self.model.best(patterns, queries, observed, k, beta, log_prior)

    @torch.no_grad()
    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
        hidden_causes: int | None = None,
        seed: int = 0,
    ) -> FitReport:
        """Learn what happens to queries; see :mod:`ahop.learning.corruption` for the decisions.

        Args:
            hidden_causes: How many move several dimensions at once; 0 for none, None to find out.
            seed: For what is held out.
        """
        if hidden_causes is not None and whole(hidden_causes, "hidden_causes", 0) > queries.shape[1]:
            raise ValueError(f"hidden_causes must lie in 0 to {queries.shape[1]} or be None, got {hidden_causes}")
        if hidden_causes and observed is not None:
            raise ValueError(f"hidden_causes must be 0 or None where values are missing, got {hidden_causes}")
        lessons = corruption.Lessons(patterns, queries, origins, observed, log_prior)
        self.model, report = corruption.learn(lessons, _FAMILIES, hidden_causes, seed)
        self.known.fill_(len(queries))
        return report

    @torch.no_grad()
    def follow(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> FitReport | None:
        """Go on learning from the last queries of a stream; None where they are too few to change what is known."""
        if int(self.known) < _FEW and not isinstance(self.model, Correlated):
            return self.fit(patterns, queries, origins, observed=observed, log_prior=log_prior, hidden_causes=0)
        if len(queries) < _LEAST:
            return None
        lessons = corruption.Lessons(patterns, queries, origins, observed, log_prior)
        self.model, report = corruption.follow(self.model, lessons, _FAMILIES)
        return report

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        return self.model.stranger(patterns, queries, observed)

    def parts(self) -> list[tuple[float, Density]]:
        return self.model.parts()

    def describe(self) -> str:
        return self.model.describe()

    def rescaled(self, unit: float, shift: float) -> Corruption:
        new = copy.deepcopy(self)
        new.model = self.model.rescaled(unit, shift)
        return new

    def codes(self, patterns: Tensor, tolerance: float) -> Similarity:
        return self.model.codes(patterns, tolerance)

    def reset_parameters(self) -> None:
        self.known.zero_()
        self.model.reset_parameters()  # type: ignore[operator]
