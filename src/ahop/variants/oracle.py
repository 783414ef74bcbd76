"""The Oracle: a memory that knows the corruption, and so the best that any memory can do."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ahop.memory import AssociativeMemory
from ahop.separation import Softmax
from ahop.similarity import Similarity
from ahop.variants.base import Variant


class TrueLikelihood(Similarity):
    r"""The log-likelihood :math:`\log p(x \mid \xi)` of a known variant.

    Args:
        variant: The corruption.
    """

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.variant = variant

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is not None:
            raise ValueError("observed is not supported by the Oracle: it scores whole queries")
        return self.variant.log_likelihood(patterns, queries)


class Oracle(AssociativeMemory):
    r"""The Bayes ceiling: weights are the true posterior :math:`p(\xi_k \mid x)`.

    Args:
        patterns: ``(N, d)``.
        variant: The corruption that the queries suffer.
        values, prior: As in :class:`~ahop.memory.AssociativeMemory`.

    Example:
        >>> world = ahop.variants.Noisy(0.1)
        >>> Oracle(torch.eye(3), world).recall(torch.eye(3)).indices.squeeze(1)
        tensor([0, 1, 2])
    """

    name = "oracle"

    def __init__(self, patterns: Any, variant: Variant, *, values: Any = None, prior: Any = None) -> None:
        super().__init__(patterns, TrueLikelihood(variant), Softmax(), values=values, prior=prior)

    @property
    def variant(self) -> Variant:
        return self.similarity.variant  # type: ignore[return-value]
