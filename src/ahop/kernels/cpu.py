"""Footprints on the CPU: a sorting network over vector lanes, compiled by numba on first use.

The terms of up to 64 patterns with one query lie in rows, one a dimension, so that each comparator is a minimum and a
maximum of two rows: no branch, and as many pairs at once as a vector holds. See :mod:`ahop.kernels.network` for the
passes and :mod:`ahop.kernels.vectors` for the instructions.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ahop._blocks import split
from ahop.kernels import network, vectors
from ahop.kernels.backend import Backend, Gradients, Needs, Pairs
from ahop.kernels.compiled import compiled, share
from ahop.kernels.reference import KINDS

Array = npt.NDArray[Any]

# At most so many patterns side by side, and so many numbers in all rows: they stay in the nearest cache.
_MAX_LANES, _CACHED_NUMBERS = 64, 2**13
_WIRES = network.WIRES
_LOWEST = np.float32(np.finfo(np.float32).min)


def _compiled(function: Callable[..., Any], inline: str = "never") -> Any:
    # The name is the key of numba's cache on disk: another network must have another name.
    written = f"{network.row_shapes()}{inspect.getsource(vectors)}"
    function.__qualname__ += "_" + hashlib.sha256(written.encode()).hexdigest()[:12]
    return compiled(function, inline)


_inlined = partial(_compiled, inline="always")


@_compiled
def _fill(rows, block, query, dims, first, count, kind, lanes):
    """Write the terms of the observed dimensions from ``first`` on, without their sign (:func:`_turned`).

    All rows after them hold the lowest number.
    """
    for place in range(first, count):
        row, pattern, value = rows[place], block[dims[place]], query[dims[place]]
        if kind == 0:
            for lane in range(lanes):
                row[lane] = (pattern[lane] - value) * (pattern[lane] - value)
        elif kind == 1:
            for lane in range(lanes):
                row[lane] = pattern[lane] * value
        else:
            for lane in range(lanes):
                row[lane] = abs(pattern[lane] - value)
    for place in range(count, len(rows)):
        for lane in range(lanes):
            rows[place, lane] = _LOWEST


@_inlined
def _turned(place, count, kind):
    """The rank of a sorted row and the sign of its terms: of a distance, the largest comes first and is the last."""
    return (place, np.float32(1)) if kind == 1 else (count - 1 - place, np.float32(-1))


@_inlined
def _sort_rows(rows, plan, first, last, lanes):
    for step in range(first, last):
        for group in range(plan.starts[step], plan.starts[step + 1]):
            vectors.exchange(plan.shapes[step], rows, plan.offsets, group, lanes)


@_inlined
def _sort_terms(rows, block, query, dims, count, kind, plan, last, lanes):
    """The terms after all steps before ``last``."""
    # Those of a whole query are sorted by sixteen as they are made.
    filled = len(query) // _WIRES if count == len(query) else 0
    for group in range(filled):
        vectors.form(kind, rows, group * _WIRES, block, query, lanes)
    _fill(rows, block, query, dims, filled * _WIRES, count, kind, lanes)
    for group in range(filled, plan.starts[1]):
        vectors.exchange(plan.shapes[0], rows, plan.offsets, group, lanes)
    _sort_rows(rows, plan, 1, last, lanes)


@_compiled
def _order(ordered, weights, count, kinds, plan):
    """The weights of the rows of the last pass; rows that hold no terms have none."""
    for base in range(len(kinds)):
        for place in range(_WIRES * plan.starts[plan.last], plan.rows.size):
            rank, sign = _turned(plan.rows[place], count, kinds[base])
            ordered[base, place] = sign * weights[base, rank] if 0 <= rank < count else 0


@_compiled
def _score_blocks(items, blocks, queries, dims, counts, kinds, plan, weights, table):
    per_group, dim, lanes = blocks.shape[1:]
    rows, total = np.empty((dim + 1, lanes), np.float32), np.empty(lanes, np.float32)
    ordered = np.empty((len(kinds), plan.rows.size), np.float32)
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, table.shape[2] - first)
        for q in range(queries.shape[1]):
            query, count = queries[group, q], counts[group, q]
            if q == 0 or weights.shape[1] > 1 or count != counts[group, q - 1]:
                _order(ordered, weights[group % len(weights), q % weights.shape[1]], count, kinds, plan)
            total[:] = 0
            for base in range(len(kinds)):
                _sort_terms(rows, block, query, dims[group, q], count, kinds[base], plan, plan.last, lanes)
                # The last pass adds up what it sorts.
                for step in range(plan.last, plan.shapes.size):
                    for some in range(plan.starts[step], plan.starts[step + 1]):
                        vectors.gather(plan.shapes[step], rows, plan.offsets, some, ordered[base], total, lanes)
            table[group, q, first : first + width] = total[:width]


@_compiled
def _list_blocks(items, blocks, queries, dims, counts, kinds, plan, table):
    per_group, dim, lanes = blocks.shape[1:]
    rows = np.empty((dim + 1, lanes), np.float32)
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, table.shape[4] - first)
        for q in range(queries.shape[1]):
            for base in range(len(kinds)):
                _sort_terms(
                    rows, block, queries[group, q], dims[group, q], dim, kinds[base], plan, plan.shapes.size, lanes
                )
                for place in range(dim):
                    rank, sign = _turned(place, dim, kinds[base])
                    for lane in range(width):
                        table[group, q, base, rank, first + lane] = sign * rows[place, lane]


@_compiled
def _weigh_blocks(items, blocks, queries, dims, counts, kinds, plan, slopes, to_weights):
    """The gradient to the weights alone: a second forward pass."""
    per_group, dim, lanes = blocks.shape[1:]
    rows, slope = np.empty((dim + 1, lanes), np.float32), np.empty(lanes, np.float32)
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, slopes.shape[2] - first)
        for q in range(queries.shape[1]):
            own = to_weights[group % len(to_weights), q if to_weights.shape[1] > 1 else 0]
            slope[:] = 0
            slope[:width] = slopes[group, q, first : first + width]
            count = counts[group, q]
            for base in range(len(kinds)):
                _sort_terms(
                    rows, block, queries[group, q], dims[group, q], count, kinds[base], plan, plan.shapes.size, lanes
                )
                for place in range(count):
                    rank, sign = _turned(place, count, kinds[base])
                    row, pull = rows[place], np.float32(0)
                    for lane in range(lanes):
                        pull += slope[lane] * row[lane]
                    own[base, rank] += sign * pull


@_compiled
def _pull_blocks(items, blocks, queries, dims, counts, kinds, plan, weights, slopes, to_blocks, to_queries, to_weights):
    """All gradients. Each term carries its place in its lowest bits, so that after the sort its rank is known."""
    per_group, dim, lanes = blocks.shape[1:]
    rows, slope = np.empty((dim + 1, lanes), np.float32), np.empty(lanes, np.float32)
    keys = rows.view(np.int32)
    mask = np.int32(1)
    while mask < dim:
        mask *= np.int32(2)
    # A row for every place that the bits can name: numbers that are not finite may name any.
    pulls = np.zeros((mask, lanes), np.float32)
    mask -= np.int32(1)
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, slopes.shape[2] - first)
        to_block = to_blocks[group, item % per_group]
        for q in range(queries.shape[1]):
            line = q if weights.shape[1] > 1 else 0
            own, to_own = weights[group % len(weights), line], to_weights[group % len(weights), line]
            count, query, to_query = counts[group, q], queries[group, q], to_queries[group, q]
            slope[:] = 0
            slope[:width] = slopes[group, q, first : first + width]
            for base in range(len(kinds)):
                kind = kinds[base]
                _fill(rows, block, query, dims[group, q], 0, count, kind, lanes)
                for place in range(count):
                    for lane in range(lanes):
                        keys[place, lane] = (keys[place, lane] & ~mask) | np.int32(place)
                _sort_rows(rows, plan, 0, plan.shapes.size, lanes)
                for place in range(count):
                    rank, sign = _turned(place, count, kind)
                    row, weight, pull = rows[place], own[base, rank], np.float32(0)
                    for lane in range(lanes):
                        pull += slope[lane] * row[lane]
                        pulls[keys[place, lane] & mask, lane] = slope[lane] * weight
                    to_own[base, rank] += sign * pull
                for place in range(count):
                    pattern, towards, pulled = (
                        block[dims[group, q, place]],
                        to_block[dims[group, q, place]],
                        pulls[place],
                    )
                    value, back = query[dims[group, q, place]], np.float32(0)
                    if kind == 1:
                        for lane in range(lanes):
                            towards[lane] += pulled[lane] * value
                            back += pulled[lane] * pattern[lane]
                    else:
                        for lane in range(lanes):
                            gap = value - pattern[lane]
                            step = pulled[lane] * (np.float32(2) * gap if kind == 0 else np.sign(gap))
                            towards[lane] += step
                            back -= step
                    to_query[dims[group, q, place]] += back


# --- from tensors to blocks and back -----------------------------------------------------------------------


class _Plan(NamedTuple):
    """The network for one number of rows: steps of one small network each."""

    shapes: Array  # (steps,): the small networks, as numbers
    starts: Array  # (steps + 1,): the groups of step i are those from starts[i] on
    offsets: Array  # (groups, 16): where the rows of a group begin
    last: int  # the steps from here on are those of the last pass
    rows: Array  # (16 * groups,): which rows they are


class _Problem(NamedTuple):
    """What all kernels take, by the names of their arguments."""

    blocks: Array  # (G, blocks, d, lanes): patterns side by side
    queries: Array  # (G, Q, d)
    dims: Array  # (G, Q, d): the observed dimensions of each query, before the others
    counts: Array  # (G, Q): how many they are
    kinds: Array  # (B,): the bases, as numbers
    plan: _Plan

    def share(self, work: Callable[..., None]) -> None:
        """Call ``work(part, items=..., blocks=..., ...)`` on ranges of blocks, one for each thread."""
        common, count = self._asdict(), self.blocks.shape[0] * self.blocks.shape[1]
        share(count, lambda first, last, part: work(part, items=(first, last), **common))


class Cpu(Backend):
    """Sorting networks over vector lanes, blocks of patterns shared out among PyTorch's threads."""

    def scores(self, pairs: Pairs) -> Tensor:
        problem, own = _prepare(pairs.patterns, pairs.queries, pairs.observed, pairs.bases), _array(pairs.weights)
        table = np.empty((*pairs.queries.shape[:2], pairs.patterns.shape[1]), np.float32)
        problem.share(lambda part, **common: _score_blocks(**common, weights=own, table=table))
        return torch.from_numpy(table)

    def sorted_terms(self, patterns: Tensor, queries: Tensor, bases: Sequence[str]) -> Tensor:
        problem = _prepare(patterns, queries, None, bases)
        # Patterns lie next to each other, as in the blocks they come from.
        table = np.empty((*queries.shape[:2], len(bases), patterns.shape[2], patterns.shape[1]), np.float32)
        problem.share(lambda part, **common: _list_blocks(**common, table=table))
        return torch.from_numpy(table).movedim(-1, 2)

    def gradients(self, pairs: Pairs, slopes: Tensor, needs: Needs) -> Gradients:
        """See :meth:`ahop.kernels.backend.Backend.gradients`.

        Where patterns or queries need one, terms closer than about d parts in 2^23 may change places, which a smooth u
        does not feel, and the gradient to the weights is as exact as that; alone, it is made from the terms themselves.
        """
        patterns, queries, weights, observed, bases = pairs
        # Blocks are shared out among the threads; what several of them add to, each has a copy of. If these were too
        # large together, some queries are done at a time.
        threads = torch.get_num_threads()
        numbers = threads * len(patterns) * patterns.shape[2] * (1 + pairs.separate * len(bases))
        pieces = split(queries.shape[1], numbers * patterns.element_size())
        if len(pieces) > 1:
            parts = zip(*(self.gradients(pairs.some(piece), slopes[:, piece], needs) for piece in pieces), strict=True)
            joins = (sum, partial(torch.cat, dim=1), partial(torch.cat, dim=1) if pairs.separate else sum)
            joined = zip(joins, parts, needs, strict=True)
            return Gradients(*(join(part) if needed else None for join, part, needed in joined))
        problem, own, pulls = _prepare(patterns, queries, observed, bases), _array(weights), _array(slopes)
        to_weights = np.zeros((threads, *weights.shape), np.float32)
        if not (needs.patterns or needs.queries):
            # All that a fit needs, at half the price.
            problem.share(lambda part, **common: _weigh_blocks(**common, slopes=pulls, to_weights=to_weights[part]))
            return Gradients(None, None, torch.from_numpy(to_weights.sum(0)))
        to_blocks, to_queries = np.zeros_like(problem.blocks), np.zeros((threads, *queries.shape), np.float32)
        problem.share(
            lambda part, **common: _pull_blocks(
                **common,
                weights=own,
                slopes=pulls,
                to_blocks=to_blocks,
                to_queries=to_queries[part],
                to_weights=to_weights[part],
            )
        )
        to_patterns = torch.from_numpy(to_blocks).transpose(2, 3).flatten(1, 2)[:, : patterns.shape[1]].contiguous()
        return needs.only(to_patterns, torch.from_numpy(to_queries.sum(0)), torch.from_numpy(to_weights.sum(0)))


