"""Queries, and what was observed of them: one thing, cut, shaped and moved together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ahop._component import single


# Tensors have no one answer to whether they are equal.
@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with a mask of the entries to trust, if not all of them are.

    An index means the same for both, as it does for a tensor: ``queries[:8]``, ``queries[rows]``, ``queries[:, None]``.

    Args:
        rows: The queries; unobserved entries are numbers that nobody reads.
        observed: True where an entry was observed; None is everywhere.

    Shape:
        rows and observed ``(..., d)``.

    Example:
        >>> queries = Queries(torch.eye(3), torch.eye(3) > 0)
        >>> len(queries), queries[1:].observed
        (3, tensor([[False,  True, False],
                [False, False,  True]]))
        >>> print(Queries(torch.eye(3))[1:].observed)
        None
        >>> queries[1:].masked(torch.ones(3))
        tensor([[0., 1., 0.],
                [0., 0., 1.]])
    """

    rows: Tensor
    observed: Tensor | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Queries:
        return self._both(lambda tensor: tensor[index])

    def flat(self) -> Queries:
        """The same, one a row, ``(n, d)``."""
        return self._both(lambda tensor: tensor.reshape(-1, tensor.shape[-1]))

    def to(self, device: torch.device | str) -> Queries:
        """The same on another device."""
        return self._both(lambda tensor: tensor.to(device))

    def single(self) -> Queries:
        """The same in float32 at least."""
        return replace(self, rows=single(self.rows))

    def masked(self, values: Tensor) -> Tensor:
        """Values of these queries, zero where nothing was observed.

        Args:
            values: What broadcasts against the rows, ``(..., d)``.
        """
        return values if self.observed is None else values * self.observed

    @property
    def mask(self) -> Tensor:
        """One where an entry was observed, zero elsewhere, in the rows' own precision."""
        return torch.ones_like(self.rows) if self.observed is None else self.observed.to(self.rows)

    @property
    def boolean_mask(self) -> Tensor:
        """True where an entry was observed, even if all were."""
        return torch.ones_like(self.rows, dtype=torch.bool) if self.observed is None else self.observed

    def _both(self, change: Callable[[Tensor], Tensor]) -> Queries:
        return Queries(change(self.rows), None if self.observed is None else change(self.observed))
