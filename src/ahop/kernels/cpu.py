"""Footprints on the CPU: a sorting network over vector lanes, compiled by numba on first use.

The terms of up to 128 patterns with one query lie in rows, one a dimension, so that each comparator is a minimum and a
maximum of two rows: no branch, and as many pairs at once as a vector holds. See :mod:`ahop.kernels.network` for the
passes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ahop._blocks import split
from ahop.kernels import network
from ahop.kernels.backend import Backend, Gradients, Needs, Pairs
from ahop.kernels.compiled import compiled, share
from ahop.kernels.reference import KINDS

Array = npt.NDArray[Any]

_LANES = 128
_SPARE = network.SPARE
_LOWEST = np.float32(np.finfo(np.float32).min)


def _render() -> str:
    """The text of ``sort_rows``: one loop over the vector lanes for each small network of the data."""
    lines = ["def sort_rows(rows, shapes, starts, table, lanes):", "    for step in range(shapes.size):"]
    for index, comparators in enumerate(network.SHAPES.values()):
        wires = range(1 + max(high for _, high in comparators))
        lines.append(f"        if shapes[step] == {index}:")
        lines.append("            for group in range(starts[step], starts[step + 1]):")
        lines += [f"                row{wire} = rows[table[group, {wire}]]" for wire in wires]
        lines.append("                for lane in range(lanes):")
        lines += [f"                    x{wire} = row{wire}[lane]" for wire in wires]
        for i, j in comparators:
            larger, smaller = f"x{i} if x{i} > x{j} else x{j}", f"x{j} if x{i} > x{j} else x{i}"
            lines.append(f"                    x{i}, x{j} = {larger}, {smaller}")
        lines += [f"                    row{wire}[lane] = x{wire}" for wire in wires]
    return "\n".join(lines)


_TEXT = _render()


def _compiled(function: Callable[..., Any]) -> Any:
    # The name is the key of numba's cache on disk: another network must have another name.
    function.__qualname__ += "_" + hashlib.sha256(f"{_TEXT}{_SPARE}".encode()).hexdigest()[:12]
    return compiled(function)


def _made() -> Callable[..., None]:
    # Said to be of this file and module, because that is where numba keeps its cache and looks for it.
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(_TEXT, __file__, "exec"), namespace)
    return namespace["sort_rows"]


_sort_rows = _compiled(_made())


@_compiled
def _fill(rows, block, query, dims, count, kind, lanes):
    """Write the terms of the observed dimensions; all rows after them, the spare ones too, hold the lowest number."""
    for place in range(count):
        row, pattern, value = rows[place], block[dims[place]], query[dims[place]]
        if kind == 0:
            for lane in range(lanes):
                row[lane] = -(pattern[lane] - value) * (pattern[lane] - value)
        elif kind == 1:
            for lane in range(lanes):
                row[lane] = pattern[lane] * value
        else:
            for lane in range(lanes):
                row[lane] = -abs(pattern[lane] - value)
    rows[count:] = _LOWEST


@_compiled
def _score_blocks(items, blocks, queries, dims, counts, kinds, plan, weights, table):
    per_group, dim, lanes = blocks.shape[1:]
    rows, total = np.empty((dim + _SPARE, lanes), np.float32), np.empty(lanes, np.float32)
    shapes, starts, network = plan
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, table.shape[2] - first)
        for q in range(queries.shape[1]):
            own = weights[group % len(weights), q if weights.shape[1] > 1 else 0]
            total[:] = 0
            for base in range(len(kinds)):
                _fill(rows, block, queries[group, q], dims[group, q], counts[group, q], kinds[base], lanes)
                _sort_rows(rows, shapes, starts, network, lanes)
                for rank in range(counts[group, q]):
                    row, weight = rows[rank], own[base, rank]
                    for lane in range(lanes):
                        total[lane] += weight * row[lane]
            table[group, q, first : first + width] = total[:width]


@_compiled
def _list_blocks(items, blocks, queries, dims, counts, kinds, plan, table):
    per_group, dim, lanes = blocks.shape[1:]
    rows = np.empty((dim + _SPARE, lanes), np.float32)
    shapes, starts, network = plan
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, table.shape[4] - first)
        for q in range(queries.shape[1]):
            for base in range(len(kinds)):
                _fill(rows, block, queries[group, q], dims[group, q], dim, kinds[base], lanes)
                _sort_rows(rows, shapes, starts, network, lanes)
                table[group, q, base, :, first : first + width] = rows[:dim, :width]


@_compiled
def _weigh_blocks(items, blocks, queries, dims, counts, kinds, plan, slopes, to_weights):
    """The gradient to the weights alone: a second forward pass."""
    per_group, dim, lanes = blocks.shape[1:]
    rows, slope = np.empty((dim + _SPARE, lanes), np.float32), np.empty(lanes, np.float32)
    shapes, starts, network = plan
    for item in range(items[0], items[1]):
        group, first = item // per_group, item % per_group * lanes
        block, width = blocks[group, item % per_group], min(lanes, slopes.shape[2] - first)
        for q in range(queries.shape[1]):
            own = to_weights[group % len(to_weights), q if to_weights.shape[1] > 1 else 0]
            slope[:] = 0
            slope[:width] = slopes[group, q, first : first + width]
            for base in range(len(kinds)):
                _fill(rows, block, queries[group, q], dims[group, q], counts[group, q], kinds[base], lanes)
                _sort_rows(rows, shapes, starts, network, lanes)
                for rank in range(counts[group, q]):
                    row, pull = rows[rank], np.float32(0)
                    for lane in range(lanes):
                        pull += slope[lane] * row[lane]
                    own[base, rank] += pull


@_compiled
def _pull_blocks(items, blocks, queries, dims, counts, kinds, plan, weights, slopes, to_blocks, to_queries, to_weights):
    """All gradients. Each term carries its place in its lowest bits, so that after the sort its rank is known."""
    per_group, dim, lanes = blocks.shape[1:]
    rows, slope = np.empty((dim + _SPARE, lanes), np.float32), np.empty(lanes, np.float32)
    keys = rows.view(np.int32)
    shapes, starts, network = plan
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
                _fill(rows, block, query, dims[group, q], count, kind, lanes)
                for place in range(count):
                    for lane in range(lanes):
                        keys[place, lane] = (keys[place, lane] & ~mask) | np.int32(place)
                _sort_rows(rows, shapes, starts, network, lanes)
                for rank in range(count):
                    row, weight, pull = rows[rank], own[base, rank], np.float32(0)
                    for lane in range(lanes):
                        pull += slope[lane] * row[lane]
                        pulls[keys[rank, lane] & mask, lane] = slope[lane] * weight
                    to_own[base, rank] += pull
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


class _Problem(NamedTuple):
    """What all kernels take, by the names of their arguments."""

    blocks: Array  # (G, blocks, d, lanes): patterns side by side
    queries: Array  # (G, Q, d)
    dims: Array  # (G, Q, d): the observed dimensions of each query, before the others
    counts: Array  # (G, Q): how many they are
    kinds: Array  # (B,): the bases, as numbers
    plan: tuple[Array, Array, Array]  # the network: the shape of each pass, where its groups start, their rows

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
    most = max(1, min(_LANES, -(-groups * count // torch.get_num_threads())))
    lanes = 16 * -(-count // (16 * -(-count // most)))
    padded = torch.nn.functional.pad(patterns.detach(), (0, 0, 0, -count % lanes))
    blocks = padded.unflatten(1, (-1, lanes)).transpose(2, 3).contiguous().numpy()
    if observed is None:
        dims = np.broadcast_to(np.arange(dim), queries.shape)
        counts = np.full(queries.shape[:2], dim)
    else:
        dims = observed.to(torch.uint8).argsort(dim=-1, descending=True, stable=True).numpy()
        counts = observed.sum(-1).numpy()
    kinds = np.array([KINDS[base] for base in bases])
    return _Problem(blocks, _array(queries), dims.copy(), counts, kinds, _plan(dim))


@lru_cache(maxsize=64)
def _plan(dim: int) -> tuple[Array, Array, Array]:
    passes = [step for stage in network.row_stages(dim) for step in stage if step.groups]
    names = list(network.SHAPES)
    shapes = np.array([names.index(step.shape) for step in passes], np.int64)
    starts = np.cumsum([0, *(len(step.groups) for step in passes)])
    table = np.zeros((starts[-1], 8), np.int64)
    for step, start in zip(passes, starts, strict=False):
        rows = np.array(step.groups)
        table[start : start + len(rows), : rows.shape[1]] = rows
    return shapes, starts, table


def _array(tensor: Tensor) -> Array:
    return np.ascontiguousarray(tensor.detach().numpy())
