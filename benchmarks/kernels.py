"""The fast footprints beside the best that one could write without them: ratios of times of one run, and peak memory.

``python benchmarks/kernels.py --device cpu`` (or ``cuda``) prints the tables and writes ``results/kernels-arm.json``
(or ``-x86``, since processors sort differently; or ``-cuda``).
Times themselves are given for a GPU alone: processors differ too much for theirs to mean anything elsewhere.

Beside the scores stand the definition in PyTorch, which sorts by ``torch.sort``; on a CPU NumPy's vectorised sort, in
chunks that stay in cache and on as many threads; on a GPU the definition under ``torch.compile``. Beside the recall of
the best five stands, on a CPU, a flat FAISS search: it sorts nothing and finds the nearest, which is another answer.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits
from torch import Tensor

import ahop
from ahop import kernels
from ahop.kernels import network
from ahop_paper import report

BASES = ["distance", "dot"]
# Dimensions, patterns and queries: as many pairs as the definition can hold.
SIZES = {
    "cpu": [(16, 2048, 256), (32, 2048, 256), (64, 2048, 256), (128, 2048, 128), (256, 2048, 64), (784, 1024, 32)],
    "cuda": [
        *((16, 16384, 2048), (32, 16384, 2048), (64, 16384, 2048)),
        *((128, 8192, 2048), (256, 4096, 2048), (784, 2048, 1024), (1000, 2048, 1024)),
    ],
}
# Numbers in a chunk for NumPy, up to all patterns for a query: the fastest is taken.
CHUNKS = (2**13, 2**15, 2**17, 2**20)
BEST = 5
SWEEP = {"cpu": (2048, 64, 128), "cuda": (8192, 64, 2048)}
REPETITIONS = 7
# Calls between two marks of a GPU's clock.
CALLS = 4


def definition(patterns: Tensor, queries: Tensor, weights: Tensor) -> Tensor:
    """What the kernels compute, as one would write it.

    Args:
        patterns: ``(N, d)``.
        queries: ``(Q, d)``.
        weights: Of the sorted terms of each base, ``(2, d)``.
    """
    distances = -(patterns - queries[:, None]).square()
    products = patterns * queries[:, None]
    return (
        distances.sort(dim=-1, descending=True).values @ weights[0]
        + products.sort(dim=-1, descending=True).values @ weights[1]
    )


def by_numpy(patterns: Tensor, queries: Tensor, weights: Tensor, chunk: int) -> Tensor:
    """The same by NumPy's sort, in place and upwards, so that of the terms it sorts the negatives.

    Args:
        patterns, queries, weights: As in :func:`definition`.
        chunk: How many numbers to sort at a time.
    """
    stored, asked, own = patterns.numpy(), queries.numpy(), weights.numpy()
    step = max(1, min(len(stored), chunk // stored.shape[1]))
    table = np.empty((len(asked), len(stored)), np.float32)

    def score(rows: range) -> None:
        space = np.empty((step, stored.shape[1]), np.float32)
        for row in rows:
            for first in range(0, len(stored), step):
                some = stored[first : first + step]
                terms, scores = space[: len(some)], table[row, first : first + step]
                np.subtract(some, asked[row], out=terms)
                np.square(terms, out=terms)
                terms.sort()
                np.matmul(terms, -own[0], out=scores)
                np.multiply(some, -asked[row], out=terms)
                terms.sort()
                scores -= terms @ own[1]

    threads = torch.get_num_threads()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        list(pool.map(score, [range(part, len(asked), threads) for part in range(threads)]))
    return torch.from_numpy(table)


def by_faiss(patterns: Tensor, queries: Tensor) -> Callable[[], Any]:
    """The nearest patterns by Euclidean distance, one with another."""
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    index = faiss.IndexFlatL2(patterns.shape[1])
    index.add(patterns.numpy())
    return lambda: index.search(queries.numpy(), BEST)


class Clock:
    """Medians of times, and peaks of memory, on one device."""

    def __init__(self, device: str) -> None:
        self.device = device

    def milliseconds(self, work: Callable[[], Any], repetitions: int = REPETITIONS) -> float:
        return self.together([work], repetitions)[0]

    def together(self, works: list[Callable[[], Any]], repetitions: int = REPETITIONS) -> list[float]:
        """Medians, of runs by turns, so that what else the machine does is felt by all alike."""
        for work in works:
            work()
        times = [[self._once(work) for work in works] for _ in range(repetitions)]
        return [statistics.median(column) for column in zip(*times, strict=True)]

    def _once(self, work: Callable[[], Any]) -> float:
        """On a GPU the time between its own marks, with several calls under way, as in a program."""
        self.wait()
        if self.device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(CALLS):
                work()
            end.record()
            self.wait()
            return begin.elapsed_time(end) / CALLS
        start = time.perf_counter()
        work()
        return 1e3 * (time.perf_counter() - start)

    def peak(self, work: Callable[[], Any]) -> int | None:
        """Bytes at the peak beyond those at the start, results included; None where that cannot be told."""
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            work()
            return torch.cuda.max_memory_allocated() - before
        try:
            # Linux: forget the highest resident size so far.
            Path("/proc/self/clear_refs").write_text("5")
            before = _resident("VmRSS")
            work()
            return max(0, _resident("VmHWM") - before)
        except (OSError, StopIteration):
            # Elsewhere.
            return None

    def wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def _resident(line: str) -> int:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(entry.split()[1]) for entry in status if entry.startswith(line))


def inputs(dim: int, count: int, rows: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Patterns, queries and weights, as in :func:`definition`.

    Args:
        dim: Of a pattern, d.
        count: Number of patterns, N.
        rows: Number of queries, Q.
        device: Where they lie.
    """
    generator = torch.Generator().manual_seed(0)
    patterns, queries = torch.randn(count, dim, generator=generator), torch.randn(rows, dim, generator=generator)
    weights = torch.linspace(1.5, 0.5, dim).repeat(2, 1) / dim
    return patterns.to(device), queries.to(device), weights.to(device)


