"""How long learning a likelihood takes beside the convex a-hop fit, and scoring by codes beside a plain dot product.

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
from ahop_paper import report

PATTERNS, DIM, SAMPLES, QUERIES, REPETITIONS = 2048, 64, 512, 1000, 5
# The tolerances to choose from: the largest that keeps enough of the first choices is timed.
TOLERANCES = (0.3, 0.1, 0.03, 0.01)
KEPT = 0.995


def ratio(one: Callable[[], Any], other: Callable[[], Any], repetitions: int = REPETITIONS) -> float:
    """How many times as long ``one`` takes; by turns, so that what else the machine does is felt by both alike.

    Args:
        one, other: The work to compare.
        repetitions: How many turns to take the median of.
    """
    times: list[tuple[float, float]] = []
    # The first turn compiles, and is left out.
    for _ in range(1 + repetitions):
        marks = [time.perf_counter()]
        for work in (one, other):
            work()
            marks.append(time.perf_counter())
        times.append((marks[1] - marks[0], marks[2] - marks[1]))
    took, other_took = (statistics.median(column) for column in zip(*times[1:], strict=True))
    return round(took / other_took, 1)


@torch.no_grad()
def scoring(memory: ahop.BayesianHopfield, queries: torch.Tensor) -> dict[str, Any]:
    """Codes that keep the first choices, beside the product of queries and patterns, which knows of no corruption."""
    patterns = memory.patterns
    # With a mask, even one that leaves nothing out, a likelihood adds up its terms and uses no codes.
    everything = torch.ones_like(queries, dtype=torch.bool)
    exact = memory.similarity(patterns, queries, everything).argmax(1)
    for tolerance in TOLERANCES:
        codes = memory.as_inner_product(tolerance)
        stored = codes.encode_patterns(patterns)
        kept = float((exact == (codes.encode_queries(queries) @ stored.T).argmax(1)).double().mean())
        if kept >= KEPT:
            break
    costs = ratio(lambda: codes.encode_queries(queries) @ stored.T, lambda: queries @ patterns.T)
    return {"tolerance": tolerance, "rank": codes.rank, "kept": kept, "codes_over_product": costs}


def compare(difficulty: float) -> dict[str, Any]:
    patterns = torch.rand(PATTERNS, DIM, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = ahop.variants.Mixed(difficulty, difficulty, difficulty)
    train, test = world.sample(patterns, SAMPLES), world.sample(patterns, QUERIES)
    faster = ratio(
        lambda: ahop.AdaptiveHopfield(patterns).fit(*train), lambda: ahop.BayesianHopfield(patterns).fit(*train), 3
    )
    memory = ahop.BayesianHopfield(patterns).fit(*train)
    row = {"difficulty": difficulty, "fit_ratio": faster}
    return row | scoring(memory, test.queries)


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
