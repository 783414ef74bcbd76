"""How long the adaptive network takes to learn and to retrieve: the paper's timing table."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from ahop import kernels
from ahop._progress import progress
from ahop.memories import AdaptiveHopfield
from ahop.variants import Mixed
from ahop_paper import report as reports
from ahop_paper.retrieval import fitted

SIZES = ((64, 2048), (128, 2048), (256, 2048), (64, 4096), (64, 8192))
"""Dimensions and patterns of the paper's columns; its first one stands at the head of both sweeps."""

# The paper's milliseconds, of a fit and of a query, by (sorted, d, N), as it prints them: its labels say that sorting
# makes a fit faster and a query slower, so those of the fit look swapped.
PAPER: dict[tuple[bool, int, int], tuple[int, float]] = {
    (True, 64, 2048): (840, 0.355),
    (True, 128, 2048): (1573, 0.368),
    (True, 256, 2048): (3609, 0.414),
    (True, 64, 4096): (1531, 0.446),
    (True, 64, 8192): (2949, 0.570),
    (False, 64, 2048): (2093, 0.287),
    (False, 128, 2048): (3059, 0.318),
    (False, 256, 2048): (8224, 0.326),
    (False, 64, 4096): (4011, 0.364),
    (False, 64, 8192): (7983, 0.467),
}


@dataclass(frozen=True)
class Config:
    """What a run measures."""

    sizes: tuple[tuple[int, int], ...] = SIZES
    samples: int = 512
    batch: int = 1024
    repetitions: int = 5
    difficulty: float = 0.4
    seed: int = 0
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        for name in ("samples", "batch", "repetitions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


def quick(config: Config) -> Config:
    """The first size alone, once."""
    return replace(config, sizes=SIZES[:1], repetitions=1, quick=True)


def run(config: Config) -> dict[str, Any]:
    """Medians over repetitions, after a first one that compiles what has to be compiled.

    Milliseconds on a GPU. Processors differ too much for their times to say anything, so on a CPU every figure is
    the ratio to the first size, sorted.
    """
    head = reports.stamp("timing", asdict(config), __file__)
    rows: list[dict[str, Any]] = []
    with progress("timing", 2 * len(config.sizes)) as bar:
        for dim, count in config.sizes:
            draw = torch.Generator().manual_seed(config.seed)
            patterns = (torch.rand(count, dim, generator=draw) * 2 - 1).to(config.device)
            world = Mixed(config.difficulty, config.difficulty, config.difficulty, seed=config.seed)
            train, queries = world.sample(patterns, config.samples), world.sample(patterns, config.batch).queries
            for sort in (True, False):
                rows.append(
                    {"dim": dim, "patterns": count, "sort": sort, **_measure(config, patterns, train, queries, sort)}
                )
                bar.advance(f"d {dim}, N {count}")
    for row in rows:
        fit, query = PAPER.get((row["sort"], row["dim"], row["patterns"]), (None, None))
        row["paper"] = {"fit": fit, "query": query}
    if torch.device(config.device).type == "cpu":
        for figures in (rows, [row["paper"] for row in rows]):
            for column in [key for key in ("fit", "adam", "query") if key in figures[0]]:
                unit = figures[0][column]
                for row in figures:
                    row[column] = None if None in (unit, row[column]) else round(row[column] / unit, 2)
    return {**head, "rows": rows}


def _measure(config: Config, patterns: Any, train: Any, queries: Any, sort: bool) -> dict[str, Any]:
    memory = AdaptiveHopfield(patterns, sort=sort)

    def fit() -> None:
        AdaptiveHopfield(patterns, sort=sort).fit(*train)

    def adam() -> None:
        fitted(AdaptiveHopfield(patterns, sort=sort), train, solver="adam")

    memory.fit(*train)
    slow = Config(repetitions=1, device=config.device)
    # Even where a problem is so small that it would not wait for a compiler.
    with torch.no_grad(), kernels.use(torch.device(config.device).type):
        return {
            "fit": round(_milliseconds(fit, config), 1),
            "adam": round(_milliseconds(adam, slow), 1),
            "query": round(_milliseconds(lambda: memory.retrieve(queries), config) / config.batch, 5),
        }


def _milliseconds(work: Callable[[], Any], config: Config) -> float:
    times = []
    for _ in range(config.repetitions + 1):
        _wait(config.device)
        begin = time.perf_counter()
        work()
        _wait(config.device)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


def _wait(device: str) -> None:
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
