"""Patterns that are distributions: a mean each, and how far measurements of it scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._checks import as_matrix
from ahop._component import single
from ahop.memories.base import AssociativeMemory
from ahop.separation import Separation
from ahop.similarity import Similarity

if TYPE_CHECKING:
    from typing_extensions import Self


class Scattered(AssociativeMemory, abstract=True):
    r"""A memory of patterns that are measured as :math:`N(\xi_k, \mathrm{diag}(\sigma_k^2))`.

    Its similarity takes a mean followed by standard deviations, ``(N, 2d)``, where there are any.

    Args:
        patterns: The means, ``(N, d)``.
        similarity, separation: The parts.
        spread: The standard deviations, ``(N, d)``; None scatters nothing.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.
    """

    spread: Tensor | None

    def __init__(
        self,
        patterns: Any,
        similarity: Similarity | str,
        separation: Separation | str,
        *,
        spread: Any = None,
        values: Any = None,
        prior: Any = None,
    ) -> None:
        super().__init__(patterns, similarity, separation, values=values, prior=prior)
        self.register_buffer("spread", None if spread is None else self._deviations(spread, len(self)))

    @torch.no_grad()
    def add(self, patterns: Any, *, spread: Any = None, values: Any = None, prior: Any = None) -> Self:
        """Store further patterns, with their spread, values and prior counts where this memory has them."""
        with self.changing:
            before, count = self.spread, len(as_matrix(patterns, "patterns"))
            if spread is None and before is not None:
                raise ValueError("spread must be given for the new patterns: this memory has spread")
            if spread is not None and before is None:
                raise ValueError("spread must not be given: this memory was made without spread")
            if before is not None:
                self.spread = torch.cat([before, self._deviations(spread, count)])
            try:
                return super().add(patterns, values=values, prior=prior)
            except BaseException:
                self.spread = before
                raise

    def _resized(self, before: Tensor, kept: Tensor, added: int) -> None:
        super()._resized(before, kept, added)
        if self.spread is not None and not added:
            self.spread = self.spread[kept]

    def _described(self) -> Tensor:
        means = super()._described()
        return means if self.spread is None else torch.cat([means, single(self.spread)], 1)

    def _deviations(self, spread: Any, count: int) -> Tensor:
        rows = self._rows(spread, "spread", count)
        if rows.shape[1] != self.patterns.shape[1]:
            have, came = self.patterns.shape[1], tuple(rows.shape)
            raise ValueError(f"spread must have {have} values each, like the patterns; got shape {came}")
        if bool((rows < 0).any()):
            raise ValueError(f"spread must be standard deviations, not negative; got {float(rows.min()):.3g}")
        return rows
