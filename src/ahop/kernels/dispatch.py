"""Which kernels run: the fast ones where they can and where it pays, the reference everywhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ahop._checks import choice
from ahop.kernels.reference import Pairs

BACKENDS = ("reference", "cpu", "cuda")
# Terms that the reference sorts before the fast kernels are compiled: a small problem never waits for a compiler,
# and one that comes again and again waits once.
_PATIENCE = {"cpu": 2**25, "cuda": 2**30}
_MOST_DIMENSIONS = {"cpu": 4096, "cuda": 1024}
# For the weights of all of them to fit beside a query in 1,024 dimensions.
_MOST_BASES = 8

_forced: str | None = None
_last = "reference"
_sorted_so_far: Counter[tuple[str, int]] = Counter()


@contextmanager
def use(backend: str) -> Iterator[None]:
    """Run all footprints on one backend, whatever their size; an error where it cannot.

    Args:
        backend: ``"reference"`` (plain PyTorch), ``"cpu"`` or ``"cuda"``.

    Example:
        >>> memory = ahop.AdaptiveHopfield(torch.eye(3))
        >>> with ahop.kernels.use("cpu"):
        ...     scores = memory.scores(torch.eye(3))
        >>> ahop.kernels.last_used()
        'cpu'
    """
    global _forced
    before, _forced = _forced, choice(backend, "backend", BACKENDS)
    try:
        yield
    finally:
        _forced = before


def last_used() -> str:
    """The backend that ran last: ``"reference"``, ``"cpu"`` or ``"cuda"``."""
    return _last


def kernels_for(pairs: Pairs) -> Any:
    """The module whose kernels score these pairs.

    A call may run on the reference and the same call later on compiled kernels: the last digits then differ.
    """
    global _last
    patterns, queries, _, _, bases = pairs
    name = _forced or patterns.device.type
    if name not in BACKENDS:
        name = "reference"
    if name != "reference":
        obstacle = _obstacle(name, patterns, bases)
        if obstacle and _forced:
            raise ValueError(f"the {name} kernels cannot run this: {obstacle}")
        if obstacle or not (_forced or _worth_compiling(name, patterns, queries, bases)):
            name = "reference"
    try:
        kernels = import_module(f"ahop.kernels.{name}")
    except ImportError as error:
        # The compiler may lag behind a new Python or NumPy.
        if _forced:
            raise ValueError(f"the {name} kernels cannot run this: {error}") from error
        name, kernels = "reference", import_module("ahop.kernels.reference")
    _last = name
    return kernels


def _obstacle(name: str, patterns: Tensor, bases: Sequence[str]) -> str | None:
    if patterns.device.type != name:
        return f"the patterns are on {patterns.device}"
    if patterns.dtype != torch.float32:
        return f"they compute in float32, and the patterns are {patterns.dtype}"
    if patterns.shape[-1] > _MOST_DIMENSIONS[name]:
        return f"they take up to {_MOST_DIMENSIONS[name]} dimensions, got {patterns.shape[-1]}"
    if name == "cuda":
        if len(bases) > _MOST_BASES:
            return f"they take up to {_MOST_BASES} bases, got {len(bases)}"
        if torch.version.hip or not hasattr(torch.cuda, "_compile_kernel"):
            return "this PyTorch cannot compile CUDA at run time"
        if torch.are_deterministic_algorithms_enabled():
            return "their gradients are not deterministic, which was asked for"
    return None


def _worth_compiling(name: str, patterns: Tensor, queries: Tensor, bases: Sequence[str]) -> bool:
    # The CPU's kernels are compiled once for all dimensions, the GPU's for each number of them.
    key = (name, patterns.shape[-1] if name == "cuda" else 0)
    _sorted_so_far[key] += patterns.numel() * queries.shape[1] * len(bases)
    return _sorted_so_far[key] >= _PATIENCE[name]
