"""Footprints on an NVIDIA GPU: the text of :mod:`ahop.kernels.cuda_text`, compiled for each d on first use.

NVRTC comes with PyTorch, so no CUDA toolkit is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from ahop.kernels import cuda_text
from ahop.kernels.backend import Backend, Gradients, Needs, Pairs, Ranking, Readout
from ahop.kernels.cuda_text import MOST_KEPT, THREADS, Layout, Recipe
from ahop.kernels.reference import KINDS

# What a block of threads may always have; more must be asked for.
_SHARED = 46 * 1024


class Cuda(Backend):
    """Sorting networks in registers; readouts and rankings in one pass."""

    def scores(self, pairs: Pairs) -> Tensor:
        patterns, queries, weights, observed, bases = pairs
        layout, own = _layout("scores", patterns.shape[2]), pairs.separate
        table = queries.new_empty(*queries.shape[:2], patterns.shape[1])
        row = 4 * layout.stride
        # Beside the queries of a block lie their weights: one set, or one each.
        grid = _Grid(patterns, queries, layout, row * (1 + len(bases) * own), row * len(bases) * (not own))
        grid.launch(
            "scores",
            _recipe(layout, bases, observed),
            patterns=_rows(patterns, layout),
            queries=_rows(queries, layout, observed),
            weights=_weights(weights, layout),
            out=table,
            weight_groups=len(weights),
            own_weights=int(own),
        )
        return table

    def sorted_terms(self, patterns: Tensor, queries: Tensor, bases: Sequence[str]) -> Tensor:
        (_, count, dim), layout = patterns.shape, _layout("scores", patterns.shape[2])
        table = queries.new_empty(*queries.shape[:2], count, len(bases), dim)
        _Grid(patterns, queries, layout, 4 * layout.stride, 0).launch(
            "list",
            _recipe(layout, bases, None),
            patterns=_rows(patterns, layout),
            queries=_rows(queries, layout),
            out=table,
            dim=dim,
        )
        return table

    def gradients(self, pairs: Pairs, slopes: Tensor, needs: Needs) -> Gradients:
        """See :meth:`ahop.kernels.backend.Backend.gradients`.

        Where patterns or queries need one, terms closer than about d parts in 2^23 may change places, which a smooth u
        does not feel, and the gradient to the weights is as exact as that; alone, it is made from the terms themselves.
        Sums are made by atomic additions, so that their last digits differ from run to run.
        """
        slopes = slopes.contiguous()
        to_patterns = to_queries = to_weights = None
        if needs.patterns:
            to_patterns, _ = _pull(pairs, slopes, query_owns=False, inputs=True)
        if needs.queries or needs.weights:
            to_queries, to_weights = _pull(pairs, slopes, query_owns=True, inputs=needs.queries, sums=needs.weights)
        return Gradients(to_patterns, to_queries if needs.queries else None, to_weights if needs.weights else None)

    def retrieve(self, pairs: Pairs, values: Tensor, bias: Tensor | None) -> Readout:
        """See :meth:`ahop.kernels.backend.Backend.retrieve`: in one pass where a block's share of the readout fits."""
        (groups, rows), width = pairs.queries.shape[:2], values.shape[-1]
        walk = _Walk(pairs, lambda tile: tile * width, width + 2)
        if walk.shared > _most_shared(values):
            return super().retrieve(pairs, values, bias)
        parts = (walk.splits, groups, rows)
        blends, peaks, sums = (values.new_empty(size) for size in ((*parts, width), parts, parts))
        walk.launch("retrieve", bias, values=values.contiguous(), out=blends, peaks=peaks, sums=sums, width=width)
        shares, total, log_total = _combine(peaks, sums)
        return Readout((blends * shares[..., None]).sum(0) / total[..., None], log_total)

    def recall(self, pairs: Pairs, k: int, bias: Tensor | None) -> Ranking:
        """See :meth:`ahop.kernels.backend.Backend.recall`: in one pass for up to 32, one a lane."""
        queries = pairs.queries
        walk = _Walk(pairs, lambda tile: 2 * tile * MOST_KEPT, 2 * k + 2)
        if k > MOST_KEPT or walk.shared > _most_shared(queries):
            return super().recall(pairs, k, bias)
        parts = (walk.splits, *queries.shape[:2])
        best, peaks, sums = (queries.new_empty(size) for size in ((*parts, k), parts, parts))
        indices = torch.empty_like(best, dtype=torch.int32)
        walk.launch("recall", bias, best=best, indices=indices, peaks=peaks, sums=sums, kept=k)
        found = best.movedim(0, 2).flatten(2).topk(k, dim=-1)
        places = indices.movedim(0, 2).flatten(2).gather(-1, found.indices).long()
        return Ranking(found.values, places, _combine(peaks, sums)[2])


