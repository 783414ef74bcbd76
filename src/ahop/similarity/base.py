"""The contract of a similarity: how alike are a stored pattern and a query, and how that is learned."""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from typing import Any, TypeVar

from torch import Tensor

from ahop._blocks import pairwise
from ahop._component import Component
from ahop._queries import Queries
from ahop._warnings import warn
from ahop.learning.report import FitReport

Kind = TypeVar("Kind", bound="Similarity")


class Similarity(Component):
    """Scores every stored pattern against every query; higher is more alike.

    A subclass gives :meth:`forward`, and one that learns gives :meth:`fit`; a constructor that needs the number of
    dimensions calls it ``dim``. It can then be named, saved, learned and used wherever a similarity is taken.

    Shape:
        patterns ``(..., N, d)``, queries ``(..., Q, d)``, observed ``(..., Q, d)`` or None (all observed), to
        ``(..., Q, N)``, with the same leading dimensions in all, if any. Queries may have another width where
        ``query_dim`` says so.
    """

    dim: int | None = None
    """The number of dimensions that a learned similarity was made for; None fits any."""
    query_dim: int | None = None
    """The number of dimensions of queries, where they live in a space of their own; None is that of the patterns."""
    prefers_float32 = False
    """Whether it is made for float32, and much slower in float64."""

    @classmethod
    def of(cls: type[Kind], part: Kind | str, dim: int | None = None, **arguments: Any) -> Kind:
        """``part`` itself, or, when it is a name, a new one for ``dim`` dimensions: the way to a similarity everywhere.

        Args:
            part: A similarity, or its name.
            dim: The number of dimensions in which it is to compare, where that is known.
        """
        if isinstance(part, str) and "dim" in inspect.signature(cls.named(part)).parameters:
            if dim is None:
                raise ValueError(
                    f"similarity {part!r} needs a number of dimensions, which is not known here: pass an instance"
                )
            arguments = {"dim": dim, **arguments}
        made = super().of(part, **arguments)
        if None not in (dim, made.dim) and dim != made.dim:
            raise ValueError(f"similarity must be for {dim} dimensions, got one for {made.dim}")
        return made

    @abstractmethod
    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The score of every pair, the higher the more alike.

        Args:
            patterns: ``(..., N, d)``.
            queries: ``(..., Q, d)``.
            observed: Which entries of the queries count, ``(..., Q, d)``; None is all.

        Returns:
            Scores, ``(..., Q, N)``.
        """

    @property
    def learns(self) -> bool:
        """Whether :meth:`fit` changes anything."""
        return type(self).fit is not Similarity.fit

    @property
    def needs_complete_queries(self) -> bool:
        """Whether queries that lack values are compared by another rule than complete ones."""
        return False

    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> FitReport:
        """Learn, in place, what "alike" means from queries and, where they are known, the patterns they came from.

        A fixed similarity has nothing to learn, and says so. One that learns may have further options.

        Args:
            patterns: ``(N, d)``, in float32 or better, as the queries.
            queries: ``(n, d)``.
            origins: The index of the pattern that each query came from, ``(n,)``; None if unknown.
            observed: Which entries of the queries to learn from, ``(n, d)``; None is all.
            log_prior: The log prior of each pattern, ``(N,)``; None is uniform.
        """
        warn(f"fit changes nothing: the {self.name!r} similarity is fixed")
        return FitReport("fixed", math.nan, 0, converged=True)

    def start_as(self, name: str) -> None:
        """Begin as the fixed similarity of this name, where a similarity that learns can; others begin as they are."""

    def bowl(self, state: Tensor) -> Tensor | None:
        """What an energy adds for states ``(..., d)`` to fall along retrieval, ``(...)``; None adds nothing."""
        return None

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        """By how much the best scores may be wrong in float32.

        Args:
            patterns: ``(N, d)``.
            queries: ``(Q, d)``.
            best: The best score of each query, ``(Q,)``.

        Returns:
            Bounds on the error, ``(Q,)``.
        """
        return 2**-16 * best.abs()

    def blend(
        self,
        patterns: Tensor,
        queries: Tensor,
        observed: Tensor | None,
        values: Tensor,
        beta: Tensor | float,
        log_prior: Tensor | None,
    ) -> tuple[Tensor, Tensor] | None:
        """``softmax(beta * scores + log_prior) @ values`` by a way of this similarity's own, and for which queries that
        is as exact as it should be; None where it has none.

        Args:
            patterns, queries, observed: As in :meth:`forward`.
            values: What to blend, ``(N, v)``.
            beta: The inverse temperature.
            log_prior: Added to the scores, ``(N,)``; None is uniform.

        Shape:
            values ``(N, v)``, log_prior ``(N,)``, to ``(Q, v)`` and ``(Q,)``.
        """
        return None

    def best(
        self,
        patterns: Tensor,
        queries: Tensor,
        observed: Tensor | None,
        k: int,
        beta: Tensor | float,
        log_prior: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """The k most probable patterns of that softmax and their probabilities, ``(Q, k)`` each, likewise; and whether
        the first of each query is surely that, ``(Q,)``.

        Args:
            patterns, queries, observed: As in :meth:`forward`.
            k: How many to return.
            beta, log_prior: As in :meth:`blend`.
        """
        return None

    def resized(self, kept: Tensor, added: int) -> Similarity:
        """This for other stored patterns: those at ``kept`` stay, ``added`` new ones come behind them.

        Only similarities that learn something for each pattern have anything to do here; they give a copy, for others
        may be going by this one.
        """
        return self


class Decomposable(Similarity, abstract=True):
    r"""A similarity that is a sum over dimensions.

    .. math:: \mathrm{sim}(\xi, x) = \sum_i q_i, \qquad q_i = \mathrm{sim}(\xi_i, x_i)

    A subclass gives :meth:`terms` and is complete; it may override :meth:`forward` with something faster.
    Unobserved dimensions are left out of the sum.
    """

    @abstractmethod
    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        """The terms ``q_i`` of two tensors that broadcast against each other."""

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        def block(patterns: Tensor, queries: Tensor, observed: Tensor | None) -> Tensor:
            asked = Queries(queries, observed)[..., None, :]
            return asked.masked(self.terms(patterns.unsqueeze(-3), asked.rows)).sum(-1)

        width = 2 * patterns.shape[-1]
        return pairwise(block, patterns, queries, width=width, per_query=(observed,), learned=self.parameters())
