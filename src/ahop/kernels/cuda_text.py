"""The CUDA C++ of the footprint kernels, rendered for one number of dimensions.

A group of lanes holds one pair, ``values`` numbers in the registers of each; a thread keeps its pattern (its *owner*)
and walks over the others. The sorting network of :mod:`ahop.kernels.network` becomes straight-line code.

Rows in memory are padded to ``Layout.stride`` numbers. NaN in either of a pair marks a dimension that does not count:
its term becomes the lowest number and is sorted to the end, where the weights are zero.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from ahop.kernels.network import Compare, lane_steps

THREADS = 128
MOST_KEPT = 32
"""How many patterns the recall kernel can rank: one a lane."""


@dataclass(frozen=True)
class Layout:
    """How a pair is spread over the lanes of a warp: ``values`` numbers in each of ``lanes`` lanes."""

    dim: int
    values: int
    lanes: int

    @cached_property
    def stride(self) -> int:
        """Numbers in a row of memory: whole vectors of four for every lane."""
        return self.lanes * 4 * -(-self.values // 4)

    def rank(self, place: int) -> int:
        """The rank among the sorted terms that ``place`` of a row of weights belongs to."""
        vector, within = divmod(place, 4)
        turn, lane = divmod(vector, self.lanes)
        value = 4 * turn + within
        return min(lane * self.values + value, self.dim) if value < self.values else self.dim

    @property
    def blocks(self) -> int:
        """Blocks of threads that share a multiprocessor's registers, as it measured best."""
        return 2 if self.values > 32 else 4


def layout(dim: int, most: int = 64) -> Layout:
    """One lane up to ``most`` dimensions, and as many lanes of so many values as it takes beyond."""
    if dim <= most:
        return Layout(dim, dim, 1)
    lanes = 2
    while most * lanes < dim:
        lanes *= 2
    return Layout(dim, most, lanes)


@dataclass(frozen=True)
class Recipe:
    """What a kernel is rendered for.

    Attributes:
        layout: How a pair is spread over lanes.
        kinds: The bases, as places in :data:`ahop.kernels.reference.TERMS`.
        masked: Whether some dimensions may not count.
    """

    layout: Layout
    kinds: tuple[int, ...]
    masked: bool

    def text(self, kernel: str) -> str:
        """The source of one kernel.

        ``"scores"`` gives the scores of every pair and ``"list"`` their sorted terms; ``"retrieve"`` their softmax and
        readout, and ``"recall"`` the best patterns, in one pass; ``"pull_inputs"``, ``"pull_weights"`` and
        ``"pull_inputs_weights"`` gradients.
        """
        if entry(kernel) != "pull":
            tile = file("tile") if kernel in ("retrieve", "recall") else ""
            return self._head() + tile + file(kernel)
        inputs, weights = "inputs" in kernel, "weights" in kernel
        kept = self.layout.values * (2 + inputs + weights)
        places = self.layout.values * self.layout.lanes
        head = self._head(
            INPUTS=int(inputs),
            WEIGHTS=int(weights),
            PULL_BLOCKS=2 if kept > 150 else 3 if kept > 100 else 4,
            PLACE=(1 << (places - 1).bit_length()) - 1,
        )
        return head + file("pull")

    def _head(self, **more: int) -> str:
        layout, bases = self.layout, len(self.kinds)
        numbers = {
            "VALUES": layout.values,
            "LANES": layout.lanes,
            "STRIDE": layout.stride,
            "THREADS": THREADS,
            "BLOCKS": layout.blocks,
            "KEPT": MOST_KEPT,
            "BASES": bases,
            "KINDS": sum(kind << 2 * index for index, kind in enumerate(self.kinds)),
            "MASKED": int(self.masked or layout.values * layout.lanes > layout.dim),
        }
        defines = "".join(f"#define {name} {number}\n" for name, number in (numbers | more).items())
        # A short network is written out for each of a few bases; a long one would not stay in the instruction cache.
        unroll = f"constexpr int UNROLL = {bases if bases <= 3 and layout.lanes == 1 else 1};\n"
        return defines + unroll + file("common") + _sort(layout)


def entry(kernel: str) -> str:
    """The C function of a kernel, and its file: all the gradients are one, compiled in three ways."""
    return kernel.partition("_")[0]


@cache
def parameters(kernel: str) -> dict[str, str]:
    """The name and C type of each of a kernel's arguments, in order, read from its text: they are written once.

    Example:
        >>> parameters("list")
        {'patterns': 'const float *', 'queries': 'const float *', 'out': 'float *', 'pattern_count': 'int',
         'query_count': 'int', 'groups': 'int', 'tiles': 'int', 'tile': 'int', 'dim': 'int'}
    """
    _, head = file(entry(kernel)).split(f"\n{entry(kernel)}(")
    arguments = re.findall(r"([\w ]+?[ *]+)(\w+)[,)]", " ".join(head[: head.index("{")].split()))
    return {name: kind.strip() for kind, name in arguments}


@cache
def file(name: str) -> str:
    """The text of a file beside this one."""
    return files("ahop.kernels").joinpath(f"text/{name}.cu").read_text()


def _sort(layout: Layout) -> str:
    """The network as code.

    For an exchange, the lane that keeps the smaller values holds them negated: then both lanes take the larger of
    their own and minus the other's, one instruction.
    """
    values, lines, bit = range(layout.values), [], 0
    for step in (step for stage in lane_steps(layout.values, layout.lanes) for step in stage):
        if isinstance(step, Compare):
            if bit:
                lines.append(f"    turn(v, lane & {bit});")
                bit = 0
            lines.append(f"    order(v[{step.low}], v[{step.high}]);")
            continue
        lines.append(
            f"    turn(v, lane & {step.bit});" if not bit else f"    turn(v, !(lane & {bit}) != !(lane & {step.bit}));"
        )
        bit = step.bit
        if step.mirrored:
            lines += [
                f"    meet(v[{value}], v[{layout.values - 1 - value}], {step.mask});"
                for value in values[: len(values) // 2]
            ]
        else:
            lines += [f"    v[{value}] = fmaxf(v[{value}], -swap(v[{value}], {step.mask}));" for value in values]
    return "__device__ __forceinline__ void sort(float (&v)[VALUES], int lane) {\n" + "\n".join(lines) + "\n}\n"
