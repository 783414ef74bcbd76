"""Sorting networks as data: the steps that the CPU and CUDA kernels are rendered from.

Every network here sorts downwards and is a list of stages; a stage merges sorted blocks into sorted blocks of twice
the size, so that each can be proved by itself: a block of m zeros and ones that is sorted has only m + 1 states.
"""

from __future__ import annotations

from dataclasses import dataclass
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

SHAPES: dict[str, tuple[Comparator, ...]] = {
    # Nineteen comparators, which is the fewest that sort eight values.
    "sort8": (
        *((0, 2), (1, 3), (4, 6), (5, 7), (0, 4), (1, 5), (2, 6), (3, 7), (0, 1), (2, 3), (4, 5), (6, 7)),
        *((2, 4), (3, 5), (1, 4), (3, 6), (1, 2), (3, 4), (5, 6)),
    ),
    # The first three layers of a merge: mirrored, then a quarter and an eighth of the block apart.
    "mirror8": ((0, 7), (1, 6), (2, 5), (3, 4), *((0, 2), (1, 3), (4, 6), (5, 7), (0, 1), (2, 3), (4, 5), (6, 7))),
    # The layers after them, three, two or one at a time.
    "merge8": tuple(bitonic_merge(8)),
    "merge4": tuple(bitonic_merge(4)),
    "merge2": tuple(bitonic_merge(2)),
}
"""Small networks that keep two to eight values in registers while several layers work on them."""


SPARE = 6
"""At most so many places of a group of eight lie past the end, while two lie before it."""


@dataclass(frozen=True)
class Pass:
    """One small network, applied to many groups of rows."""

    shape: str
    groups: tuple[tuple[int, ...], ...]


def row_stages(size: int) -> list[list[Pass]]:
    """Sorts ``size`` rows, element by element; the :data:`SPARE` rows after them must hold the smallest value.

    A bitonic network whose layers are joined as long as only eight rows are connected, so that a row is loaded and
    stored once for three layers. Places past the end are spare rows, which stay what they are; within a group they
    are different ones, because a loop over rows that may be the same cannot be vectorised.

    Example:
        >>> [[(step.shape, len(step.groups)) for step in stage] for stage in row_stages(16)]
        [[('sort8', 2)], [('mirror8', 2), ('merge2', 8)]]
    """
    whole = 8
    while whole < size:
        whole *= 2
    stages = [[Pass("sort8", tuple(tuple(range(start, start + 8)) for start in range(0, whole, 8)))]]
    block = 16
    while block <= whole:
        eighth = block // 8
        groups = []
        for start in range(0, whole, block):
            for place in range(start, start + eighth):
                top = [place + step * eighth for step in range(4)]
                groups.append((*top, *(2 * start + block - 1 - row for row in reversed(top))))
        stage = [Pass("mirror8", tuple(groups))]
        stride = block // 16
        while stride:
            count = 8 if stride >= 4 else 2 * stride
            unit = 2 * stride // count
            rows = [
                tuple(start + place + step * unit for step in range(count))
                for start in range(0, whole, 2 * stride)
                for place in range(unit)
            ]
            stage.append(Pass(f"merge{count}", tuple(rows)))
            stride = unit // 2
        stages.append(stage)
        block *= 2
    return [[_cut(step, size) for step in stage] for stage in stages]


def _cut(step: Pass, size: int) -> Pass:
    """Without the groups that touch at most one row, and with spare rows for places past the end."""
    groups = []
    for group in step.groups:
        inside, past = [row for row in group if row < size], [row for row in group if row >= size]
        if len(inside) > 1:
            spare = {row: size + index for index, row in enumerate(past)}
            groups.append(tuple(spare.get(row, row) for row in group))
    return Pass(step.shape, tuple(groups))
