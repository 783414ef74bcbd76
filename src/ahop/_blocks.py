"""Work on every (query, pattern) pair without holding all pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ahop._setting import SetHere, Setting

MEBIBYTE = 2**20
_budget = Setting(256 * MEBIBYTE)
# A block that stays in the processor's cache is worked on several times faster than one that does not.
_CPU_BLOCK = 8 * MEBIBYTE


@contextmanager
def memory_budget(bytes: int) -> Iterator[None]:
    """Bound the largest temporary tensor of (queries x patterns x dims) that scoring may make.

    The default is 256 MiB. It holds for every similarity and any number of patterns; smaller is slower. Other threads
    have a budget of their own.

    Example:
        >>> memory = ahop.ModernHopfield(torch.eye(4))
        >>> with ahop.memory_budget(64 * 2**20):
        ...     indices = memory.recall(torch.eye(4)).indices
    """
    if bytes < MEBIBYTE:
        raise ValueError(f"bytes must be at least 1 MiB ({MEBIBYTE}), got {bytes}")
    with _budget.set_to(bytes):
        yield


def budget() -> int:
    """The bytes that one temporary tensor may take now."""
    return _budget.value


# What torch.compile cannot follow, it asks for once: compiled code keeps to the budget it was compiled under. Said in
# this way because torch.compiler.assume_constant_result imports the compiler, which takes two seconds.
budget._dynamo_marked_constant = True  # type: ignore[attr-defined]


def block_budget(like: Tensor) -> int:
    """The bytes that a block of pairs may take on this tensor's device."""
    return budget() if like.is_cuda else min(budget(), _CPU_BLOCK)


