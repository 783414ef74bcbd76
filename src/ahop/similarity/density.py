"""The contract of a similarity that is a log-likelihood."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from ahop._queries import Queries
from ahop.learning.report import FitReport
from ahop.similarity.base import Similarity
from ahop.similarity.bridge import Adapter
from ahop.similarity.codes import Codes, NoCodesError
from ahop.similarity.families.training import TrainingData


class Learner(Protocol):
    """What learns a likelihood: its family, see :class:`ahop.similarity.families.Family`."""

    def alone(self, model: Density, data: TrainingData, seed: int) -> tuple[Density, FitReport]:
        """Fit a new likelihood of the same kind.

        Args:
            model: A likelihood of the kind and size to fit.
            data: What to learn from.
            seed: Seed of what is drawn.

        Returns:
            The fitted likelihood, and a report of the fit.
        """


def column_name(columns: Sequence[str] | None, place: int) -> str:
    """What to call a column.

    Args:
        columns: The names of all columns; None where they have none.
        place: Which one.

    Example:
        >>> column_name(("weight", "size"), 1), column_name(None, 1)
        ('size', 'column 1')
    """
    return f"column {place}" if columns is None else columns[place]


class Density(Similarity, abstract=True):
    r"""Scores are log-likelihoods, :math:`s(\xi, x) = \log p(x \mid \xi)`.

    So probabilities mean what they say, and a query of nothing stored can be told.

    Attributes:
        learner: What learns such a likelihood; None where it is fixed.
        takes_spread: Whether a pattern may be a mean followed by standard deviations, ``(N, 2d)``.
    """

    learner: ClassVar[Learner | None] = None
    takes_spread: ClassVar[bool] = False

    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
        seed: int = 0,
    ) -> FitReport:
        """Learn, in place, the corruption that queries suffered, with origins, without, or with some of them.

        Args:
            patterns: ``(N, d)``, in float32 or better, as the queries.
            queries: ``(n, d)``.
            origins: The index of the pattern that each query came from, ``(n,)``, with -1 where nobody knows; None
                knows none.
            observed: Which entries of the queries to learn from, ``(n, d)``; None is all.
            log_prior: The log prior of each pattern, ``(N,)``; None is uniform.
            seed: For what is held out.
        """
        if self.learner is None:
            return super().fit(patterns, queries, origins, observed=observed, log_prior=log_prior)
        data = TrainingData(patterns, queries, origins, observed, log_prior)
        with torch.no_grad():
            found, report = self.learner.alone(self, data, seed)
        self.copy_from(found)
        return report

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` changes anything."""
        return self.learner is not None or type(self).fit is not Density.fit

    @abstractmethod
    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The log evidence of each query under a pattern that is not stored but like those that are.

        Args:
            patterns: ``(N, d)``.
            queries: ``(Q, d)``.
            observed: Which entries of the queries count, ``(Q, d)``; None is all.

        Returns:
            Log-likelihoods, ``(Q,)``.
        """

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return 2**-13 + super().rounding(patterns, queries, best)

    def parts(self) -> list[tuple[float, Density]]:
        """The likelihoods that it is a mixture of, with the share of queries of each; itself, where it is none."""
        return [(1.0, self)]

    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """What was learned, as pictures: a title, values, and where they lie: None for one a dimension, whole
        numbers for ranks."""
        return []

    def curve_unit(self, values: str) -> str:
        """What the curves of single dimensions are counted in, in words.

        Args:
            values: What the values that are compared are counted in.
        """
        return values

    def log_volume(self, queries: Tensor) -> Tensor:
        """What makes log densities of queries out of the scores, ``(Q,)``: nought for those that are densities."""
        return queries.new_zeros(len(queries))

    @abstractmethod
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words, one sentence a line.

        Args:
            columns: The names of the columns; None counts them.
        """

    @abstractmethod
    def rescaled(self, unit: float, shift: float) -> Density:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor | None:
        """Move what happened to queries from their own patterns to others.

        None where that cannot be told.

        Args:
            queries: ``(n, d)``.
            own: The patterns that the queries came from, ``(n, d)``.
            others: The patterns to apply the same corruption to, ``(n, d)``.

        Returns:
            Queries, ``(n, d)``; None where they cannot be told.
        """
        return None

    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """Queries as they were before anything happened to them.

        Args:
            patterns: ``(N, d)``.
            queries: ``(Q, d')``.
            observed: Which entries of the queries count, ``(Q, d')``; None is all.

        Returns:
            The mean of what the queries may have been, among patterns like those stored
            (:mod:`ahop.similarity.families.posterior`), ``(Q, d)`` in float64.
        """
        raise ValueError(
            f"queries cannot be restored: fit found {self.name!r}, which tells how likely a query is, not what it was"
        )

    def adapter(self, patterns: Tensor, metric: str = "cosine") -> Adapter:
        """Queries as vectors for an index of the patterns as they are; see :class:`~ahop.similarity.bridge.Adapter`."""
        raise ValueError(f"query_adapter needs a moved space, and fit found another corruption: {self.name!r}")

    def codes(self, patterns: Tensor, tolerance: float) -> Codes:
        """Codes for patterns and queries whose dot products are the scores, up to a constant of the query."""
        raise NoCodesError(f"{type(self).__name__} has no codes: its scores are not dot products")

    def mixture(self, patterns: Tensor, tolerance: float) -> list[tuple[float, Codes]]:
        """The log share and the codes of each likelihood that it is a mixture of."""
        return [(0.0, self.codes(patterns, tolerance))]

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The scores of some patterns for each query, ``(Q, C)``.

        Args:
            patterns: All patterns, ``(N, d)``.
            chosen: Those to score, ``(Q, C)``.
            queries, observed: ``(Q, d)``.
        """
        asked = Queries(queries, observed)[:, None]
        scores: Tensor = self(patterns[chosen], asked.rows, asked.observed)
        return scores.squeeze(1)
