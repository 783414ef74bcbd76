"""The Oracle: a memory that knows the corruption, and so the best that any memory can do."""

from __future__ import annotations

from typing import Any

from ahop.memories.scattered import Scattered
from ahop.separation import Softmax
from ahop.similarity.known import TrueLikelihood
from ahop.variants import Variant


class Oracle(Scattered):
    r"""The Bayes ceiling: weights are the true posterior :math:`p(\xi_k \mid x)`.

    Where measurements of a pattern scatter, what is corrupted is one of them,
    :math:`p(x \mid \xi_k) = \int p(x \mid y) \, N(y; \xi_k, \mathrm{diag}(\sigma_k^2)) \, dy`. That has a closed
    form for corruptions that act on each value by itself (noise, bias, gain, masks, and compositions of them), for
    noise that values share, and for rotations.

    Args:
        patterns: ``(N, d)``.
        variant: The corruption that the queries suffer.
        spread: The standard deviation of a measurement of each pattern, ``(N, d)``; None scatters nothing.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.

    Example:
        >>> world = ahop.variants.Noisy(0.1)
        >>> Oracle(torch.eye(3), world).recall(torch.eye(3)).indices.squeeze(1)
        tensor([0, 1, 2])
    """

    name = "oracle"
    similarity: TrueLikelihood

    def __init__(
        self, patterns: Any, variant: Variant, *, spread: Any = None, values: Any = None, prior: Any = None
    ) -> None:
        super().__init__(patterns, TrueLikelihood(variant), Softmax(), spread=spread, values=values, prior=prior)
        if spread is not None:
            self._require_closed_form()

    @property
    def variant(self) -> Variant:
        return self.similarity.variant

    def _require_closed_form(self) -> None:
        assert self.spread is not None
        try:
            self.variant.log_likelihood(self.patterns[:1], self.patterns[:1], spread=self.spread[:1])
        except ValueError as error:
            raise ValueError(f"variant must have a closed form where patterns have a spread: {error}") from error
