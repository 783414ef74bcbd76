"""The networks, proved as data: a network that sorts all zeros and ones sorts everything (the 0-1 principle)."""

from itertools import chain

import numpy as np
import pytest

from ahop.kernels.network import Compare, lane_steps, last_shapes, merge_sort, row_layers, row_passes, row_shapes


def exchange(states, low, high):
    """The larger value to ``low``: of zeros and ones, 'or' is the maximum and 'and' the minimum."""
    states[low], states[high] = states[low] | states[high], states[low] & states[high]


def is_sorted(states):
    return not (states[1:] & ~states[:-1]).any()


def packed(states):
    """States one a row, to places one a row, eight states a byte."""
    return np.packbits(states.astype(bool), axis=0).T.copy()


def every_state(size):
    return packed(np.arange(2**size)[:, None] >> np.arange(size) & 1)


def sorted_halves(half):
    """All states of two sorted blocks of ``half`` places."""
    ones = np.stack(np.meshgrid(np.arange(half + 1), np.arange(half + 1)), -1).reshape(-1, 2)
    return packed((np.arange(half) < ones[..., None]).reshape(len(ones), 2 * half))


def prove(size, first, stages, apply):
    """Stage 0 sorts every block of ``first`` places; every further one merges pairs of blocks."""
    states = np.tile(every_state(first), (-(-size // first), 1))[:size]
    apply(stages[0], states)
    for start in range(0, size, first):
        assert is_sorted(states[start : start + first])
    half = first
    for stage in stages[1:]:
        # Places past the end would be zeros.
        states = np.tile(sorted_halves(half), (-(-size // (2 * half)), 1))[:size]
        apply(stage, states)
        for start in range(0, size, 2 * half):
            assert is_sorted(states[start : start + 2 * half])
        half *= 2
    assert half >= size


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 16, 17, 24, 31, 32, 33, 47, 63, 64])
def test_merge_sort_sorts(size):
    def apply(stage, states):
        for low, high in stage:
            assert low < high < size
            exchange(states, low, high)

    prove(size, 16, merge_sort(size), apply)


def test_the_counts_of_comparators():
    assert [sum(map(len, merge_sort(size))) for size in (16, 32, 64)] == [60, 185, 531]


@pytest.mark.parametrize(
    ("values", "lanes"),
    [
        *((1, 1), (5, 1), (64, 1), (4, 2), (16, 4), (32, 2), (32, 8), (8, 32), (64, 4)),
        pytest.param(32, 32, marks=pytest.mark.slow),
    ],
)
def test_lanes_sort_together(values, lanes):
    """An emulation of a warp, ``grid[lane, value]``, with the exchanges as the hardware does them."""
    size = values * lanes
    stages = lane_steps(values, lanes)
    numbers = np.arange(lanes)

    def apply(stage, states):
        grid = states.reshape(lanes, values, -1)
        for step in stage:
            if isinstance(step, Compare):
                exchange(grid.swapaxes(0, 1), step.low, step.high)
            else:
                others = grid[numbers ^ step.mask]
                others = others[:, ::-1] if step.mirrored else others
                keeps_larger = (numbers & step.bit == 0)[:, None, None]
                grid[:] = np.where(keeps_larger, grid | others, grid & others)

    # The lanes sort their own values first; merges of lanes follow.
    prove(size, min(16, values) if lanes > 1 else 16, stages, apply)


def test_lanes_of_any_other_size_cannot_be_merged():
    with pytest.raises(ValueError, match="power of two"):
        lane_steps(5, 2)


@pytest.mark.parametrize("size", [16, 32, 64, 128, 256, pytest.param(1024, marks=pytest.mark.slow)])
def test_layers_of_rows_sort(size):
    def apply(stage, states):
        for low, high in chain(*stage):
            assert low < high < size
            exchange(states, low, high)

    prove(size, 16, row_layers(size), apply)


def meetings(comparators, size):
    """The comparators of each row, in order: networks in which they are the same are the same."""
    met = [[] for _ in range(size)]
    for pair in comparators:
        # A place past the end keeps the smallest value, and who meets it keeps its own.
        if max(pair) < size:
            for row in pair:
                met[row].append(pair)
    return met


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 200, 784])
def test_passes_over_rows_are_the_layers(size):
    passed = []
    for step in row_passes(size):
        rows = [row for groups in step.values() for group in groups for row in group if row < size]
        assert sorted(rows) == list(range(size))
        for shape, groups in step.items():
            passed += [(group[low], group[high]) for group in groups for low, high in shape]
    assert all(low < high for low, high in passed if low < size)
    assert meetings(passed, size) == meetings(chain(*chain(*row_layers(size))), size)


@pytest.mark.parametrize("size", [1, 16, 17, 48, 512, 784, pytest.param(4096, marks=pytest.mark.slow)])
def test_few_shapes_make_all_passes(size):
    passes = row_passes(size)
    assert row_shapes()[: len(last_shapes())] == last_shapes()
    assert set(chain(*passes)) <= set(row_shapes())
    assert size <= 16 or set(passes[-1]) <= set(last_shapes())
