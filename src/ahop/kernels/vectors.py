"""Small sorting networks as vector instructions, for the functions that numba compiles.

Sixteen rows are in registers at a time, a vector of each. A loop over rows chosen at run time would check first
that no two overlap, which takes longer than the network; so the instructions are written here, for vectors as wide as
this processor's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ahop.kernels.network import SORT16, WIRES, Shape, last_shapes, row_shapes

# What LLVM's builder makes, which has no types for mypy.
Builder: TypeAlias = Any
Value: TypeAlias = Any

# As in :mod:`ahop.kernels.compiled`, but sums are made in the order that is written.
_FAST = ("nnan", "ninf", "nsz", "contract")
_FEATURES = binding.get_host_cpu_features()
_WIDTH = 16 if _FEATURES.get("avx512f") else 8 if _FEATURES.get("avx") else 4
_VECTOR = ir.VectorType(ir.FloatType(), _WIDTH)
_INDEX = ir.IntType(64)


def _written(write: Callable[..., None]) -> Any:
    """``write(builder, *arguments)`` as a function for compiled code; arrays come as pointers to their first number."""

    def typed(_: Any, *kinds: Any) -> Any:
        def generate(context: Any, builder: Builder, signature: Any, values: Sequence[Value]) -> Value:
            pairs = zip(signature.args, values, strict=True)
            write(builder, *(_pointer(context, builder, kind, value) for kind, value in pairs))
            return context.get_dummy_value()

        return types.void(*kinds), generate

    # Numba wants to know the arguments by name.
    typed.__signature__ = inspect.signature(write)  # type: ignore[attr-defined]
    return intrinsic(typed)


def _pointer(context: Any, builder: Builder, kind: Any, value: Value) -> Value:
    return context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value


@_written
def exchange(builder: Builder, shape: Value, rows: Value, offsets: Value, group: Value, lanes: Value) -> None:
    """Run a network of comparisons on some rows.

    Args:
        builder: Writes the instructions.
        shape: The number of the network in ``row_shapes()``.
        rows: Where the block of rows begins.
        offsets, group: The rows begin at ``offsets[group]``.
        lanes: The length of a row.
    """
    starts = _starts(builder, rows, offsets, group)
    for network in _cases(builder, shape, row_shapes()):
        for lane in _vectors(builder, lanes):
            values = _sorted(builder, network, [_load(builder, start, lane) for start in starts])
            for start, value in zip(starts, values, strict=True):
                _store(builder, value, start, lane)


@_written
def form(builder: Builder, kind: Value, rows: Value, first: Value, block: Value, query: Value, lanes: Value) -> None:
    """The terms of sixteen dimensions from ``first`` on, sorted, in the rows of the same numbers.

    Args:
        builder: Writes the instructions.
        kind: The number of the base similarity.
        rows: Where the block of terms begins.
        first: The first of the sixteen dimensions.
        block: Where the block of patterns begins, one dimension a row.
        query: Where the query begins.
        lanes: The length of a row.
    """
    begin = builder.mul(first, lanes)
    starts, patterns = [builder.gep(rows, [begin])], [builder.gep(block, [begin])]
    for _ in range(1, WIRES):
        starts.append(builder.gep(starts[-1], [lanes]))
        patterns.append(builder.gep(patterns[-1], [lanes]))
    spread = _spread(builder, query, first)
    for term in _cases(builder, kind, (_square, _product, _gap)):
        for lane in _vectors(builder, lanes):
            loaded = [_load(builder, pattern, lane) for pattern in patterns]
            terms = [term(builder, pattern, value) for pattern, value in zip(loaded, spread, strict=True)]
            for start, value in zip(starts, _sorted(builder, SORT16, terms), strict=True):
                _store(builder, value, start, lane)


@_written
def gather(
    builder: Builder,
    shape: Value,
    rows: Value,
    offsets: Value,
    group: Value,
    weights: Value,
    total: Value,
    lanes: Value,
) -> None:
    """Run the last network on the rows of a group, and add the outcome, weighted, to a total.

    Args:
        builder: Writes the instructions.
        shape: The number of the network in ``last_shapes()``.
        rows: Where the block of rows begins.
        offsets, group: The rows begin at ``offsets[group]``.
        weights: Where the weights begin, sixteen a group.
        total: Where the sums begin, one a lane.
        lanes: The length of a row.
    """
    starts = _starts(builder, rows, offsets, group)
    spread = _spread(builder, weights, builder.mul(group, _INDEX(WIRES)))
    for network in _cases(builder, shape, last_shapes()):
        for lane in _vectors(builder, lanes):
            values = _sorted(builder, network, [_load(builder, start, lane) for start in starts])
            products = [builder.fmul(*pair, flags=_FAST) for pair in zip(values, spread, strict=True)]
            # Four sums side by side: one alone would wait for itself.
            sums = [_load(builder, total, lane), *products[:3]]
            for wire, product in enumerate(products[3:]):
                sums[wire % 4] = builder.fadd(sums[wire % 4], product, flags=_FAST)
            halves = builder.fadd(*sums[:2], flags=_FAST), builder.fadd(*sums[2:], flags=_FAST)
            _store(builder, builder.fadd(*halves, flags=_FAST), total, lane)


# --- what they are written with ----------------------------------------------------------------------------


def _cases(builder: Builder, number: Value, options: Sequence[Any]) -> Iterator[Any]:
    """What is written for option i runs where ``number`` is i."""
    end = builder.append_basic_block()
    choice = builder.switch(number, end)
    for index, option in enumerate(options):
        block = builder.append_basic_block()
        choice.add_case(_INDEX(index), block)
        builder.position_at_end(block)
        yield option
        builder.branch(end)
    builder.position_at_end(end)


def _vectors(builder: Builder, lanes: Value) -> Iterator[Value]:
    """What is written for the one value runs for the first lane of every vector."""
    with cgutils.for_range_slice(builder, _INDEX(0), lanes, _INDEX(_WIDTH)) as (lane, _):
        yield lane


def _starts(builder: Builder, rows: Value, offsets: Value, group: Value) -> list[Value]:
    """Where the rows of a group begin."""
    places = _places(builder, offsets, builder.mul(group, _INDEX(WIRES)))
    return [builder.gep(rows, [builder.load(place)]) for place in places]


def _places(builder: Builder, numbers: Value, first: Value) -> list[Value]:
    """Sixteen places from ``numbers[first]`` on."""
    return [builder.gep(numbers, [builder.add(first, _INDEX(wire))]) for wire in range(WIRES)]


def _load(builder: Builder, start: Value, lane: Value) -> Value:
    return builder.load(builder.bitcast(builder.gep(start, [lane]), _VECTOR.as_pointer()), align=4)


def _store(builder: Builder, value: Value, start: Value, lane: Value) -> None:
    builder.store(value, builder.bitcast(builder.gep(start, [lane]), _VECTOR.as_pointer()), align=4)


def _spread(builder: Builder, numbers: Value, first: Value) -> list[Value]:
    """Sixteen numbers from ``numbers[first]`` on, each in all lanes of a vector."""
    unknown, zeros = ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), _WIDTH), None)
    loaded = [builder.load(place) for place in _places(builder, numbers, first)]
    single = [builder.insert_element(unknown, number, _INDEX(0)) for number in loaded]
    return [builder.shuffle_vector(vector, unknown, zeros) for vector in single]


def _sorted(builder: Builder, network: Shape, values: list[Value]) -> list[Value]:
    for low, high in network:
        values[low], values[high] = _larger_smaller(builder, values[low], values[high])
    return values


def _larger_smaller(builder: Builder, one: Value, other: Value) -> tuple[Value, Value]:
    larger = builder.fcmp_ordered(">", one, other, flags=_FAST)
    return builder.select(larger, one, other), builder.select(larger, other, one)


def _square(builder: Builder, pattern: Value, query: Value) -> Value:
    gap = builder.fsub(pattern, query, flags=_FAST)
    return builder.fmul(gap, gap, flags=_FAST)


def _product(builder: Builder, pattern: Value, query: Value) -> Value:
    return builder.fmul(pattern, query, flags=_FAST)


def _gap(builder: Builder, pattern: Value, query: Value) -> Value:
    gaps = builder.fsub(pattern, query, flags=_FAST), builder.fsub(query, pattern, flags=_FAST)
    return _larger_smaller(builder, *gaps)[0]
