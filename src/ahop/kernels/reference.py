r"""The footprint's scores in plain PyTorch: the definition that the fast kernels are held to.

.. math:: s(\xi, x) = \sum_b \sum_j u_{b,j} \, \tilde q_{b,j}, \qquad \tilde q_b = \mathrm{sort}_\downarrow(q_b)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from ahop._blocks import block_budget
from ahop.kernels.backend import Backend, Gradients, Needs, Pairs

TERMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "distance": lambda patterns, queries: -(patterns - queries).square(),
    "dot": lambda patterns, queries: patterns * queries,
    "manhattan": lambda patterns, queries: -(patterns - queries).abs(),
}
"""The per-dimension terms of the bases that kernels exist for. All treat patterns and queries alike ..."""

SLOPES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "distance": lambda mine, other: 2 * (other - mine),
    "dot": lambda mine, other: other,
    "manhattan": lambda mine, other: (other - mine).sign(),
}
"""... and so do their derivatives by the first of the two."""

KINDS = {name: kind for kind, name in enumerate(TERMS)}
"""The number by which compiled kernels know a base."""


class Reference(Backend):
    """The definition, in blocks that keep to the memory budget."""

    def scores(self, pairs: Pairs) -> Tensor:
        patterns, queries, weights, observed, bases = pairs
        (groups, count, dim), rows = patterns.shape, queries.shape[1]
        weights = _for_each_group(weights, groups)
        table = queries.new_empty(groups, rows, count)
        for g, q, p in _blocks(groups, rows, count, dim, patterns):
            mask = None if observed is None else observed[g, q]
            table[g, q, p] = _block(patterns[g, p], queries[g, q], _take(weights, g, q), mask, bases)
        return table

    def gradients(self, pairs: Pairs, slopes: Tensor, needs: Needs) -> Gradients:
        patterns, queries, weights, observed, bases = pairs
        (groups, count, dim), rows = patterns.shape, queries.shape[1]
        full = _for_each_group(weights, groups)
        to_patterns, to_queries, to_weights = (torch.zeros_like(tensor) for tensor in (patterns, queries, full))
        for g, q, p in _blocks(groups, rows, count, dim, patterns):
            ours, theirs = patterns[g, p][:, None], queries[g, q][:, :, None]
            pulls, weight, mask = slopes[g, q, p, None], _take(full, g, q), None if observed is None else observed[g, q]
            for index, base in enumerate(bases):
                best, places = _sorted(base, ours, theirs, mask)
                _take(to_weights, g, q)[:, :, index] += (best * pulls).sum(2).sum_to_size(*weight.shape[:2], dim)
                if not (needs.patterns or needs.queries):
                    continue
                # The weight of each term, back where the term came from.
                found = torch.zeros_like(best).scatter_(-1, places, (pulls * weight[:, :, None, index]).expand_as(best))
                for total, slope, others in (
                    (to_patterns[g, p], SLOPES[base](ours, theirs), 1),
                    (to_queries[g, q], SLOPES[base](theirs, ours), 2),
                ):
                    pull = slope * found
                    total += (pull if mask is None else pull.masked_fill(~mask[:, :, None], 0.0)).sum(others)
        if len(full) != len(weights):
            to_weights = to_weights.reshape(groups // len(weights), *weights.shape).sum(0)
        return needs.only(to_patterns, to_queries, to_weights)

    def sorted_terms(self, patterns: Tensor, queries: Tensor, bases: Sequence[str]) -> Tensor:
        (groups, count, dim), rows = patterns.shape, queries.shape[1]
        table = queries.new_empty(groups, rows, count, len(bases), dim)
        for g, q, p in _blocks(groups, rows, count, dim, patterns):
            for index, base in enumerate(bases):
                table[g, q, p, index] = _sorted(base, patterns[g, p][:, None], queries[g, q][:, :, None], None)[0]
        return table


def _block(patterns: Tensor, queries: Tensor, weights: Tensor, observed: Tensor | None, bases: Sequence[str]) -> Tensor:
    total = queries.new_zeros(())
    for index, base in enumerate(bases):
        best, _ = _sorted(base, patterns[:, None], queries[:, :, None], observed)
        total = total + (best @ weights[:, :, index, :, None]).squeeze(-1)
    return total


def _sorted(base: str, patterns: Tensor, queries: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor]:
    """The terms from the best to the worst, those unobserved after them, and where they came from."""
    terms = TERMS[base](patterns, queries)
    if observed is not None:
        terms = terms.masked_fill(~observed[:, :, None], torch.finfo(terms.dtype).min)
    best, places = terms.sort(dim=-1, descending=True)
    return best, places


def _blocks(groups: int, rows: int, count: int, dim: int, like: Tensor) -> Iterator[tuple[slice, slice, slice]]:
    # Numbers a pair: the terms, their sorted copy, the sort's 64-bit indices, and what masks and weights add.
    pairs = max(1, block_budget(like) // (6 * dim * like.element_size()))
    columns = min(count, pairs)
    lines = min(max(1, rows), pairs // columns)
    stack = max(1, pairs // (columns * lines))
    for g in range(0, groups, stack):
        for q in range(0, rows, lines):
            for p in range(0, count, columns):
                yield slice(g, g + stack), slice(q, q + lines), slice(p, p + columns)


def _for_each_group(weights: Tensor, groups: int) -> Tensor:
    return weights if len(weights) in (1, groups) else weights.repeat(groups // len(weights), 1, 1, 1)


def _take(tensor: Tensor, g: slice, q: slice) -> Tensor:
    """The part of something that groups, queries, or both may share."""
    return tensor[g if len(tensor) > 1 else slice(None), q if tensor.shape[1] > 1 else slice(None)]
