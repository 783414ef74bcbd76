"""Patterns that are distributions: a mean each, and how far measurements of it scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._checks import as_matrix, as_tensor
from ahop._component import single
from ahop.memories.base import AssociativeMemory
from ahop.memories.replicates import moderated
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

    @classmethod
    def from_replicates(cls, rows: Any, groups: Any, **options: Any) -> Self:
        r"""A memory of items that were measured several times each.

        .. math:: \sigma_k^2 = \Big(1 + \frac{1}{m_k}\Big) \, \tilde s_k^2

        Variances :math:`\tilde s_k^2` of few measurements are shrunk towards a common one as far as they ask for
        (:mod:`ahop.memories.replicates`), and the mean of :math:`m_k` measurements is itself uncertain. Probabilities
        take the spread for known: with few measurements of each item, they are too sure.

        Args:
            rows: Measurements, ``(m, d)``.
            groups: The item that each row is of, ``(m,)`` whole numbers; patterns come in their order.
            options: What a memory of this kind takes beside patterns and spread.

        Example:
            >>> memory = ahop.GaussianHopfield.from_replicates([[0.0], [2.0], [7.0], [9.0]], [0, 0, 1, 1])
            >>> memory.patterns.flatten(), bool(memory.spread[0] == memory.spread[1])
            (tensor([1., 8.]), True)
        """
        table = as_matrix(rows, "rows")
        items = as_tensor(groups, "groups", whole=True).to(table.device)
        if items.shape != (len(table),) or items.is_floating_point() or items.dtype == torch.bool:
            shape = f"{items.dtype} of shape {tuple(items.shape)}"
            raise ValueError(f"groups must be integers, one for each of the {len(table)} rows; got {shape}")
        _, place, counts = items.unique(return_inverse=True, return_counts=True)
        free = (counts - 1).to(table)[:, None]
        if not bool(free.any()):
            raise ValueError("groups must hold at least one item with two rows or more: a single row shows no scatter")
        sums = table.new_zeros(len(counts), table.shape[1])
        means = sums.index_add(0, place, table) / counts[:, None]
        squares = sums.index_add(0, place, (table - means[place]).square())
        variances = moderated(squares, free) * (1 + 1 / counts[:, None])
        return cls(means, spread=variances.sqrt(), **options)

    @torch.no_grad()
    def add(self, patterns: Any, *, spread: Any = None, values: Any = None, prior: Any = None) -> Self:
        """Store further patterns, with their spread, values and prior counts where this memory has them.

        Args:
            patterns: ``(n, d)``.
            spread: The standard deviation of a measurement of each, ``(n, d)``.
            values, prior: As in :meth:`~ahop.memories.base.AssociativeMemory.add`.

        Returns:
            The memory itself.
        """
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
