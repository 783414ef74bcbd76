"""An index under load: readers that ask all the time, and a writer that adds and removes.

``python benchmarks/load.py [--seconds 60] [--ray]`` writes ``results/load.json``. Latencies are ratios to those of the
same machine with one reader and no writer. Each answer must be that of exact scoring of the memory at one moment: with
what the writer adds, or without. With ``--ray`` two shards on a local cluster are asked as well, in the same way.
"""

from __future__ import annotations

import argparse
import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import ahop
from ahop.memories.base import Recall
from ahop_paper import report

PATTERNS, DIM, ADDED, READERS, BATCH, K = 200_000, 64, 1000, 2, 20, 3
WITHIN = 5e-3


def asked(recall: Callable[[], Recall], seconds: float, readers: int) -> tuple[list[Recall], torch.Tensor]:
    """All answers and how long each took, of so many readers at a time.

    Args:
        recall: What asks once.
        seconds: How long they ask.
        readers: How many at a time.
    """
    answers: list[Recall] = []
    times: list[float] = []
    end = time.monotonic() + seconds

    def read() -> None:
        while time.monotonic() < end:
            begin = time.perf_counter()
            answers.append(recall())
            times.append(time.perf_counter() - begin)

    with ThreadPoolExecutor(readers) as pool:
        # A reader that fails is a failure of the run.
        for reader in [pool.submit(read) for _ in range(readers)]:
            reader.result()
    return answers, torch.tensor(times)


def wrong(answers: list[Recall], right: list[Recall]) -> int:
    """How many answers are those of no moment."""

    def same(one: Recall, other: Recall) -> bool:
        return one.indices.equal(other.indices) and bool(
            (one.probabilities - other.probabilities).abs().amax() < WITHIN
        )

    return sum(not any(same(answer, one) for one in right) for answer in answers)


def row(
    name: str, idle: torch.Tensor, loaded: torch.Tensor, answers: list[Recall], right: list[Recall]
) -> dict[str, Any]:
    """Latencies in units of the median of one reader alone, and how many answers were wrong.

    Args:
        name: What is under load.
        idle: Seconds of each answer to one reader alone, ``(n,)``.
        loaded: The same beside the writer, ``(m,)``.
        answers: What the readers were told.
        right: The answers of the moments that there are.
    """
    ratio = {f"p{level}": round(float(loaded.quantile(level / 100) / idle.median()), 2) for level in (50, 99)}
    idle_p99 = round(float(idle.quantile(0.99) / idle.median()), 2)
    return {"of": name, **ratio, "idle_p99": idle_p99, "answers": len(answers), "wrong": wrong(answers, right)}


def loaded(
    name: str, held: Any, asks: Any, queries: torch.Tensor, more: torch.Tensor, seconds: float, right: list[Recall]
) -> dict[str, Any]:
    """One row: first a reader alone, then readers beside a writer.

    Args:
        name: What is under load.
        held: What the writer adds to and removes from.
        asks: What the readers ask.
        queries: ``(Q, d)``.
        more: What is added, ``(n, d)``.
        seconds: How long readers and writer work beside each other.
        right: The answers of the moments that there are.
    """

    def recall() -> Recall:
        return Recall(*asks.recall(queries, K))

    _, idle = asked(recall, seconds / 6, 1)
    stop, changes = threading.Event(), 0

    def write() -> None:
        nonlocal changes
        while not stop.wait(0.2):
            held.add(more)
            held.remove(torch.arange(PATTERNS, PATTERNS + ADDED))
            changes += 2

    writer = threading.Thread(target=write)
    writer.start()
    asked(recall, seconds / 6, READERS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers, times = asked(recall, seconds, READERS)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / before
    stop.set()
    writer.join()
    found = {**row(name, idle, times, answers, right), "changes": changes, "peak_memory_ratio": round(grown, 3)}
    print(found, flush=True)
    return found


def main(seconds: float, with_ray: bool) -> None:
    config = {"patterns": PATTERNS, "dim": DIM, "readers": READERS, "batch": BATCH, "seed": 0}
    head = report.stamp("load", config, __file__)
    generator = torch.Generator().manual_seed(0)
    patterns = torch.rand(PATTERNS, DIM, generator=generator) * 2 - 1
    more = torch.rand(ADDED, DIM, generator=generator) * 2 - 1
    world = ahop.variants.Mixed(0.3, 0.3, 0.3)
    few = ahop.BayesianHopfield(patterns[:2048]).fit(
        *world.sample(patterns[:2048], 512), hidden_causes=0, verbose=False
    )
    memory = ahop.BayesianHopfield(patterns, similarity=few.similarity)
    # Half of the queries come from what the writer adds and removes.
    queries = torch.cat([world.sample(patterns, BATCH // 2).queries, world.sample(more, BATCH // 2).queries])
    without = memory.recall_exactly(queries, K)
    memory.add(more)
    right = [without, memory.recall_exactly(queries, K)]
    memory.remove(torch.arange(PATTERNS, PATTERNS + ADDED))
    memory.index().recall(queries, K)
    rows = [loaded("index", memory, memory.index(), queries, more, seconds, right)]
    if with_ray:
        shards = ahop.index.Shards(memory, 2)
        rows.append(loaded("two shards", shards, shards, queries, more, seconds, right))
        shards.close()
    report.write({**head, "rows": rows}, Path(__file__).parent.parent / "results" / "load.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--ray", action="store_true", help="ask two shards on a Ray cluster as well")
    given = parser.parse_args()
    main(given.seconds, given.ray)
