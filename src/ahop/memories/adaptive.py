"""The paper's network: footprints weighed by what was learned from samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from torch import Tensor

from ahop._checks import Observed, as_matrix
from ahop.memories.base import AssociativeMemory
from ahop.separation import Separation
from ahop.similarity import Adaptive, Decomposable


class AdaptiveHopfield(AssociativeMemory):
    r"""Learns from samples what "alike" means under the corruption at hand.

    .. math:: y = \Xi^\top \mathrm{softmax}(s(\Xi, x)), \quad s(\xi, x) = \sum_b w_b^\top \mathrm{ftpt}_b(\xi, x), \quad
        E(x) = -\mathrm{lse}(s(\Xi, x))

    Args:
        patterns: ``(N, d)``.
        bases: The similarities whose footprints are weighed.
        sort, matrix, learn_matrix: As in :class:`~ahop.similarity.Adaptive`.
        isolated: Give every pattern its own weights, for patterns that are each corrupted in their own way.
        separation: Softmax or another, or its name.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.

    Example:
        >>> patterns = torch.rand(100, 16, generator=torch.Generator().manual_seed(0))
        >>> world = ahop.variants.Mixed(mask=0.3, noise=0.1, bias=0.1)
        >>> memory = AdaptiveHopfield(patterns).fit(*world.sample(patterns, 200))
        >>> memory.report.converged
        True
    """

    name = "a-hop"
    similarity: Adaptive

    def __init__(
        self,
        patterns: Any,
        *,
        bases: Sequence[Decomposable | str] = ("distance", "dot"),
        sort: bool = True,
        matrix: Literal["cumulative", "identity"] | Tensor = "cumulative",
        learn_matrix: bool = False,
        isolated: bool = False,
        separation: Separation | str = "softmax",
        values: Any = None,
        prior: Any = None,
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        count, dim = patterns.shape
        own = count if isolated else None
        similarity = Adaptive(dim, bases, sort=sort, matrix=matrix, learn_matrix=learn_matrix, patterns=own)
        super().__init__(patterns, similarity, separation, values=values, prior=prior)
        self.sort, self.matrix, self.learn_matrix, self.isolated = sort, matrix, learn_matrix, isolated

    @property
    def bases(self) -> list[Decomposable]:
        return list(self.similarity.bases)  # type: ignore[arg-type]

    def fit(  # type: ignore[override]
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        observed: Observed = None,
        solver: Literal["convex", "adam"] = "convex",
        smoothness: float | None = None,
        negatives: int | None = None,
        steps: int = 200,
        rate: float = 0.1,
        seed: int = 0,
    ) -> AdaptiveHopfield:
        """Fit the weights to queries whose origins are known; see :func:`ahop.learning.footprint.fit_adaptive`.

        The prior and a temperature of the separation do not enter: the similarity learns the likelihood alone.

        Args:
            queries: ``(n, d)``.
            origins: The pattern that each came from, ``(n,)``; queries of an origin of -1 are left out.
            observed: As in :meth:`scores`: learn from these entries alone.
            solver, smoothness, negatives, steps, rate, seed: As in
                :func:`~ahop.learning.footprint.fit_adaptive`.

        Returns:
            The memory itself.
        """
        if queries is None or origins is None:
            raise ValueError("queries and origins must both be given: a-hop learns from labelled pairs")
        options = {"solver": solver, "smoothness": smoothness, "negatives": negatives}
        super().fit(queries, origins, observed=observed, **options, steps=steps, rate=rate, seed=seed)
        return self
