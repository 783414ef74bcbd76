"""Sorting networks as data: the steps that the CPU and CUDA kernels are rendered from.

Every network here sorts downwards and is a list of stages; a stage merges sorted blocks into sorted blocks of twice
the size, so that each can be proved by itself: a block of m zeros and ones that is sorted has only m + 1 states.
"""

from __future__ import annotations

from functools import cache
from itertools import chain, groupby
from typing import NamedTuple

Comparator = tuple[int, int]
"""Two places (i, j): the larger value goes to i, the smaller to j."""


# --- a network over the places of one row ------------------------------------------------------------------


SORT16: tuple[Comparator, ...] = (
    *((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15)),
    *((0, 2), (1, 3), (4, 6), (5, 7), (8, 10), (9, 11), (12, 14), (13, 15)),
    *((0, 4), (1, 5), (2, 6), (3, 7), (8, 12), (9, 13), (10, 14), (11, 15)),
    *((0, 8), (1, 9), (2, 10), (3, 11), (4, 12), (5, 13), (6, 14), (7, 15)),
    *((5, 10), (6, 9), (3, 12), (13, 14), (4, 8), (7, 11), (1, 2)),
    *((1, 4), (7, 13), (2, 8), (11, 14), (2, 4), (5, 6), (9, 10), (11, 13), (3, 8), (7, 12)),
    *((6, 8), (10, 12), (3, 5), (7, 9), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12), (6, 7), (8, 9)),
)
"""Green's network: 60 comparators for sixteen values, three fewer than by merging."""


def merge_sort(size: int) -> list[list[Comparator]]:
    """Green's network on every sixteen places, then Batcher's odd-even merges: 531 comparators for 64 values.

    Made for the next power of two; places past the end would hold the smallest values and stay where they are, so
    their comparators are left out.

    Example:
        >>> merge_sort(3)
        [[(0, 1), (0, 2), (1, 2)]]
        >>> sum(len(stage) for stage in merge_sort(64))
        531
    """
    pairs = [(start + low, start + high) for start in range(0, size, 16) for low, high in SORT16]
    stages = [[(low, high) for low, high in pairs if high < size]]
    half = 16
    while half < size:
        stage: list[Comparator] = []
        gap = half
        while gap:
            # Past the first layer of a merge, compare inside the block of 2 * half, without its first and last run.
            first = gap % half
            for start in range(first, size - gap, 2 * gap):
                for low in range(start, min(start + gap, size - gap)):
                    if low // (2 * half) == (low + gap) // (2 * half):
                        stage.append((low, low + gap))
            gap //= 2
        stages.append(stage)
        half *= 2
    return stages


def bitonic_merge(size: int) -> list[Comparator]:
    """Sorts any bitonic sequence of a power of two: strides of half the size, a quarter, and so on.

    Example:
        >>> bitonic_merge(4)
        [(0, 2), (1, 3), (0, 1), (2, 3)]
    """
    strides = [size >> level for level in range(1, size.bit_length())]
    return [(low, low + stride) for stride in strides for low in range(size) if not low & stride]


# --- across the lanes of a GPU's warp ----------------------------------------------------------------------


class Compare(NamedTuple):
    """Every lane puts the larger of its values ``low`` and ``high`` at ``low``."""

    low: int
    high: int


class Exchange(NamedTuple):
    """Value e of a lane meets value e, or, ``mirrored``, the last but e, of the lane whose number differs by ``mask``.

    Of the two lanes, the one whose number lacks ``bit`` keeps the larger values.
    """

    mask: int
    bit: int
    mirrored: bool


Step = Compare | Exchange


