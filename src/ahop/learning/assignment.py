r"""The single best assignment of queries to patterns that have room for so many of them each.

.. math:: \max \sum_i w_{i, a(i)} \quad\text{so that}\quad |\{i : a(i) = j\}| \le r_j

A table of all pairs is solved exactly, by SciPy. Where it does not fit the memory budget, each query brings its best
candidates alone. Whatever is outside them is worth no more than the next one: if no query would rather go outside, this
is the best assignment of all; those that would are assigned among what has room left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ahop._blocks import budget, split

# Bytes that an entry takes in a table, and in a graph with its place.
_ENTRY_BYTES, _EDGE_BYTES = 8, 16


def assigned(
    worth: Tensor, columns: Tensor, room: Tensor, every: Callable[[Tensor], Tensor], floor: float = -np.inf
) -> Tensor:
    """The column of each query, -1 for one that is left out.

    Args:
        worth: Of the best candidates of each query, best first.
        columns: The candidates.
        room: How many queries each column takes.
        every: What all columns are worth to some of the queries, ``(q,)`` to ``(q, m)``.
        floor: What it is worth to be left out; by default, nobody is for whom there is room.

    Shape:
        worth and columns ``(n, k)``, room ``(m,)`` to ``(n,)``; all on the CPU.

    Example:
        >>> table = torch.tensor([[3.0, 2.0, 0.0], [3.0, 0.0, 1.0]])
        >>> worth, columns = table.sort(1, descending=True)
        >>> assigned(worth, columns, torch.ones(3, dtype=torch.long), lambda rows: table[rows])
        tensor([1, 0])
    """
    found = torch.where(worth[:, 0] < floor, -1, columns[:, 0])
    if bool((_used(found, len(room)) <= room).all()):
        return found
    found = torch.full_like(found, -1)
    if len(worth) * _width(room, len(worth)) > budget():
        found = _among_candidates(worth, columns, room, floor)
    left = (found < 0).nonzero().squeeze(1)
    for part in split(len(left), _width(room, len(left))):
        rows = left[part]
        free = (room - _used(found, len(room))).clamp_max(len(rows))
        found[rows] = _exactly(every(rows), free, floor)
    return found


def _width(room: Tensor, count: int) -> int:
    """The bytes that a query takes in a table of so many."""
    return _ENTRY_BYTES * max(len(room), int(room.clamp_max(count).sum()))


def _exactly(table: Tensor, room: Tensor, floor: float) -> Tensor:
    from scipy.optimize import linear_sum_assignment

    seats = torch.arange(len(room)).repeat_interleave(room)
    # Nobody gains by a seat below the floor, so all of those are alike, and given up after.
    rows, chosen = linear_sum_assignment(table[:, seats].clamp_min(floor).numpy(), maximize=True)
    found = torch.full((len(table),), -1)
    found[torch.from_numpy(rows)] = seats[torch.from_numpy(chosen)]
    kept = table.gather(1, found.clamp_min(0)[:, None]).squeeze(1) >= floor
    return torch.where(kept, found, -1)


def _among_candidates(worth: Tensor, columns: Tensor, room: Tensor, floor: float) -> Tensor:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    count, kept = len(worth), _fitting(columns, room)
    # The best that is not kept bounds what the rest is worth. The index may know of fewer candidates.
    bound = worth[:, : kept + 1].masked_fill(worth[:, : kept + 1].isinf(), np.inf).amin(1).clamp_min(floor)
    possible = worth[:, :kept].isfinite()
    rows, own, values = possible.nonzero()[:, 0], columns[:, :kept][possible], worth[:, :kept][possible]
    copies = torch.minimum(_used(own, len(room)), room)
    first = copies.cumsum(0) - copies
    # One edge to each seat of a candidate, and one to a place of the query's own outside.
    times = copies[own]
    seats = torch.arange(int(times.sum())) + (first[own] - times.cumsum(0) + times).repeat_interleave(times)
    heads = torch.cat([rows.repeat_interleave(times), torch.arange(count)])
    tails = torch.cat([seats, int(copies.sum()) + torch.arange(count)])
    values = torch.cat([values.repeat_interleave(times), bound])
    # A weight of zero would be no edge.
    costs, shape = values.amax() - values + 1.0, (count, int(copies.sum()) + count)
    graph = csr_array((costs.numpy(), (heads.numpy(), tails.numpy())), shape=shape)
    _, chosen = min_weight_full_bipartite_matching(graph)
    pattern = torch.cat([torch.arange(len(room)).repeat_interleave(copies), torch.full((count,), -1)])
    return pattern[torch.from_numpy(chosen).long()]


def _fitting(columns: Tensor, room: Tensor) -> int:
    """How many candidates of each query fit the budget, the last of all left out; each has an edge to every seat."""
    kept = columns.shape[1] - 1
    while kept:
        asked = _used(columns[:, :kept].flatten(), len(room))
        needed = _EDGE_BYTES * int((asked * torch.minimum(asked, room)).sum())
        if needed <= budget():
            break
        if kept == 1:
            raise ValueError(
                f"room must be smaller for so many queries: their assignment takes {needed:,} bytes, and memory_budget "
                f"allows {budget():,}"
            )
        kept //= 2
    return kept


def _used(columns: Tensor, count: int) -> Tensor:
    """How many there are of each column, those that are none left out."""
    return torch.bincount(columns[columns >= 0], minlength=count)
