"""How long learning a likelihood takes beside the convex a-hop fit, and scoring by codes beside scoring directly.

Ratios of times measured in one run, medians over repetitions: ``python benchmarks/likelihood.py``.
Writes ``results/likelihood.json``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import ahop
from ahop.paper import report

PATTERNS, DIM, SAMPLES, QUERIES, REPETITIONS = 2048, 64, 512, 1000, 5
# The tolerances to choose from: the largest that keeps enough of the first choices is timed.
TOLERANCES = (0.3, 0.1, 0.03, 0.01)
KEPT = 0.995


def seconds(work: Callable[[], Any], repetitions: int = REPETITIONS) -> float:
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


@torch.no_grad()
def products_against_terms(memory: ahop.BayesianHopfield, queries: torch.Tensor) -> dict[str, Any]:
    likelihood, patterns = memory.similarity, memory.patterns
    everything = torch.ones_like(queries, dtype=torch.bool)

    def direct() -> torch.Tensor:
        # A mask that leaves nothing out asks for every term.
        return likelihood(patterns, queries, everything)

    exact = direct().argmax(1)
    for tolerance in TOLERANCES:
        codes = memory.as_inner_product(tolerance)
        stored = codes.encode_patterns(patterns)
        kept = float((exact == (codes.encode_queries(queries) @ stored.T).argmax(1)).double().mean())
        if kept >= KEPT:
            break
    ratio = seconds(direct) / seconds(lambda: codes.encode_queries(queries) @ stored.T)
    return {"tolerance": tolerance, "rank": codes.rank, "kept": kept, "codes_ratio": round(ratio, 1)}


def compare(difficulty: float) -> dict[str, Any]:
    patterns = torch.rand(PATTERNS, DIM, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = ahop.variants.Mixed(difficulty, difficulty, difficulty)
    seen, test = world.sample(patterns, SAMPLES), world.sample(patterns, QUERIES)
    bayesian = seconds(lambda: ahop.BayesianHopfield(patterns).fit(*seen))
    adaptive = seconds(lambda: ahop.AdaptiveHopfield(patterns).fit(*seen), 2)
    memory = ahop.BayesianHopfield(patterns).fit(*seen)
    row = {"difficulty": difficulty, "fit_ratio": round(adaptive / bayesian, 1)}
    return row | products_against_terms(memory, test.queries)


def main() -> None:
    config = {
        "patterns": PATTERNS,
        "dim": DIM,
        "samples": SAMPLES,
        "queries": QUERIES,
        "threads": torch.get_num_threads(),
        "seed": 0,
    }
    head = report.stamp("likelihood", config, __file__)
    rows = []
    for difficulty in (0.4, 0.5):
        rows.append(compare(difficulty))
        print(rows[-1])
    target = Path(__file__).parent.parent / "results" / "likelihood.json"
    report.write({**head, "rows": rows}, target)
    print(f"report: {target.name}")


if __name__ == "__main__":
    main()
