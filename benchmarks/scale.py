"""Recall from many patterns beside the plainest searches that there are: what it costs, and whether it is right.

Ratios of times measured in one run, medians over repetitions: ``python benchmarks/scale.py [--device cuda]``, on all
threads or on one GPU. Writes ``results/scale-cpu.json`` or ``results/scale-cuda.json``.

On a GPU there are two others: a dot product in float32 with the patterns as they are, and the best ten; and the same in
half precision, as many patterns at a time as keep the scores below half a gibibyte. On a CPU there are two, too:
a dot product in float32 of codes that are as good (what exact likelihoods cost without an index), and FAISS's exact
search of the patterns as they are. Both only find the nearest by a dot product, which is not the likeliest origin.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ahop
from ahop_paper import report

DIM, K, LEARNED, SAMPLES, SEED = 64, 10, 2048, 512, 0
DIFFICULTIES = (0.2, 0.3, 0.4, 0.5)


def uniform(count: int, dim: int = DIM, device: str = "cpu") -> Tensor:
    """Patterns whose values are uniform in -1 to 1, ``(N, d)``.

    Args:
        count: Number of patterns.
        dim: Of a pattern.
        device: Where they lie.
    """
    return torch.rand(count, dim, generator=torch.Generator().manual_seed(SEED)).mul_(2).sub_(1).to(device)


def learned(patterns: Tensor, difficulty: float) -> tuple[ahop.BayesianHopfield, ahop.variants.Variant]:
    """A memory of the patterns that has learned a corruption from some of them, and the corruption."""
    world = ahop.variants.Mixed(difficulty, difficulty, difficulty)
    some = patterns[:LEARNED]
    few = ahop.BayesianHopfield(some).fit(*world.sample(some, SAMPLES), hidden_causes=0, verbose=False)
    return ahop.BayesianHopfield(patterns, similarity=few.similarity), world


def seconds(work: Callable[[], Any], device: str, repetitions: int = 5) -> float:
    """The median time of some work.

    Args:
        work: What is timed.
        device: Where it runs.
        repetitions: How many to take the median of, after one that warms up.
    """
    times = []
    for repetition in range(repetitions + 1):
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        # The first one warms up.
        times += [time.perf_counter() - begin] if repetition else []
    return statistics.median(times)


def in_parts(queries: Tensor, patterns: Tensor, scores: int = 2**28) -> Tensor:
    """The best ten by a dot product, of the best ten of each part, with so many scores at a time.

    Args:
        queries: ``(Q, d)``.
        patterns: ``(N, d)``.
        scores: How many at a time.
    """
    part = max(K, scores // len(queries))
    best = [(queries @ some.mT).topk(K) for some in patterns.split(part)]
    values, indices = (torch.cat([found[place] for found in best], 1) for place in (0, 1))
    starts = torch.arange(len(best), device=queries.device).mul(part).repeat_interleave(K)
    return (indices + starts).gather(1, values.topk(K).indices)


def cuda_speed(count: int) -> Iterator[dict[str, Any]]:
    patterns = uniform(count, device="cuda")
    memory, world = learned(patterns, 0.4)
    queries = world.sample(patterns, 2000).queries
    halves = patterns.half()
    memory.index().recall(queries[:1])
    for batch in (1000, 1):
        some = queries[:batch]
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ours = seconds(lambda some=some: memory.index().recall(some, K), "cuda")
        peak = torch.cuda.max_memory_allocated() - before
        plain = seconds(lambda some=some: (some @ patterns.mT).topk(K), "cuda")
        half = seconds(lambda some=some: in_parts(some.half(), halves), "cuda")
        yield {
            "patterns": count,
            "queries": batch,
            "to_dot_product": round(ours / plain, 2),
            "to_half_precision": round(ours / half, 2),
            "milliseconds": round(1e3 * ours, 2),
            "dot_product_milliseconds": round(1e3 * plain, 2),
            "half_precision_milliseconds": round(1e3 * half, 2),
            "peak_mebibytes": round(peak / 2**20),
        }


def cpu_speed(count: int) -> Iterator[dict[str, Any]]:
    import faiss

    faiss.omp_set_num_threads(torch.get_num_threads())
    patterns = uniform(count)
    memory, world = learned(patterns, 0.4)
    queries = world.sample(patterns, 2000).queries
    codes = memory.as_inner_product(0.1)
    stored = torch.cat([codes.encode_patterns(part) for part in patterns.split(100_000)])
    flat = faiss.IndexFlatIP(DIM)
    flat.add(patterns.numpy())
    memory.index().recall(queries[:1])
    for batch in (200, 1):
        some = queries[:batch]
        repetitions = 5 if batch > 1 else 25
        ours = seconds(lambda some=some: memory.index().recall(some, K), "cpu", repetitions)
        product = seconds(
            lambda some=some: (codes.encode_queries(some) @ stored.mT).topk(K), "cpu", min(repetitions, 9)
        )
        search = seconds(lambda some=some: flat.search(some.numpy(), K), "cpu", min(repetitions, 9))
        yield {
            "patterns": count,
            "queries": batch,
            "to_product_of_codes": round(ours / product, 3),
            "to_faiss_flat": round(ours / search, 3),
        }


def agreement(count: int, dim: int, asked: int, device: str) -> Iterator[dict[str, Any]]:
    """How often recall by an index is exact recall, by difficulty.

    Args:
        count: Number of patterns.
        dim: Of a pattern.
        asked: Number of queries.
        device: Where both recall.
    """
    patterns = uniform(count, dim, device)
    for difficulty in DIFFICULTIES:
        memory, world = learned(patterns, difficulty)
        queries, origins = world.sample(patterns, asked)
        found, exact = memory.index().recall(queries, K), memory.recall_exactly(queries, K)
        common = (found.indices[:, :, None] == exact.indices[:, None, :]).any(-1)
        gaps = (found.probabilities - exact.probabilities).abs()[:, 0]
        yield {
            "patterns": count,
            "dim": dim,
            "difficulty": difficulty,
            "queries": asked,
            "right": round(float((exact.indices[:, 0] == origins.to(device)).double().mean()), 4),
            "first": round(float((found.indices[:, 0] == exact.indices[:, 0]).double().mean()), 4),
            "ten": round(float(common.double().mean()), 4),
            "probability_mean": round(float(gaps.mean()), 5),
            "probability_worst": round(float(gaps.max()), 5),
        }


def growth(device: str) -> Iterator[dict[str, Any]]:
    """The time a query at 600,000 patterns beside 500,000, and adding and removing 1,000 beside making it anew."""
    times = {}
    for count in (500_000, 600_000):
        memory, world = learned(uniform(count, device=device), 0.4)
        queries = world.sample(memory.patterns, 50).queries
        times[count] = seconds(lambda memory=memory, queries=queries: memory.index().recall(queries, K), device, 9)
    yield {"growth": round(times[600_000] / times[500_000], 3)}
    patterns, more = uniform(10**6, device=device), uniform(1000, device=device)
    memory, _ = learned(patterns, 0.4)
    made = seconds(lambda: ahop.index.Index(memory).recall(more[:1]), device, 3)
    memory.index()
    added = seconds(lambda: memory.add(more).index().recall(more[:1]), device, 3)
    removed = seconds(lambda: memory.remove(torch.arange(1000)).index().recall(more[:1]), device, 3)
    yield {"add_to_making": round(added / made, 3), "remove_to_making": round(removed / made, 3)}


def main(device: str, quick: bool) -> None:
    sizes = (20_000,) if quick else (10**6, 10**7) if device == "cuda" else (10**5, 10**6)
    config = {"device": device, "threads": torch.get_num_threads(), "k": K, "seed": SEED, "quick": quick}
    head = report.stamp("scale", config, __file__, () if device == "cuda" else ("faiss",))
    result: dict[str, Any] = {**head, "rows": []}
    target = Path(__file__).parent.parent / "results" / f"scale-{device}.json"
    cases = [(10**6, 64, 2000)] if device == "cuda" else [(10**5, 16, 2000), (10**5, 64, 2000), (20_000, 784, 500)]
    parts = [(cuda_speed if device == "cuda" else cpu_speed)(count) for count in sizes]
    parts += [agreement(*(case if not quick else (20_000, 64, 100)), device) for case in cases]
    parts += [] if quick else [growth(device)]
    for row in itertools.chain(*parts):
        result["rows"].append(row)
        print(row, flush=True)
        if not quick:
            report.write(result, target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true", help="a few patterns, to see that it works; writes nothing")
    asked = parser.parse_args()
    sys.exit(main(asked.device, asked.quick))
