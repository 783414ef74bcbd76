"""The Oracle: a memory that knows the corruption, and so the best that any memory can do."""

from __future__ import annotations

from typing import Any

from ahop.memories.base import AssociativeMemory
from ahop.separation import Softmax
from ahop.similarity.known import TrueLikelihood
from ahop.variants import Variant


class Oracle(AssociativeMemory):
    r"""The Bayes ceiling: weights are the true posterior :math:`p(\xi_k \mid x)`.

    Args:
        patterns: ``(N, d)``.
        variant: The corruption that the queries suffer.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.

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
