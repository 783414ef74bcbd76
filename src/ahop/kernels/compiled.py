"""How functions for the CPU are compiled: by numba, once for all processes where there is room for a cache."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

import numba
import torch

# Numbers are taken to be finite, sums may be made in any order, and the sign of a zero does not matter.
_FAST = {"nnan", "ninf", "nsz", "contract", "reassoc"}


def compiled(function: Callable[..., Any], inline: str = "never") -> Any:
    """Compile on the first call, without holding Python's lock while it runs.

    ``inline="always"`` puts a small function into those that call it.
    """
    compiler = partial(numba.njit, nogil=True, fastmath=_FAST, error_model="numpy", inline=inline)
    try:
        return compiler(cache=True)(function)
    except RuntimeError:
        # Nowhere to write a cache: compile in every process.
        return compiler()(function)


# Terms that take about as long as it takes to begin a thread.
_TERMS_PER_THREAD = 2**16


def share(count: int, work: Callable[[int, int, int], None], terms: int = _TERMS_PER_THREAD) -> None:
    """Spread work over PyTorch's threads.

    Args:
        count: The number of items.
        work: Called as ``work(first, last, part)`` on ranges of items, one for each thread that has any.
        terms: How much work an item is; a little is done by one thread.
    """
    parts = max(1, min(torch.get_num_threads(), count, count * terms // _TERMS_PER_THREAD))
    if parts == 1:
        work(0, count, 0)
        return
    ends = [count * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        # Each in a context of its own, with the caller's settings.
        contexts = [copy_context() for _ in range(parts)]
        list(pool.map(lambda own, *span: own.run(work, *span), contexts, ends[:-1], ends[1:], range(parts)))