def comparators(dim: int) -> int:
    """Comparators of one sort by the GPU's kernels: each is a minimum and a maximum."""
    from ahop.kernels import cuda

    layout = cuda._layout("scores", dim)
    steps = [step for stage in network.lane_steps(layout.values, layout.lanes) for step in stage]
    inside = sum(isinstance(step, network.Compare) for step in steps) * layout.lanes
    # In an exchange each of two lanes takes one of minimum and maximum.
    return inside + (len(steps) - inside // layout.lanes) * layout.values * layout.lanes // 2


def compare(dim: int, count: int, rows: int, device: str) -> dict[str, Any]:
    """Times, memory and errors of the kernels beside those of the definition.

    Args:
        dim, count, rows, device: As in :func:`inputs`.
    """
    clock, data = Clock(device), inputs(dim, count, rows, device)
    patterns, queries, weights = data
    row: dict[str, Any] = {"dim": dim, "patterns": count, "queries": rows}
    with torch.no_grad():
        few = [tensor.double() for tensor in (patterns[:500], queries[:20], weights)]
        exact = definition(*few)
        eager = clock.milliseconds(lambda: definition(*data), 3)
        eager_peak = clock.peak(lambda: definition(*data))
        if device == "cuda":
            torch.cuda.empty_cache()
        with kernels.use(device):
            clock.wait()
            begin = time.perf_counter()
            ours = kernels.scores(patterns[:500], queries[:20], weights, BASES)
            clock.wait()
            first = time.perf_counter() - begin
            row["error"] = float((ours.double() - exact).norm() / exact.norm())
            scores = clock.milliseconds(lambda: kernels.scores(*data, BASES))
            peak = clock.peak(lambda: kernels.scores(*data, BASES))
            kernels.retrieve(patterns[:500], queries[:20], weights, BASES, patterns[:500])
            retrieve = clock.milliseconds(lambda: kernels.retrieve(*data, BASES, patterns))
            lean = clock.peak(lambda: kernels.retrieve(*data, BASES, patterns))
            recall = clock.milliseconds(lambda: kernels.recall(*data, BASES, BEST))
            others = beside(device, clock, data, exact)
    held = 4 * (patterns.numel() + queries.numel() + weights.numel())
    row |= {
        "scores_ratio": round(eager / scores, 1),
        "retrieve_over_scores": round(retrieve / scores, 2),
        "recall_over_scores": round(recall / scores, 2),
        **others,
    }
    # Beside the definition's tensors, those of the kernels do not show in what a process has resident.
    row["eager_peak_mib"] = None if eager_peak is None else round(eager_peak / 2**20, 1)
    if device == "cuda":
        assert peak is not None and lean is not None
        row |= {
            "peak_mib": round(peak / 2**20, 1),
            "peak_over_data": round(peak / (held + 4 * count * rows), 2),
            "retrieve_peak_over_data": round(lean / (held + 4 * queries.numel()), 2),
        }
        row |= {"scores_ms": round(scores, 3), "eager_ms": round(eager, 1), "first_use_s": round(first, 2)}
        row["tera_min_max"] = round(2 * 2 * comparators(dim) * count * rows / (1e9 * scores), 1)
    return row | gradients(dim, count // 2, rows, device)


def beside(device: str, clock: Clock, data: tuple[Tensor, Tensor, Tensor], exact: Tensor) -> dict[str, Any]:
    """What else one could write, by turns with the kernels.

    Args:
        device: Where the kernels run.
        clock: What measures.
        data: Patterns, queries and weights.
        exact: Scores of the first 20 queries and 500 patterns, in float64.
    """
    few = data[0][:500], data[1][:20], data[2]

    def scores() -> Tensor:
        return kernels.scores(*data, BASES)

    if device == "cuda":
        made = torch.compile(definition, dynamic=False)
        try:
            _agree(made(*few), exact)
            ours, took = clock.together([scores, lambda: made(*data)], 3)
        except RuntimeError as error:
            # No compiler, or no room.
            print(f"torch.compile: {error}")
            return {"compiled_ratio": None, "compiled_ms": None}
        torch.cuda.empty_cache()
        return {"compiled_ratio": round(took / ours, 1), "compiled_ms": round(took, 1)}
    ours, *chunked = clock.together([scores, *(partial(by_numpy, *data, chunk) for chunk in CHUNKS)])
    took, chunk = min(zip(chunked, CHUNKS, strict=True))
    _agree(by_numpy(*few, chunk), exact)
    recall, flat = clock.together([lambda: kernels.recall(*data, BASES, BEST), by_faiss(*data[:2])])
    return {
        "numpy_ratio": round(took / ours, 1),
        "numpy_chunk": chunk,
        "recall_over_faiss": round(recall / flat, 1),
    }


def _agree(found: Tensor, exact: Tensor) -> None:
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)


def gradients(dim: int, count: int, rows: int, device: str) -> dict[str, Any]:
    """Forward and backward, to everything and to the weights alone, beside autograd through the definition.

    Args:
        dim, count, rows, device: As in :func:`inputs`.
    """
    clock = Clock(device)
    leaves = [tensor.requires_grad_() for tensor in inputs(dim, count, rows, device)]
    slopes = torch.randn(rows, count, generator=torch.Generator().manual_seed(1)).to(device)

    def through(scores: Callable[[], Tensor], wanted: list[Tensor]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(scores(), wanted, slopes)

    def fast() -> Tensor:
        return kernels.scores(*leaves, BASES)

    patterns, queries = leaves[0].detach(), leaves[1].detach()
    with kernels.use(device):
        begin = time.perf_counter()
        through(fast, leaves)()
        clock.wait()
        first_gradients = time.perf_counter() - begin
        every = clock.milliseconds(through(fast, leaves))
        alone = clock.milliseconds(through(lambda: kernels.scores(patterns, queries, leaves[2], BASES), leaves[2:]))
    eager = clock.milliseconds(through(lambda: definition(*leaves), leaves), 3)
    eager_alone = clock.milliseconds(through(lambda: definition(patterns, queries, leaves[2]), leaves[2:]), 3)
    found = {"gradients_ratio": round(eager / every, 1), "weight_gradient_ratio": round(eager_alone / alone, 1)}
    if device == "cuda":
        torch.cuda.empty_cache()
        found |= {"gradients_ms": round(every, 2), "first_gradients_s": round(first_gradients, 2)}
    return found


def sweep(device: str) -> list[dict[str, Any]]:
    """How the time of scores grows from a middle size, one of N, d and Q at a time."""
    clock, (count, dim, rows) = Clock(device), SWEEP[device]
    sizes = [(count * factor // 4, dim, rows) for factor in (1, 2, 4, 8, 16)]
    sizes += [(count, size, rows) for size in (16, 32, 64, 96, 128, 200, 256, 512)]
    sizes += [(count, dim, rows * factor // 4) for factor in (1, 2, 4, 8, 16)]
    rows_found = []
    with kernels.use(device), torch.no_grad():
        for patterns, size, queries in dict.fromkeys(sizes):
            data = inputs(size, patterns, queries, device)
            took = clock.milliseconds(lambda data=data: kernels.scores(*data, BASES))
            rows_found.append({"patterns": patterns, "dim": size, "queries": queries, "took": took})
    middle = next(
        row["took"] for row in rows_found if (row["patterns"], row["dim"], row["queries"]) == (count, dim, rows)
    )
    for row in rows_found:
        row["relative"] = round(row.pop("took") / middle, 2)
    return rows_found


def learning(device: str) -> dict[str, Any]:
    """The convex fit of a-hop, N 2048, d 64, 512 samples; and retrieval at N 8192 in batches of 1,024."""
    clock = Clock(device)
    patterns = (torch.rand(8192, 64, generator=torch.Generator().manual_seed(0)) * 2 - 1).to(device)
    world = ahop.variants.Mixed(0.4, 0.4, 0.4)
    few = patterns[:2048].contiguous()
    train = world.sample(few, 512)
    queries = world.sample(patterns, 1024).queries
    memory = ahop.AdaptiveHopfield(few)
    with kernels.use(device), torch.no_grad():
        fit = clock.milliseconds(lambda: ahop.AdaptiveHopfield(few).fit(*train))
        chosen = clock.milliseconds(lambda: ahop.AdaptiveHopfield(few).fit(*train, smoothness=1e-4))
        memory.fit(*train)
        large = ahop.AdaptiveHopfield(patterns)
        large.similarity.load_state_dict(memory.similarity.state_dict())
        query = clock.milliseconds(lambda: large.retrieve(queries)) / 1024
    return {
        "fit_ms": round(fit, 1),
        "fit_given_smoothness_ms": round(chosen, 1),
        "loss": memory.report.loss,
        "query_ms": round(query, 5),
    }


def show(title: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:.1e}" if key == "error" else str(value) for key, value in row.items()))
    Console(width=200).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=SIZES, default="cpu")
    device = parser.parse_args().device
    config = {"bases": BASES, "device": device, "threads": torch.get_num_threads(), "seed": 0}
    head = report.stamp("kernels", config, __file__)
    rows = []
    for dim, count, queries in SIZES[device]:
        rows.append(compare(dim, count, queries, device))
        print(rows[-1], flush=True)
    show("Footprint kernels beside what one could write without them", rows)
    growth = sweep(device)
    show("Time of scores, relative to the middle size", growth)
    result = {**head, "rows": rows, "sweep": growth}
    if device == "cuda":
        result["learning"] = learning(device)
        show("Learning and retrieving", [result["learning"]])
    processor = "arm" if platform.machine().lower() in ("aarch64", "arm64") else "x86"
    name = f"kernels-{processor if device == 'cpu' else device}.json"
    target = Path(__file__).parent.parent / "results" / name
    report.write(result, target)
    print(f"report: {target.name}")


if __name__ == "__main__":
    main()
