"""Which kernels run: the fast ones where they can and where it pays, the reference everywhere else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ahop._checks import choice
from ahop._setting import Setting
from ahop.kernels.backend import Backend, Pairs
from ahop.kernels.cuda import Cuda
from ahop.kernels.reference import Reference


def _cpu() -> Backend:
    # On first use, because the compiler takes a second to import.
    from ahop.kernels.cpu import Cpu

    return Cpu()


_LOADERS: dict[str, Callable[[], Backend]] = {"reference": Reference, "cpu": _cpu, "cuda": Cuda}
# Terms that the reference sorts before the fast kernels are compiled: a small problem never waits for a compiler,
# and one that comes again and again waits once.
_PATIENCE = {"cpu": 2**25, "cuda": 2**30}
_MOST_DIMENSIONS = {"cpu": 4096, "cuda": 1024}
# For the weights of all of them to fit beside a query in 1,024 dimensions.
_MOST_BASES = 8

_forced: Setting[str | None] = Setting(None)
_last = "reference"
_sorted_so_far: Counter[tuple[str, int]] = Counter()


@contextmanager
def use(backend: str) -> Iterator[None]:
    """Run all footprints of this thread on one backend, whatever their size; an error where it cannot.

    Args:
        backend: ``"reference"`` (plain PyTorch), ``"cpu"`` or ``"cuda"``.

    Example:
        >>> memory = ahop.AdaptiveHopfield(torch.eye(3))
        >>> with ahop.kernels.use("cpu"):
        ...     scores = memory.scores(torch.eye(3))
        >>> ahop.kernels.last_used()
        'cpu'
    """
    with _forced.set_to(choice(backend, "backend", tuple(_LOADERS))):
        yield


def last_used() -> str:
    """The backend that ran last: ``"reference"``, ``"cpu"`` or ``"cuda"``."""
    return _last


def backend_for(pairs: Pairs) -> Backend:
    """What scores these pairs.

    A call may run on the reference and the same call later on compiled kernels: the last digits then differ.
    """
    global _last
    name = _chosen(pairs)
    try:
        backend = _LOADERS[name]()
    except ImportError as error:
        # The compiler may lag behind a new Python or NumPy.
        if _forced.value:
            raise ValueError(f"the {name} kernels cannot run this: {error}") from error
        name, backend = "reference", Reference()
    _last = name
    return backend


def _chosen(pairs: Pairs) -> str:
    """The forced backend, or that of the patterns' device where it can run and pays."""
    forced = _forced.value
    name = forced or pairs.patterns.device.type
    obstacle = _obstacle(name, pairs)
    if not forced:
        return name if obstacle is None and _worth_compiling(name, pairs) else "reference"
    if obstacle:
        raise ValueError(f"the {name} kernels cannot run this: {obstacle}")
    return name


def _obstacle(name: str, pairs: Pairs) -> str | None:
    """Why a backend cannot run, or None."""
    patterns, bases = pairs.patterns, pairs.bases
    if name == "reference":
        return None
    if name not in _LOADERS:
        return f"there are none for {name}"
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


def _worth_compiling(name: str, pairs: Pairs) -> bool:
    # The CPU's kernels are compiled once for all dimensions, the GPU's for each number of them.
    key = (name, pairs.patterns.shape[-1] if name == "cuda" else 0)
    _sorted_so_far[key] += pairs.patterns.numel() * pairs.queries.shape[1] * len(pairs.bases)
    return _sorted_so_far[key] >= _PATIENCE[name]