class _Grid:
    """How kernels without a state share the pairs out: a block of threads takes some patterns and some queries."""

    def __init__(self, patterns: Tensor, queries: Tensor, layout: Layout, bytes_each: int, bytes_once: int) -> None:
        (self.groups, self.count, _), self.rows = patterns.shape, queries.shape[1]
        self.threads = _threads(self.count, layout)
        self.tiles = -(-self.count * layout.lanes // self.threads)
        # As many queries a block as fit, unless some multiprocessors would have nothing to do.
        fit = (_SHARED - bytes_once) // bytes_each
        spread = self.groups * self.tiles * self.rows // (8 * _slots(layout.blocks, patterns))
        self.tile = max(1, min(32, fit, spread))
        self.blocks = self.groups * self.tiles * -(-self.rows // self.tile)
        self.shared = self.tile * bytes_each + bytes_once

    def launch(self, kernel: str, recipe: Recipe, **arguments: Tensor | int) -> None:
        if self.blocks:
            sizes = {"pattern_count": self.count, "query_count": self.rows, "groups": self.groups}
            sizes |= {"tiles": self.tiles, "tile": self.tile}
            _launch(kernel, recipe, (self.blocks, 1), self.threads, self.shared, **arguments, **sizes)


class _Walk:
    """How the fused kernels share the pairs out: blocks of queries, each walking over a part of the patterns."""

    def __init__(self, pairs: Pairs, state: Callable[[int], int], numbers: int) -> None:
        self.pairs, patterns, queries = pairs, pairs.patterns, pairs.queries
        (self.groups, self.count, dim), self.rows = patterns.shape, queries.shape[1]
        self.layout = layout = _layout("retrieve", dim)
        per_tile = THREADS // layout.lanes
        for self.tile in (32, 16, 8):
            rows = layout.stride * (self.tile + len(pairs.bases) * (self.tile if pairs.separate else 1))
            self.shared = 4 * (rows + per_tile * (self.tile + 4) + state(self.tile) + 3 * self.tile)
            if self.shared <= _SHARED:
                break
        self.tiles, steps = -(-self.rows // self.tile), -(-self.count // per_tile)
        # Each part of the patterns leaves its own partial result: no more of them than the inputs take.
        most = max(1, (patterns.numel() + queries.numel()) // max(1, self.groups * self.rows * numbers))
        slots = _slots(layout.blocks, patterns)
        blocks = self.groups * self.tiles

        def cost(splits: int) -> int:
            return -(-blocks * splits // slots) * -(-steps // splits)

        self.per_split = per_tile * -(-steps // min(range(1, min(steps, most, 512) + 1), key=cost))
        self.splits = -(-self.count // self.per_split)

    def launch(self, kernel: str, bias: Tensor | None, *, peaks: Tensor, **arguments: Tensor | int) -> None:
        if self.groups * self.rows:
            patterns, queries, weights, observed, bases = self.pairs
            _launch(
                kernel,
                _recipe(self.layout, bases, observed),
                (self.groups * self.tiles, self.splits),
                THREADS,
                self.shared,
                patterns=_rows(patterns, self.layout),
                queries=_rows(queries, self.layout, observed),
                weights=_weights(weights, self.layout),
                # A pointer that is not used, where there is nothing to point at.
                bias=peaks if bias is None else bias.contiguous(),
                peaks=peaks,
                **arguments,
                pattern_count=self.count,
                query_count=self.rows,
                weight_groups=len(weights),
                own_weights=int(self.pairs.separate),
                has_bias=int(bias is not None),
                tiles=self.tiles,
                tile=self.tile,
                per_split=self.per_split,
            )


def _pull(pairs: Pairs, slopes: Tensor, *, query_owns: bool, inputs: bool, sums: bool = False) -> tuple[Tensor, Tensor]:
    """Gradients to the owners, one side of the pairs, and to the weights."""
    patterns, queries, weights, observed, bases = pairs
    (groups, count, dim), rows = patterns.shape, queries.shape[1]
    kernel = "pull" + "_inputs" * inputs + "_weights" * sums
    layout = _layout(kernel, dim)
    sides = [(_rows(patterns, layout), count, 1), (_rows(queries, layout, observed), rows, count)]
    (owners, owner_count, owner_step), (others, other_count, other_step) = sides[::-1] if query_owns else sides
    to_owners = torch.zeros_like(owners)
    shares = weights.new_zeros(*weights.shape[:3], layout.stride)
    if slopes.numel():
        threads = _threads(owner_count, layout)
        tiles = -(-owner_count * layout.lanes // threads)
        columns = 4 * threads * layout.values * inputs
        tile = max(1, min(16, (_SHARED - columns) // (4 * layout.stride), other_count))
        splits = min(-(-other_count // tile), max(1, 8 * _slots(3, patterns) // (groups * tiles)))
        _launch(
            kernel,
            _recipe(layout, bases, observed),
            (groups * tiles, splits),
            threads,
            4 * tile * layout.stride + columns,
            owners=owners,
            others=others,
            weights=_weights(weights, layout),
            slopes=slopes,
            to_owners=to_owners,
            to_weights=shares,
            owner_count=owner_count,
            other_count=other_count,
            owner_step=owner_step,
            other_step=other_step,
            weight_groups=len(weights),
            own_weights=int(pairs.separate),
            owner_is_query=int(query_owns),
            tiles=tiles,
            tile=tile,
            per_split=-(-other_count // splits),
        )
    return to_owners[..., :dim], shares[..., _places(layout, weights.device)]


def _combine(peaks: Tensor, sums: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """From the parts of a softmax: the factor of each part, the whole sum, and its log."""
    top = peaks.amax(0)
    # Where all patterns are excluded there is no largest score, and nothing to read out.
    shares = torch.where(peaks == -torch.inf, 0.0, (peaks - top).exp())
    total = (sums * shares).sum(0)
    return shares, torch.where(total == 0, 1.0, total), top + total.log()


# --- from tensors to the kernels' memory -------------------------------------------------------------------


# Up to this many dimensions lanes hold 64 values, and 32 beyond: as it measured best. Gradients keep more in registers.
_WIDE = {"scores": 256, "retrieve": 256, "pull_weights": 256, "pull_inputs": 128, "pull_inputs_weights": 0}


def _layout(kernel: str, dim: int) -> Layout:
    return cuda_text.layout(dim, 64 if dim <= _WIDE[kernel] else 32)


def _threads(count: int, layout: Layout) -> int:
    """Whole warps for so many pairs at a time, where a block of the usual size would stand half idle."""
    return min(THREADS, 32 * -(-count * layout.lanes // 32))


def _rows(tensor: Tensor, layout: Layout, observed: Tensor | None = None) -> Tensor:
    """Rows of whole vectors, with NaN where a dimension does not count."""
    if observed is not None:
        tensor = tensor.masked_fill(~observed, torch.nan)
    return torch.nn.functional.pad(tensor, (0, layout.stride - layout.dim), value=torch.nan).contiguous()


def _weights(weights: Tensor, layout: Layout) -> Tensor:
    """The weights in the order in which the lanes hold the sorted terms, zero past the last of them."""
    if layout.lanes == 1 and layout.stride == layout.dim:
        # Kernels read four numbers at once, from addresses that are whole vectors.
        return weights.contiguous() if weights.data_ptr() % 16 == 0 else weights.clone().contiguous()
    return torch.nn.functional.pad(weights, (0, 1))[..., _ranks(layout, weights.device)]


@lru_cache(maxsize=256)
def _ranks(layout: Layout, device: torch.device) -> Tensor:
    return torch.tensor([layout.rank(place) for place in range(layout.stride)], device=device)


@lru_cache(maxsize=256)
def _places(layout: Layout, device: torch.device) -> Tensor:
    """Where the weight of each rank lies in a row: the inverse of ``_ranks``."""
    ranks = [layout.rank(place) for place in range(layout.stride)]
    return torch.tensor([ranks.index(rank) for rank in range(layout.dim)], device=device)


def _recipe(layout: Layout, bases: Sequence[str], observed: Tensor | None) -> Recipe:
    return Recipe(layout, tuple(KINDS[base] for base in bases), observed is not None)


def _slots(blocks: int, like: Tensor) -> int:
    return blocks * torch.cuda.get_device_properties(like.device).multi_processor_count


def _most_shared(like: Tensor) -> int:
    return getattr(torch.cuda.get_device_properties(like.device), "shared_memory_per_block_optin", _SHARED)


def _launch(
    kernel: str, recipe: Recipe, grid: tuple[int, int], threads: int, shared: int, /, **arguments: Tensor | int
) -> None:
    """Run a kernel with the arguments that its text names."""
    ordered = in_order(kernel, arguments)
    device = next(argument.device for argument in ordered if isinstance(argument, Tensor))
    with torch.cuda.device(device):
        compiled = _compile(kernel, recipe, torch.cuda.current_device())
        if shared >= 48 * 1024:
            compiled.set_shared_memory_config(shared)
        compiled(grid=(*grid, 1), block=(threads, 1, 1), args=ordered, shared_mem=shared)


def in_order(kernel: str, arguments: dict[str, Tensor | int]) -> list[Tensor | int]:
    """The arguments in the order of the kernel's text, which knows them by their places alone."""
    wanted = cuda_text.parameters(kernel)
    if arguments.keys() != wanted.keys():
        raise TypeError(f"{kernel} takes {', '.join(wanted)}; got {', '.join(arguments)}")
    return [arguments[name] for name in wanted]


class Kernel(Protocol):
    """What PyTorch's compiler gives back."""

    def __call__(
        self, *, grid: tuple[int, int, int], block: tuple[int, int, int], args: list[Tensor | int], shared_mem: int
    ) -> None: ...

    def set_shared_memory_config(self, shared_mem_bytes: int) -> None: ...


@lru_cache(maxsize=512)
def _compile(kernel: str, recipe: Recipe, device: int) -> Kernel:
    return compile_text(recipe.text(kernel), cuda_text.entry(kernel))


def compile_text(text: str, entry: str) -> Kernel:
    """A function of some text, for the GPU that is current."""
    # The one place that knows PyTorch's private name for its run-time compiler.
    return torch.cuda._compile_kernel(text, entry)