def lane_steps(values: int, lanes: int) -> list[list[Step]]:
    """Sorts ``values * lanes`` numbers, ``values`` in each lane; place e of lane l holds rank ``l * values + e``.

    Each lane sorts its own; then lanes are merged two by two. The first exchange of a merge is mirrored, so that
    all of them sort downwards.

    Example:
        >>> lane_steps(2, 2)
        [[Compare(low=0, high=1)], [Exchange(mask=1, bit=1, mirrored=True), Compare(low=0, high=1)]]
    """
    if lanes > 1 and values & (values - 1):
        raise ValueError(f"values must be a power of two where lanes are merged, got {values}")
    stages: list[list[Step]] = [[Compare(*pair) for pair in stage] for stage in merge_sort(values)]
    block = 2
    while block <= lanes:
        stage: list[Step] = [Exchange(block - 1, block // 2, True)]
        bit = block // 4
        while bit:
            stage.append(Exchange(bit, bit, False))
            bit //= 2
        stage += [Compare(*pair) for pair in bitonic_merge(values)]
        stages.append(stage)
        block *= 2
    return stages


# --- passes over rows of a CPU's vector lanes --------------------------------------------------------------

WIRES = 16
"""So many rows a processor keeps in its registers."""

DEPTH = 4
"""So many layers connect no more rows than that."""

Shape = tuple[Comparator, ...]
"""A small network over the rows of a group, by their places in it."""

Group = tuple[int, ...]
"""Sixteen rows, upwards."""


def row_layers(size: int) -> list[list[list[Comparator]]]:
    """Stages of layers that sort the next power of two of places, sixteen at least.

    Green's network on every sixteen places (here one layer), an odd-even merge to thirty-two, which takes fewer
    comparators, and bitonic merges from there on, which connect fewer places.

    Example:
        >>> [[len(layer) for layer in stage] for stage in row_layers(64)]
        [[240], [32, 16, 24, 28, 30], [32, 32, 32, 32, 32, 32]]
    """
    whole = WIRES
    while whole < size:
        whole *= 2
    sort, *merge = merge_sort(min(whole, 2 * WIRES))
    small = [[sort], *([list(layer) for _, layer in groupby(pairs, key=_gap)] for pairs in merge)]
    starts = range(0, whole, 2 * WIRES)
    stages = [
        [[(start + low, start + high) for start in starts for low, high in layer] for layer in stage] for stage in small
    ]
    block = 4 * WIRES
    while block <= whole:
        # A place first meets the mirrored one, so that all merges sort downwards.
        masks = [block - 1, *(block >> level for level in range(2, block.bit_length()))]
        stages.append([[(low, low ^ mask) for low in range(whole) if low < low ^ mask] for mask in masks])
        block *= 2
    return stages


def _gap(pair: Comparator) -> int:
    return pair[1] - pair[0]


def row_passes(size: int) -> list[dict[Shape, list[Group]]]:
    """Sorts ``size`` rows, element by element; row number ``size`` must hold the smallest value, and keeps it.

    The layers of :func:`row_layers`, four at a time, so that a row is loaded and stored once for all four. In a pass
    every row is in one group; row ``size`` stands for all places past the end.

    Example:
        >>> [{len(shape): len(groups) for shape, groups in step.items()} for step in row_passes(64)]
        [{60: 4}, {25: 4}, {30: 1, 32: 3}, {24: 4}]
    """
    (sort,), *merges = row_layers(size)
    whole = 1 + max(high for _, high in sort)
    if size <= WIRES // 2:
        # The other half would have nothing to do.
        sort = [pair for pair in sort if max(pair) < WIRES // 2]
    layers = list(chain(*merges))
    pieces = [[sort], *(layers[first : first + DEPTH] for first in range(0, len(layers), DEPTH))]
    return [
        {shape: [_cut(group, size) for group in groups if group[0] < size] for shape, groups in step.items()}
        for step in (_joined(piece, whole) for piece in pieces)
    ]


def _cut(group: Group, size: int) -> Group:
    return tuple(min(row, size) for row in group)


def _joined(layers: list[list[Comparator]], whole: int) -> dict[Shape, list[Group]]:
    """Layers as small networks on groups of sixteen rows; rows that the layers connect are in one group."""
    sets = [[row] for row in range(whole)]
    for low, high in chain(*layers):
        one, other = sets[low], sets[high]
        if one is not other:
            one += other
            for row in other:
                sets[row] = one
    # Large sets first: then the small ones fill what is left.
    rows = sorted(range(whole), key=lambda row: (-len(sets[row]), min(sets[row])))
    groups = [tuple(sorted(rows[first : first + WIRES])) for first in range(0, whole, WIRES)]
    homes = {row: (group, place) for group in groups for place, row in enumerate(group)}
    networks: dict[Group, list[Comparator]] = {group: [] for group in groups}
    for low, high in chain(*layers):
        group, place = homes[low]
        networks[group].append((place, homes[high][1]))
    step: dict[Shape, list[Group]] = {}
    for group, pairs in networks.items():
        step.setdefault(tuple(pairs), []).append(group)
    return step


@cache
def last_shapes() -> tuple[Shape, ...]:
    """What the last pass of any size consists of; nothing is left to do where one pass was all."""
    return ((), *chain(*(row_passes(size)[-1] for size in (32, 64, 128))), tuple(bitonic_merge(WIRES)))


@cache
def row_shapes() -> tuple[Shape, ...]:
    """What the passes of any size consist of, beginning with :func:`last_shapes`."""
    steps = chain(*(row_passes(size) for size in (8, 32, 256)))
    half = WIRES // 2
    mirrored = (*((low, WIRES - 1 - low) for low in range(half)), *bitonic_merge(WIRES)[half:])
    return tuple(dict.fromkeys((*last_shapes(), *chain(*steps), mirrored)))
