"""The likelihood of a corruption that is known."""

from __future__ import annotations

from torch import Tensor

from ahop.similarity.base import Similarity
from ahop.variants import Variant


class TrueLikelihood(Similarity):
    r"""The log-likelihood :math:`\log p(x \mid \xi)` of a known variant.

    Args:
        variant: The corruption.

    Shape:
        patterns ``(N, d)``, or ``(N, 2d)`` of means and the standard deviations of measurements, queries ``(Q, d)`` to
        ``(Q, N)``.
    """

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.variant = variant

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is not None:
            raise ValueError("observed is not supported by the Oracle: it scores complete queries")
        dim = queries.shape[-1]
        spread = patterns[:, dim:] if patterns.shape[-1] == 2 * dim else None
        return self.variant.log_likelihood(patterns if spread is None else patterns[:, :dim], queries, spread=spread)
