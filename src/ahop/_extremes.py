"""The least and the largest of long rows: a fast pass over groups of columns says which few are worth a look."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_GROUP = 16
# Fewer values are sorted sooner than they are grouped.
_SORTED_BELOW = 2**14


def two_best(table: Tensor) -> tuple[Tensor, Tensor]:
    """The largest value of each row and the next, ``(R, N)`` to ``(R,)`` each; minus infinity where there is none.

    Example:
        >>> two_best(torch.tensor([[3.0, 1.0, 3.0], [0.0, 2.0, 1.0]]))
        (tensor([3., 2.]), tensor([3., 1.]))
    """
    if table.shape[1] == 1:
        return table[:, 0], torch.full_like(table[:, 0], -torch.inf)
    if table.numel() < _SORTED_BELOW or table.shape[1] < 2 * _GROUP:
        first, second = table.topk(2).values.unbind(1)
        return first, second
    groups = _groups(table, torch.amax)
    best, which = groups.topk(2)
    # The next best stands in a group of its own, or behind the best in the same.
    columns, alone = _members(which[:, 0], table.shape[1])
    beside = table.gather(1, columns).masked_fill(alone, -torch.inf).topk(2).values[:, 1]
    return best[:, 0], torch.maximum(best[:, 1], beside)


def below(table: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
    """The rows and columns, ``(m,)`` each, of values below the level of their row, ``(R, N)`` and ``(R, 1)``.

    Example:
        >>> below(torch.tensor([[3.0, 1.0], [0.0, 2.0]]), torch.tensor([[2.0], [1.0]]))
        (tensor([0, 1]), tensor([1, 0]))
    """
    groups = _groups(table, torch.amin)
    row, group = (groups < level).nonzero(as_tuple=True)
    if _GROUP * len(row) > groups.numel():
        return (table < level).nonzero(as_tuple=True)  # type: ignore[return-value]
    columns, alone = _members(group, table.shape[1])
    rows = row[:, None].expand_as(columns)
    here = (table[rows, columns] < level[rows, 0]) & ~alone
    return rows[here], columns[here]


def _groups(table: Tensor, extreme: Callable[..., Tensor]) -> Tensor:
    """The extreme of each group of columns, which stand so far apart that neighbours are read together; what is left
    over stands behind, each column for itself."""
    width = table.shape[1] // _GROUP
    body = table[:, : _GROUP * width].unflatten(1, (_GROUP, width))
    return torch.cat([extreme(body, 1), table[:, _GROUP * width :]], 1) if width else table


def _members(groups: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The columns of groups ``(m, 16)`` among so many, and which of them only fill up a group of a single one."""
    width = count // _GROUP
    places = torch.arange(_GROUP, device=groups.device)
    single = (groups >= width)[:, None]
    columns = torch.where(single, groups[:, None] + (_GROUP - 1) * width, groups[:, None] + width * places)
    return columns, single & (places > 0)
