r"""What is known beside a query, as a prior of its own: a place, a mass or a class makes patterns rarer, or rules them out.

.. math:: p(k \mid x) \propto \pi_k \, \pi_k(x) \, e^{\beta s(\xi_k, x)}

A pattern of prior zero is no candidate. Queries that share candidates make a group, and each group meets a memory of
these alone, so that the rest costs nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ahop._blocks import budget, split
from ahop._checks import as_tensor, require_finite
from ahop.memories.stored import Stored

Prior = Tensor | np.ndarray | Callable[[slice], Tensor | np.ndarray]
One = TypeVar("One", bound=Stored)

# A table of so few pairs takes no longer than asking for it. In a larger one, candidates are half of the pairs at least.
_FEW = 2**12
# Bytes of a number with its place, and of a pair in a table.
_BYTES = 32
# Rows that are named in an error.
_NAMED = 3


class Seen(NamedTuple):
    """What some of the queries see: which queries ``(m,)``, the patterns ``(K,)`` that one of them may mean, and how
    likely each is ``(m, K)``, zero for one that this query cannot mean."""

    rows: Tensor
    kept: Tensor
    prior: Tensor

    def of(self, memory: One) -> One:
        """The memory as these queries see it, with a prior of each query's own."""
        some = copy.copy(memory)
        some.prior = self.prior
        if len(self.kept) < len(memory):
            some.patterns, some.similarity = memory.patterns[self.kept], memory.similarity.resized(self.kept, 0)
            some.values = None if memory.values is None else memory.values[self.kept]
        return some


def in_context(memory: Stored, prior: Prior, shape: torch.Size) -> Iterator[Seen]:
    """All queries in groups, each with its candidates.

    Args:
        memory: What is asked; its own prior counts as well.
        prior: As in :meth:`~ahop.memories.base.AssociativeMemory.recall`.
        shape: Of the queries, without their dimensions; groups count them one after the other.
    """
    memory.require_probabilities()
    for part, block in _blocks(prior, shape, len(memory)):
        for seen in _groups(_entries(block, memory, part.start), len(block), len(memory)):
            yield seen._replace(rows=part.start + seen.rows)


def _blocks(prior: Prior, shape: torch.Size, patterns: int) -> Iterator[tuple[slice, Tensor]]:
    """The prior ``(m, N)`` of some queries after the other, in bounded memory."""
    queries = shape.numel()
    parts = split(queries, _BYTES * patterns)
    if callable(prior):
        for part in parts:
            yield part, _checked(prior(part), (part.stop - part.start, patterns))
    elif isinstance(prior, Tensor) and prior.layout != torch.strided:
        table = _checked(prior, (queries, patterns))
        # As long as its candidates are many, all of which the caller holds.
        yield from [(slice(0, queries), table)] if queries else []
    else:
        table = _checked(prior, (*shape, patterns)).reshape(queries, patterns)
        yield from ((part, table[part]) for part in parts)


def _checked(prior: Any, shape: tuple[int, ...]) -> Tensor:
    table = as_tensor(prior, "prior", whole=True).detach()
    if table.shape != shape:
        raise ValueError(
            f"prior must be one number for each query and pattern, shape {shape}, got shape {tuple(table.shape)}"
        )
    return table


class _Entries(NamedTuple):
    """What a prior holds beside zeros ``(p,)``: of which query, of which pattern, and how likely; in this order."""

    rows: Tensor
    columns: Tensor
    values: Tensor


def _entries(block: Tensor, memory: Stored, start: int) -> _Entries:
    """The candidates of some queries, the first of which is ``start``, by this prior and the memory's own."""
    if block.layout == torch.strided:
        places = block.nonzero().mT
        values = block[places[0], places[1]].double()
    else:
        listed = block.to_sparse_coo().double().coalesce()
        places, values = listed.indices(), listed.values()
    require_finite(values, "prior")
    if bool((values < 0).any()):
        raise ValueError(f"prior must be counts or probabilities, not negative; got {float(values.min()):.3g}")
    (rows, columns), values = places.to(memory.patterns.device), values.to(memory.patterns.device)
    # Beside the likeliest of its query, no product is too large or too small.
    top = values.new_zeros(len(block)).scatter_reduce(0, rows, values, "amax")
    values = (values / top[rows]).nan_to_num(0.0)
    if memory.prior is not None:
        values = values * memory.prior[columns]
    left = values > 0
    none = (torch.bincount(rows[left], minlength=len(block)) == 0).nonzero().squeeze(1)
    if len(none):
        named = ", ".join(str(start + row) for row in none[:_NAMED].tolist()) + (", ..." if len(none) > _NAMED else "")
        own = "" if memory.prior is None else ", beside the memory's own"
        raise ValueError(f"prior must leave every query a pattern{own}; it leaves none to queries {named}")
    return _Entries(rows[left], columns[left], values[left])


def _groups(entries: _Entries, queries: int, patterns: int) -> Iterator[Seen]:
    """Halves of the queries, and halves of these, until the candidates of one query are much like those of all."""
    counts = torch.bincount(entries.rows, minlength=queries)
    # Those of like candidates stand side by side.
    order = entries.columns[counts.cumsum(0) - counts].argsort(stable=True)
    rank = torch.empty_like(order).index_copy(0, order, torch.arange(queries, device=order.device))
    by_rank = rank[entries.rows].argsort(stable=True)
    rows, columns, values = rank[entries.rows[by_rank]], entries.columns[by_rank], entries.values[by_rank]
    starts = [0, *counts[order].cumsum(0).tolist()]
    waiting = [(0, queries)]
    while waiting:
        low, high = waiting.pop()
        here, count = slice(starts[low], starts[high]), high - low
        place = torch.zeros(patterns, dtype=torch.bool, device=columns.device).index_fill(0, columns[here], True)
        kept = place.nonzero().squeeze(1)
        pairs = count * len(kept)
        fits = pairs <= max(2 * len(columns[here]), _FEW) and pairs * _BYTES <= budget()
        if count > 1 and not fits:
            waiting += [(low, (low + high) // 2), ((low + high) // 2, high)]
            continue
        prior = values.new_zeros(count, len(kept))
        prior[rows[here] - low, (place.cumsum(0) - 1)[columns[here]]] = values[here]
        yield Seen(order[low:high], kept, prior)