def split(count: int, bytes_each: int) -> list[slice]:
    """Cut ``count`` rows of ``bytes_each`` into the fewest slices that keep to the budget."""
    size = max(1, budget() // max(1, bytes_each))
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def parts_of(make: Callable[[slice], Tensor], count: int, bytes_each: int) -> Callable[[], Iterator[Tensor]]:
    """A table to go over several times, some rows at a time: kept where the budget has room for all of it, and made
    again each time where it has not.

    Args:
        make: Gives some rows of the table, by their slice.
        count: The number of rows.
        bytes_each: The bytes that a row needs.

    Returns:
        A function that gives the parts anew each time it is called.

    Example:
        >>> tables = parts_of(lambda part: torch.eye(4)[part], 4, 16)
        >>> [sum(float(rows.sum()) for rows in tables()) for _ in range(2)]
        [4.0, 4.0]
    """
    parts = split(count, bytes_each)
    whole = make(parts[0]) if len(parts) == 1 else None
    return lambda: (make(part) if whole is None else whole for part in parts)


def pairwise(
    function: Callable[..., Tensor],
    patterns: Tensor,
    queries: Tensor,
    *,
    width: int,
    per_pattern: tuple[Tensor | None, ...] = (),
    per_query: tuple[Tensor | None, ...] = (),
    learned: Iterable[Tensor] = (),
) -> Tensor:
    """Fill a (queries x patterns) table block by block.

    Args:
        function: Called with blocks of a few patterns and queries, and the rows of the further tensors that belong to
            them.
        patterns, queries: What is compared.
        width: How many numbers ``function`` holds for each pair; blocks are as large as the budget allows.
        per_pattern: Further tensors with a row for each pattern, or None in place of one.
        per_query: The same for queries.
        learned: The tensors that ``function`` uses besides its arguments and that may need a gradient: under autograd
            each block is computed again in the backward pass instead of kept.

    Shape:
        patterns ``(..., N, d)``, queries ``(..., Q, d)`` to ``(..., Q, N)``. ``function`` meets one leading dimension
        at the most; ``per_pattern`` has none.
    """
    pairs = max(1, block_budget(patterns) // (width * patterns.element_size()))
    if patterns.ndim > 2:
        return _many_tables(function, pairs, patterns, queries, width, per_pattern, per_query, tuple(learned))
    columns = min(len(patterns), pairs)
    rows = max(1, pairs // max(1, columns))

    learning = _learning(patterns, queries, *per_pattern, *per_query, *learned)

    def block(q: int, p: int) -> Tensor:
        inputs = [patterns[p : p + columns], queries[q : q + rows]]
        extras = [t if t is None else t[p : p + columns] for t in per_pattern]
        extras += [t if t is None else t[q : q + rows] for t in per_query]
        return _run(function, learning, *inputs, *extras)

    if learning:
        lines = [
            torch.cat([block(q, p) for p in range(0, len(patterns), columns)], dim=1)
            for q in range(0, len(queries), rows)
        ]
        return torch.cat(lines) if lines else queries.new_empty(0, len(patterns))

    table = queries.new_empty(len(queries), len(patterns))
    for q in range(0, len(queries), rows):
        for p in range(0, len(patterns), columns):
            table[q : q + rows, p : p + columns] = block(q, p)
    return table


def of_pairs(
    function: Callable[..., Tensor],
    patterns: Tensor,
    queries: Tensor,
    rows: Tensor,
    columns: Tensor,
    *,
    width: int,
    per_query: tuple[Tensor | None, ...] = (),
) -> Tensor:
    """Some entries of the table that :func:`pairwise` fills.

    Args:
        function: Called with a row of patterns and one of queries for each pair, and the rows of ``per_query``.
        patterns, queries: ``(..., N, d)`` and ``(..., Q, d)``.
        rows, columns: Where in the table, ``(m,)`` both, with all leading dimensions laid out below each other.
        width: How many numbers ``function`` holds for each pair.
        per_query: Further tensors with a row for each query, or None in place of one.

    Shape:
        ``(m,)``.
    """
    learning, count = _learning(patterns, queries, *per_query), queries.shape[-2]
    stored = columns if patterns.ndim == 2 else columns + rows // count * patterns.shape[-2]
    patterns, queries = patterns.flatten(0, -2), queries.flatten(0, -2)
    extras = [t if t is None else t.flatten(0, -2) for t in per_query]

    def some(part: slice) -> Tensor:
        own = [t if t is None else t[rows[part]] for t in extras]
        return _run(function, learning, patterns[stored[part]], queries[rows[part]], *own)

    step = max(1, block_budget(patterns) // (width * patterns.element_size()))
    parts = [some(slice(start, start + step)) for start in range(0, len(rows), step)]
    return torch.cat(parts) if parts else queries.new_empty(0)


def _many_tables(
    function: Callable[..., Tensor],
    pairs: int,
    patterns: Tensor,
    queries: Tensor,
    width: int,
    per_pattern: tuple[Tensor | None, ...],
    per_query: tuple[Tensor | None, ...],
    learned: tuple[Tensor, ...],
) -> Tensor:
    """As many whole tables at a time as fit the budget; one after another, in blocks, where not even one does."""
    shape, last = (*queries.shape[:-1], patterns.shape[-2]), queries.ndim - 3
    patterns, queries = patterns.flatten(0, last), queries.flatten(0, last)
    extras = [t if t is None else t.flatten(0, last) for t in per_query]
    at_once = pairs // max(1, queries.shape[1] * patterns.shape[1])
    learning = _learning(patterns, queries, *per_pattern, *per_query, *learned)

    def tables(part: slice) -> Tensor:
        own = [t if t is None else t[part] for t in extras]
        return _run(function, learning, patterns[part], queries[part], *per_pattern, *own)

    def table(place: int) -> Tensor:
        own = tuple(t if t is None else t[place] for t in extras)
        one, asked = patterns[place], queries[place]
        return pairwise(function, one, asked, width=width, per_pattern=per_pattern, per_query=own, learned=learned)

    if at_once:
        found = [tables(slice(start, start + at_once)) for start in range(0, len(queries), at_once)]
    else:
        found = [table(place)[None] for place in range(len(queries))]
    return torch.cat(found).reshape(shape) if found else queries.new_empty(shape)


def _learning(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _run(function: Callable[..., Tensor], learning: bool, *inputs: Tensor | None) -> Tensor:
    """Keep nothing of a block for the backward pass but its inputs."""
    if not learning:
        return function(*inputs)
    if torch.compiler.is_compiling():
        return checkpoint(function, *inputs, use_reentrant=False)
    here = SetHere()

    def alike(*inputs: Tensor | None) -> Tensor:
        # Another thread may run the backward pass.
        with here.taken_over():
            return function(*inputs)

    return checkpoint(alike, *inputs, use_reentrant=False)
