"""Scores of a likelihood on the CPU, compiled by numba on first use: a sum over dimensions of the log of a mixture.

A term is ``log(2^f + sum_j 2^(l_j - z_j^2))``, with f for a lost value and ``z_j`` how far a query's value lies from a
pattern's, in widths of noise j. Powers and logarithms of two are polynomials on the bits of a float32, which a compiler
turns into vector instructions; what PyTorch needs five passes over memory for is done in registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from torch import Tensor

from ahop._queries import Queries
from ahop.kernels.compiled import compiled, share

_LOG2 = math.log(2)
_NATURAL = np.float32(_LOG2)
# Powers of two that a float32 holds, with room for a sum of some.
MOST = 100.0

_ONE, _BIAS = np.float32(1), np.float32(127)
_LOW, _HIGH = np.float32(-126), np.float32(126)
# 2^t = 1 + t p(t) and log2(1 + t) = t p(t) for t in 0 to 1, by Chebyshev interpolation: wrong by 1e-8 and 3e-8.
_E0, _E1, _E2 = np.float32(6.93147171e-01), np.float32(2.40227215e-01), np.float32(5.54959362e-02)
_E3, _E4, _E5 = np.float32(9.65244058e-03), np.float32(1.26893528e-03), np.float32(2.08291902e-04)
_L0, _L1, _L2 = np.float32(1.442695), np.float32(-0.72134033), np.float32(0.48069548)
_L3, _L4, _L5 = np.float32(-0.35842853), np.float32(0.27571979), np.float32(-0.19728545)
_L6, _L7, _L8 = np.float32(0.11305223), np.float32(-0.04268733), np.float32(0.00757917)
_MANTISSA, _ONE_BITS, _SHIFT = np.int32(0x7FFFFF), np.int32(0x3F800000), np.int32(23)


@intrinsic
def _as_float(context: Any, bits: Any) -> Any:
    """The float32 that has these bits."""
    return types.float32(types.int32), lambda _, builder, __, args: builder.bitcast(args[0], ir.FloatType())


@intrinsic
def _as_bits(context: Any, number: Any) -> Any:
    """The bits of a float32."""
    return types.int32(types.float32), lambda _, builder, __, args: builder.bitcast(args[0], ir.IntType(32))


@compiled
def _power(x):
    """Two to the power of x."""
    x = max(_LOW, min(_HIGH, x))
    exponent = np.int32(x + _BIAS)
    t = x - (np.float32(exponent) - _BIAS)
    part = _E0 + t * (_E1 + t * (_E2 + t * (_E3 + t * (_E4 + t * _E5))))
    return _as_float(exponent << _SHIFT) * (_ONE + t * part)


@compiled
def _logarithm(x):
    """The logarithm to base two of a number that is not below one."""
    bits = _as_bits(x)
    exponent = np.float32((bits >> _SHIFT) - np.int32(127))
    t = _as_float((bits & _MANTISSA) | _ONE_BITS) - _ONE
    upper = _L4 + t * (_L5 + t * (_L6 + t * (_L7 + t * _L8)))
    return exponent + t * (_L0 + t * (_L1 + t * (_L2 + t * (_L3 + t * upper))))


@compiled
def _fill(patterns, gains, inverse, queries, level, seen, first, last, sums, table):
    kinds, dims = inverse.shape
    for query in range(len(queries)):
        for pattern in range(first, last):
            for place in range(dims):
                sums[place] = _ONE
            for kind in range(kinds):
                gain = gains[kind]
                for place in range(dims):
                    gap = (queries[query, place] - gain * patterns[pattern, place]) * inverse[kind, place]
                    sums[place] += _power(level[kind, query, place] - gap * gap)
            total = np.float32(0)
            for place in range(dims):
                total += seen[query, place] * _logarithm(sums[place])
            table[query, pattern] = total


def scores(
    patterns: Tensor, queries: Tensor, lost: Tensor, gain: Tensor, sigma: Tensor, level: Tensor, observed: Tensor | None
) -> Tensor | None:
    r"""The scores of all pairs,
    :math:`\sum_i \log(e^{f_i} + \sum_j e^{l_{ji} - (x_i - a_j \xi_i)^2 / 2 \sigma_{ji}^2})`.

    None where a float32 does not hold how much likelier kept values are than lost ones.

    Args:
        patterns: ``(N, d)``, float32, counted from the centre.
        queries: ``(Q, d)``, counted from the centre and the bias.
        lost: The log density f of each value as lost, ``(Q, d)``.
        gain, sigma, level: ``(J,)``, ``(J, d)`` and ``(J, d)``.
        observed: ``(Q, d)``, or None.

    Shape:
        ``(Q, N)``.
    """
    above = (level[:, None] - lost) / _LOG2
    if not above.numel() or float(above.max()) > MOST:
        return None
    seen = Queries(queries, observed).mask
    inverse, table = math.sqrt(0.5 / _LOG2) / sigma, queries.new_empty(len(queries), len(patterns))
    arrays = [tensor.contiguous().numpy() for tensor in (patterns, gain, inverse, queries, above, seen)]
    sums = np.empty((torch.get_num_threads(), patterns.shape[1]), dtype=np.float32)

    def work(first: int, last: int, thread: int) -> None:
        _fill(*arrays, first, last, sums[thread], table.numpy())

    share(len(patterns), work, terms=queries.numel() * len(gain))
    return table.mul_(_LOG2).add_((lost * seen).sum(-1, keepdim=True))


@compiled
def _fill_some(patterns, centre, chosen, gains, inverse, queries, level, seen, first, last, sums, table):
    kinds, dims = inverse.shape
    for query in range(first, last):
        for rank in range(chosen.shape[1]):
            pattern = chosen[query, rank]
            for place in range(dims):
                sums[place] = _ONE
            for kind in range(kinds):
                gain = gains[kind]
                for place in range(dims):
                    value = patterns[pattern, place] - centre
                    gap = (queries[query, place] - gain * value) * inverse[kind, place]
                    sums[place] += _power(level[kind, query, place] - gap * gap)
            total = np.float32(0)
            for place in range(dims):
                total += seen[query, place] * _logarithm(sums[place])
            table[query, rank] = total


def scores_of(
    patterns: Tensor,
    centre: float,
    chosen: Tensor,
    queries: Tensor,
    lost: Tensor,
    gain: Tensor,
    sigma: Tensor,
    level: Tensor,
    observed: Tensor | None,
) -> Tensor | None:
    """As :func:`scores`, of some patterns for each query.

    Args:
        patterns: ``(N, d)``, as they are; no copy of them is made.
        centre: What they are counted from.
        chosen: ``(Q, C)``.
        queries, lost, gain, sigma, level, observed: As there.

    Shape:
        ``(Q, C)``.
    """
    above = (level[:, None] - lost) / _LOG2
    if not above.numel() or float(above.max()) > MOST:
        return None
    seen = Queries(queries, observed).mask
    inverse, table = math.sqrt(0.5 / _LOG2) / sigma, queries.new_empty(chosen.shape)
    others = [tensor.contiguous().numpy() for tensor in (chosen, gain, inverse, queries, above, seen)]
    sums = np.empty((torch.get_num_threads(), patterns.shape[1]), dtype=np.float32)

    def work(first: int, last: int, thread: int) -> None:
        _fill_some(patterns.numpy(), np.float32(centre), *others, first, last, sums[thread], table.numpy())

    share(len(queries), work, terms=chosen.shape[1] * patterns.shape[1] * len(gain))
    return table.mul_(_LOG2).add_((lost * seen).sum(-1, keepdim=True))


@compiled
def _explain(patterns, owner, gains, inverse, queries, level, lost, first, last, odds, whole, total):
    kinds, dims = inverse.shape
    for pair in range(first, last):
        query = owner[pair]
        for place in range(dims):
            whole[pair, place] = _ONE
        for kind in range(kinds):
            gain = gains[kind]
            for place in range(dims):
                gap = (queries[query, place] - gain * patterns[pair, place]) * inverse[kind, place]
                odd = _power(level[kind, query, place] - gap * gap)
                odds[kind, pair, place] = odd
                whole[pair, place] += odd
        for place in range(dims):
            total[pair, place] = lost[query, place] + _NATURAL * _logarithm(whole[pair, place])


def explain(
    patterns: Tensor, owner: Tensor, queries: Tensor, lost: Tensor, gain: Tensor, sigma: Tensor, level: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    """The terms of single pairs, where pattern k is a candidate of query ``owner[k]``; None as in :func:`scores`.

    Args:
        patterns: ``(m, d)``.
        owner: ``(m,)``.
        queries, lost, gain, sigma, level: As there.

    Returns:
        How much likelier than lost a value is by each kind of noise ``(J, m, d)``, one more than their sum ``(m, d)``,
        and the term ``(m, d)``.
    """
    above = (level[:, None] - lost) / _LOG2
    if not above.numel() or float(above.max()) > MOST:
        return None
    shape = patterns.shape
    odds, whole, total = queries.new_empty(len(gain), *shape), queries.new_empty(shape), queries.new_empty(shape)
    inverse = math.sqrt(0.5 / _LOG2) / sigma
    given = [tensor.contiguous().numpy() for tensor in (patterns, owner, gain, inverse, queries, above, lost)]
    made = [tensor.numpy() for tensor in (odds, whole, total)]

    def work(first: int, last: int, _: int) -> None:
        _explain(*given, first, last, *made)

    share(len(patterns), work, terms=patterns.shape[1] * len(gain))
    return odds, whole, total


# A share too small to change a sum. Where another regime explains a query far better, all of its pairs have one.
_NO_SHARE = 1e-9


@compiled
def _gather(patterns, owner, gains, queries, odds, whole, shares, seen, first, last, sums, lost, amount):
    kinds, _, dims = odds.shape
    # In double precision, products of what is unlikely are no denormal numbers, of which each would take an age. A loop
    # writes one array: more are not made into vector instructions.
    weight, gap = np.empty(dims), np.empty(dims)
    by_noise, by_gap, by_pattern = np.empty(dims), np.empty(dims), np.empty(dims)
    for pair in range(first, last):
        query, counted = owner[pair], shares[pair]
        if counted < _NO_SHARE:
            continue
        for place in range(dims):
            weight[place] = counted * seen[query, place]
        for place in range(dims):
            amount[place] += weight[place]
        for place in range(dims):
            weight[place] /= whole[pair, place]
        for place in range(dims):
            lost[query, place] += weight[place]
        for kind in range(kinds):
            gain = gains[kind]
            for place in range(dims):
                by_noise[place] = weight[place] * odds[kind, pair, place]
            for place in range(dims):
                gap[place] = queries[query, place] - gain * patterns[pair, place]
            for place in range(dims):
                by_gap[place] = by_noise[place] * gap[place]
            for place in range(dims):
                sums[kind, 0, place] += by_noise[place]
            for place in range(dims):
                sums[kind, 1, place] += by_gap[place]
            for place in range(dims):
                sums[kind, 2, place] += by_gap[place] * gap[place]
            for place in range(dims):
                sums[kind, 5, place] += by_gap[place] * patterns[pair, place]
            for place in range(dims):
                by_pattern[place] = by_noise[place] * patterns[pair, place]
            for place in range(dims):
                sums[kind, 3, place] += by_pattern[place]
            for place in range(dims):
                sums[kind, 4, place] += by_pattern[place] * patterns[pair, place]


def gather(
    patterns: Tensor,
    owner: Tensor,
    queries: Tensor,
    gain: Tensor,
    odds: Tensor,
    whole: Tensor,
    shares: Tensor,
    observed: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over pairs whose shares are known, ``(m,)``; the rest as in :func:`explain`, which gives odds and whole.

    Args:
        patterns: ``(m, d)``, one for each pair.
        owner: The query of each pair, ``(m,)``.
        queries: ``(n, d)``.
        gain: The gain of each kind of noise, ``(J,)``.
        odds, whole: As :func:`explain` gives them.
        shares: How much each pair counts, ``(m,)``.
        observed: Which entries of the queries count, ``(n, d)``; None is all.

    Returns:
        For each kind of noise j the amount it answers for, and that amount times the gap e and the pattern's value c in
        six ways, ``(J, 6, d)``: 1, e, e e, c, c c, e c. How much of each query's values is lost ``(n, d)``. The amount
        in all ``(d,)``.
    """
    seen = Queries(queries, observed).mask
    given = [tensor.contiguous().numpy() for tensor in (patterns, owner, gain, queries, odds, whole, shares, seen)]
    threads, dims = torch.get_num_threads(), patterns.shape[1]
    # In double precision, of which sums over many pairs need the digits.
    sums = np.zeros((threads, len(gain), 6, dims))
    lost, amount = np.zeros((threads, *queries.shape), dtype=np.float32), np.zeros((threads, dims))

    def work(first: int, last: int, thread: int) -> None:
        _gather(*given, first, last, sums[thread], lost[thread], amount[thread])

    share(len(patterns), work, terms=patterns.shape[1] * len(gain))
    moments, lost_sums, amounts = (torch.from_numpy(parts.sum(0)).to(queries) for parts in (sums, lost, amount))
    return moments, lost_sums, amounts
