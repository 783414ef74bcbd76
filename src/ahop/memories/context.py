r"""What is known beside a query, a place, a mass or a class, as a prior of its own over the patterns.

.. math:: p(k \mid x) \propto \pi_k \, \pi_k(x) \, e^{\beta s(\xi_k, x)}

A pattern of prior zero is no candidate. Queries that share candidates make a group, and each group meets a memory of
these alone, so that the rest costs nothing.

That context separates memories and makes them sparse is from Context-gated associative retrieval (2026, arXiv
2605.10970). There a circuit turns a context into a gate, which the state that is retrieved moves in turn; here the
context itself is given, as a prior that stays what it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from ahop._blocks import budget, split
from ahop._checks import as_tensor, require_finite
from ahop.memories.stored import Stored

Prior = Tensor | np.ndarray | Callable[[slice], Tensor | np.ndarray]
One = TypeVar("One", bound=Stored)

# A table of so few pairs takes no longer than asking for it. Of a larger one, half are candidates at least.
_SMALL_TABLE = 2**12
# Bytes of a number with its place, and of a pair in a table.
_BYTES = 32
# Rows that are named in an error.
_NAMED = 3


class Group(NamedTuple):
    """Queries with their candidates: which queries ``(m,)``, the patterns ``(K,)`` that one of them may mean, and how
    likely each is ``(m, K)``, zero for one that this query cannot mean."""

    rows: Tensor
    kept: Tensor
    prior: Tensor

    def restrict(self, memory: One) -> One:
        """The memory as these queries see it, with a prior of each query's own."""
        some = copy.copy(memory)
        some.prior = self.prior
        if len(self.kept) < len(memory):
            some.patterns, some.similarity = memory.patterns[self.kept], memory.similarity.resized(self.kept, 0)
            some.values = None if memory.values is None else memory.values[self.kept]
            some._resized(memory.patterns, self.kept, 0)
        return some


def in_context(memory: Stored, prior: Prior, shape: torch.Size) -> Iterator[Group]:
    """All queries in groups, each with its candidates.

    Args:
        memory: What is asked; its own prior counts as well.
        prior: As in :meth:`~ahop.memories.base.AssociativeMemory.recall`.
        shape: Of the queries, without their dimensions; groups count them one after the other.
    """
    memory.require_weighing()
    for part, block in _blocks(prior, shape, len(memory)):
        if block.layout == torch.strided and 2 * int(block.count_nonzero()) >= block.numel():
            groups: Iterable[Group] = [_table(block, memory, part.start)]
        else:
            groups = _groups(_entries(block, memory, part.start), memory)
        for group in groups:
            yield group._replace(rows=part.start + group.rows)


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


def _table(block: Tensor, memory: Stored, start: int) -> Group:
    """All patterns, as queries from ``start`` on see them."""
    values = _sound(block, memory)
    # Beside the likeliest of its query, no number is too large or too small for a product.
    prior = (values / values.amax(1, keepdim=True)).nan_to_num(0.0)
    if memory.prior is not None:
        prior = prior * memory.prior
    _require_candidates(prior.count_nonzero(1), memory, start)
    rows, kept = (torch.arange(count, device=prior.device) for count in prior.shape)
    return Group(rows, kept, prior)


class _Entries(NamedTuple):
    """What a prior holds beside zeros ``(p,)``, in the order of queries: of which pattern, and how likely. And how many
    of them each query has, ``(m,)``."""

    columns: Tensor
    values: Tensor
    counts: Tensor


def _entries(block: Tensor, memory: Stored, start: int) -> _Entries:
    """The same as a list."""
    if block.layout == torch.strided:
        places = block.nonzero().mT
        values = block[places[0], places[1]]
    else:
        listed = block.to_sparse_coo().double().coalesce()
        places, values = listed.indices(), listed.values()
    values = _sound(values, memory)
    rows, columns = places.to(values.device)
    values = (values / values.new_zeros(len(block)).scatter_reduce(0, rows, values, "amax")[rows]).nan_to_num(0.0)
    if memory.prior is not None:
        values = values * memory.prior[columns]
    left = values > 0
    counts = torch.bincount(rows[left], minlength=len(block))
    _require_candidates(counts, memory, start)
    return _Entries(columns[left], values[left], counts)


def _sound(values: Tensor, memory: Stored) -> Tensor:
    values = values.to(memory.patterns.device).double()
    require_finite(values, "prior")
    if bool((values < 0).any()):
        raise ValueError(f"prior must be counts or probabilities, not negative; got {float(values.min()):.3g}")
    return values


def _require_candidates(counts: Tensor, memory: Stored, start: int) -> None:
    none = (counts == 0).nonzero().squeeze(1)
    if len(none):
        named = ", ".join(str(start + row) for row in none[:_NAMED].tolist()) + (", ..." if len(none) > _NAMED else "")
        own = "" if memory.prior is None else ", beside the memory's own"
        raise ValueError(f"prior must leave every query at least one pattern{own}; it leaves none for queries {named}")


def _groups(entries: _Entries, memory: Stored) -> Iterator[Group]:
    """Halves of the queries, and halves of these, until the candidates of one query are much like those of all."""
    first = entries.counts.cumsum(0) - entries.counts
    # Those of like candidates stand side by side.
    order = entries.columns[first].argsort(stable=True)
    counts = entries.counts[order]
    ends = counts.cumsum(0)
    rows = torch.arange(len(order), device=order.device).repeat_interleave(counts)
    places = (first[order] - ends + counts)[rows] + torch.arange(len(rows), device=order.device)
    columns, values = entries.columns[places], entries.values[places]
    starts, waiting = [0, *ends.tolist()], [(0, len(order))]
    while waiting:
        low, high = waiting.pop()
        here, count = slice(starts[low], starts[high]), high - low
        place = torch.zeros(len(memory), dtype=torch.bool, device=columns.device).index_fill(0, columns[here], True)
        kept = place.nonzero().squeeze(1)
        pairs = count * len(kept)
        fits = pairs <= max(2 * len(columns[here]), _SMALL_TABLE) and pairs * _BYTES <= budget()
        if count > 1 and not fits:
            middle = (low + high) // 2
            waiting += [(low, middle), (middle, high)]
            continue
        prior = values.new_zeros(count, len(kept))
        prior[rows[here] - low, (place.cumsum(0) - 1)[columns[here]]] = values[here]
        yield Group(order[low:high], kept, prior)