def _prepare(patterns: Tensor, queries: Tensor, observed: Tensor | None, bases: Sequence[str]) -> _Problem:
    groups, count, dim = patterns.shape
    # Narrower blocks where there would be too few for all threads, and blocks of like size in a group.
    most = max(1, min(_MAX_LANES, _CACHED_NUMBERS // dim, -(-groups * count // torch.get_num_threads())))
    lanes = 16 * -(-count // (16 * -(-count // most)))
    padded = torch.nn.functional.pad(patterns.detach(), (0, 0, 0, -count % lanes))
    blocks = padded.unflatten(1, (-1, lanes)).transpose(2, 3).contiguous().numpy()
    if observed is None:
        dims = np.broadcast_to(np.arange(dim), queries.shape)
        counts = np.full(queries.shape[:2], dim)
    else:
        dims = observed.to(torch.uint8).argsort(dim=-1, descending=True, stable=True).numpy()
        counts = observed.sum(-1).numpy()
    kinds = np.array([KINDS[base] for base in bases], np.int64)
    return _Problem(blocks, _array(queries), dims.copy(), counts, kinds, _plan(dim, lanes))


@lru_cache(maxsize=64)
def _plan(dim: int, lanes: int) -> _Plan:
    passes = network.row_passes(dim)
    if len(passes) == 1:
        # Where one pass sorts all, the last one has only to add up.
        passes.append({(): [*chain(*passes[0].values())]})
    steps = [(shape, groups) for one in passes for shape, groups in one.items() if groups]
    starts = np.cumsum([0, *(len(groups) for _, groups in steps)], dtype=np.int64)
    rows = np.array([group for _, groups in steps for group in groups], np.int64)
    last = len(steps) - sum(map(bool, passes[-1].values()))
    shapes = np.array([network.row_shapes().index(shape) for shape, _ in steps], np.int64)
    return _Plan(shapes, starts, rows * lanes, last, rows.flatten())


def _array(tensor: Tensor) -> Array:
    return np.ascontiguousarray(tensor.detach().numpy())
