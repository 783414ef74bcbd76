"""The contract of a similarity that is a log-likelihood."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from ahop.similarity.base import Similarity


class Density(Similarity, abstract=True):
    r"""Scores are log-likelihoods, :math:`s(\xi, x) = \log p(x \mid \xi)`.

    So probabilities mean what they say, and a query of nothing stored can be told.
    """

    @abstractmethod
    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The log evidence of each query ``(Q,)`` under a pattern that is not stored but like those that are."""

    def parts(self) -> list[tuple[float, Density]]:
        """The likelihoods that it is a mixture of, with the share of queries of each; itself, where it is none."""
        return [(1.0, self)]

    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """What was learned, as pictures: a title, values, and where they lie (None: one a dimension)."""
        return []

    @abstractmethod
    def describe(self) -> str:
        """What happens to queries, in words."""

    @abstractmethod
    def rescaled(self, unit: float, shift: float) -> Density:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""

    def carried(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor | None:
        """What happened to queries ``(n, d)`` of some patterns ``(n, d)``, as if it had happened to others ``(n, d)``.

        None where that cannot be told.
        """
        return None

    def codes(self, patterns: Tensor, tolerance: float) -> Similarity:
        """Codes for patterns and queries whose dot products are the scores, up to a constant of the query."""
        raise ValueError(f"codes of {type(self).__name__} are not known: its scores are no dot products")
