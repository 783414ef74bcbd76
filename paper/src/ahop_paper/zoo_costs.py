"""What a memory holds and what a query costs: capacity, time and extra memory."""

from __future__ import annotations

import copy
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.memories.base import AssociativeMemory
from ahop.variants import Mixed, Samples
from ahop_paper.baselines import Compared
from ahop_paper.zoo_memories import Beside, Made, Model
from ahop_paper.zoo_worlds import uniform

# Dimensions; how many patterns a memory that learns meets before the others are added, and with how many queries.
DIM, LEARNED, SAMPLES = 64, 256, 256
# Of a query's values so many are flipped, and so many of the queries may fail, of how many.
FLIPPED, FAILING, ASKED = 0.1, 0.01, 200
# Queries at once; turns that are left out, in which kernels are compiled and chosen and an index is made; and when
# enough was measured: so many turns, or so many seconds and a few turns.
BATCH, LEFT_OUT, REPETITIONS, ENOUGH, FEWEST = 8, 3, 101, 1.0, 3


# --- capacity -------------------------------------------------------------------------------------------------


@torch.no_grad()
def capacity(model: Model, seed: int, most: int) -> int:
    """How many random patterns of -1 and +1 are stored before more than 1 % of queries fail, up to ``most``.

    A tenth of a query's values are flipped; it fails where a sign of what is read out in one step is wrong. What
    learns, learns from 256 patterns. Found by doubling, and then to a sixteenth by bisection.

    Args:
        model: What stores them.
        seed: Seed of patterns and flips.
        most: The most patterns to try.
    """
    draw = torch.Generator().manual_seed(seed)
    patterns = torch.randint(0, 2, (most, DIM), generator=draw) * 2.0 - 1
    first = patterns[: min(LEARNED, most)]
    made = model.build(first, _flipped(first, SAMPLES, draw))

    def holds(count: int) -> bool:
        memory = _resized(made, patterns, count)
        asked = _flipped(patterns[:count], ASKED, draw)
        right = (memory.retrieve(asked.queries).sign() == memory.readouts[asked.origins]).all(1)
        return float((~right).double().mean()) <= FAILING

    return largest(holds, most)


def largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest count that holds, to a sixteenth; 0 if two are too many.

    Example:
        >>> largest(lambda count: count <= 9, 1024), largest(lambda count: True, 1024)
        (9, 1024)
    """
    # First, since most memories hold all, and that says the same of any fewer.
    if holds(most):
        return most
    low, high = 0, 2
    while high < most and holds(high):
        low, high = high, 2 * high
    while low and high - low > max(1, low // 16):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _flipped(patterns: Tensor, count: int, draw: torch.Generator) -> Samples:
    origins = torch.randint(len(patterns), (count,), generator=draw)
    kept = torch.rand(count, patterns.shape[1], generator=draw) >= FLIPPED
    return Samples(torch.where(kept, patterns[origins], -patterns[origins]), origins)


def _resized(made: Made, patterns: Tensor, count: int) -> AssociativeMemory | Beside:
    """A copy of the memory with so many patterns."""
    memory = copy.deepcopy(made.memory)
    assert not isinstance(memory, Compared)
    if count < len(memory):
        return memory.remove(torch.arange(count, len(memory)))
    return memory.add(patterns[len(memory) : count]) if count > len(memory) else memory


# --- time and memory ------------------------------------------------------------------------------------------


def cost(model: Model, counts: tuple[int, ...], device: str) -> list[dict[str, Any]]:
    """What a query costs in batches of 8, by numbers of stored patterns, on one thread of a CPU.

    Time is that beside the dot products of the same queries with the same patterns. Extra bytes are what torch
    allocates and, on a CPU, numpy, beyond what the memory keeps: its patterns and, where it has one, its index.

    Args:
        model: How the memory is made.
        counts: Numbers of stored patterns.
        device: Where it recalls.
    """
    patterns = uniform(max(counts), DIM, 0)
    world = Mixed(0.4, 0.4, 0.4)
    with _one_thread():
        made = model.build(patterns[:LEARNED], world.sample(patterns[:LEARNED], SAMPLES))
        assert not isinstance(made.memory, Compared)
        memory, centre = made.memory.to(device), None if made.centre is None else made.centre.to(device)
        made = made._replace(memory=memory, centre=centre)
        asked = world.sample(patterns, BATCH).queries.to(device)
        queries = made.place(asked)
        found = []
        for count in sorted(counts):
            stored = patterns[:count].to(device)
            made.store(stored[len(memory) :])
            recall = partial(memory.recall, queries)
            took = ratio(recall, partial(torch.matmul, asked, stored.T), device)
            row = {
                "patterns": count,
                "times": took.times,
                "quartiles": took.quartiles,
                "bytes": _peak(recall, device) / BATCH,
            }
            # An absolute time means something on one kind of machine alone.
            found.append({**row, "product_seconds": took.beside} if torch.device(device).type == "cuda" else row)
    return found


class Ratio(NamedTuple):
    """How many times as long one takes as the other: the median of all turns and between which quartiles half of them
    lie; and the median of what the other takes, in seconds."""

    times: float
    quartiles: tuple[float, float]
    beside: float


def ratio(one: Callable[[], Any], other: Callable[[], Any], device: str) -> Ratio:
    """How many times as long ``one`` takes; by turns, so that what else the machine does is felt by both alike.

    The first few turns do not count.
    """
    for _ in range(LEFT_OUT):
        one(), other()
    turns: list[tuple[float, float]] = []
    while len(turns) < REPETITIONS and (len(turns) < FEWEST or sum(map(sum, turns)) < ENOUGH):
        turns.append((_timed(one, device), _timed(other, device)))
    low, middle, high = statistics.quantiles((took / beside for took, beside in turns), n=4, method="inclusive")
    return Ratio(middle, (low, high), statistics.median(beside for _, beside in turns))


def _timed(work: Callable[[], Any], device: str) -> float:
    """Seconds; those of a CPU do not count while another process has it."""
    on_gpu = torch.device(device).type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    begin = clock()
    work()
    if on_gpu:
        torch.cuda.synchronize(device)
    return clock() - begin


def _peak(work: Callable[[], Any], device: str) -> int:
    """The most bytes that are allocated at once."""
    if torch.device(device).type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    # Kernels of numba write to arrays of numpy, which tell this module of themselves.
    tracemalloc.start()
    try:
        with _silent(), torch.autograd.profiler.profile(profile_memory=True, use_kineto=False) as profile:
            work()
        arrays = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    events = sorted(profile.function_events, key=lambda event: event.time_range.start)
    return arrays + max(accumulate((event.self_cpu_memory_usage for event in events), initial=0))


@contextmanager
def _silent() -> Iterator[None]:
    """Without what the profiler writes past Python to standard error."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
