r"""Squared distances of all pairs: by a matrix product, and by differences wherever that loses their digits.

.. math:: \lVert \xi - x \rVert^2 = \lVert \xi - c \rVert^2 + \lVert x - c \rVert^2 - 2 (\xi - c)^\top (x - c)

The right-hand side is one matrix product, but as exact as its largest part alone: where patterns lie in groups far
apart, what tells those of one group from each other is lost in it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop._blocks import of_pairs, pairwise
from ahop._component import single
from ahop._extremes import below
from ahop._precision import can_look
from ahop._queries import Queries

# A product is trusted where the distance is at least this share of what was taken from each other, in up to 256
# dimensions: a dozen bits of it are then right, and thirty in float64.
_TRUSTED_SHARE = {torch.float32: 2**-8, torch.float64: 2**-20}
# The share of itself that the difference of two distances may be wrong by in float32.
ROUNDING = 2**-11
# Of more pairs than this, differences are faster taken of all than of some.
_SPARSE_SHARE = 1 / 8


def squared_distances(patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
    """The squared distance of every query to every pattern, over the dimensions that the query observed.

    Args:
        patterns, queries: What is compared.
        observed: Which entries of the queries count; None is all.

    Shape:
        patterns ``(..., N, d)``, queries and observed ``(..., Q, d)``, to ``(..., Q, N)``.
    """
    dtype = queries.dtype
    patterns, queries = single(patterns), single(queries)
    with torch.autocast(queries.device.type, enabled=False):
        if not can_look(queries):
            # Where no choice can depend on numbers, twice as many digits are held throughout.
            wide = _by_product(patterns.double(), queries.double(), observed)[0].clamp_min(0)
            return wide.to(dtype)
        table, stored, own = _by_product(patterns, queries, observed)
        return _mended(table, stored, own, patterns, queries, observed).to(dtype)


def _by_product(patterns: Tensor, queries: Tensor, observed: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The squares; and those of patterns ``(..., 1, N)`` and queries ``(..., Q, 1)`` by themselves."""
    # Around the patterns' mean, so that a common offset costs no digits.
    centre = patterns.detach().mean(-2, keepdim=True)
    patterns, queries = patterns - centre, queries - centre
    one = torch.ones_like(patterns[..., :1])
    if observed is None:
        own, stored = queries.square().sum(-1, keepdim=True), patterns.square().sum(-1, keepdim=True)
        asked = torch.cat([-2 * queries, own, torch.ones_like(own)], -1)
        return asked @ torch.cat([patterns, one, stored], -1).mT, stored.squeeze(-1).unsqueeze(-2), own
    mask = observed.to(queries.dtype)
    queries, squares = queries * mask, patterns.square()
    own = queries.square().sum(-1, keepdim=True)
    table = torch.cat([-2 * queries, own, mask], -1) @ torch.cat([patterns, one, squares], -1).mT
    return table, squares.sum(-1).unsqueeze(-2), own


def _mended(
    table: Tensor, stored: Tensor, own: Tensor, patterns: Tensor, queries: Tensor, observed: Tensor | None
) -> Tensor:
    """The table with differences in place of what the product has lost."""
    width = 2 * patterns.shape[-1]
    # Rounding adds up with the number of dimensions.
    trusted = _TRUSTED_SHARE[table.dtype] * max(1.0, math.sqrt(patterns.shape[-1]) / 16)
    with torch.no_grad():
        level = trusted * (stored.amax(-1, keepdim=True) + own)
        doubtful = (table.amin(-1, keepdim=True) < level).flatten().nonzero().squeeze(1)
        if not len(doubtful):
            return table
        flat = table.flatten(0, -2)
        rows, columns = below(flat[doubtful], level.flatten()[doubtful, None])
        rows = doubtful[rows]
        # Patterns far away from all others do not make the rest of them doubtful.
        sizes = stored.flatten(0, -2)[rows // queries.shape[-2] if stored.ndim > 2 else rows * 0, columns]
        lost = flat[rows, columns] < trusted * (sizes + own.flatten()[rows])
        rows, columns = rows[lost], columns[lost]
    if len(rows) > _SPARSE_SHARE * table.numel():
        return pairwise(_of_all, patterns, queries, width=width, per_query=(observed,))
    found = of_pairs(_of_pairs, patterns, queries, rows, columns, width=width, per_query=(observed,))
    return table.flatten(0, -2).index_put((rows, columns), found).view_as(table)


def _of_all(patterns: Tensor, queries: Tensor, observed: Tensor | None) -> Tensor:
    asked = Queries(queries, observed)[..., None, :]
    return _of_pairs(patterns.unsqueeze(-3), asked.rows, asked.observed)


def _of_pairs(patterns: Tensor, queries: Tensor, observed: Tensor | None) -> Tensor:
    return Queries(queries, observed).masked(patterns - queries).square().sum(-1)
