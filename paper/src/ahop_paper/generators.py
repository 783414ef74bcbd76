"""How near each way of drawing queries comes to the paper's figures, by networks that learn nothing.

m-hop and u-hop have no choice but the queries: whoever draws these as the paper did gets its figures. How far a preset
is off is counted in standard errors of the difference, of our runs and of the paper's five.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

from ahop._checks import choice
from ahop._progress import progress
from ahop.memories import create
from ahop.metrics import evaluate
from ahop.variants import Mixed
from ahop.variants.mixed import PRESETS
from ahop_paper import lineage, retrieval
from ahop_paper import report as reports
from ahop_paper.parallel import each
from ahop_paper.spread import spread

MODELS = ("m-hop", "u-hop")
LEVELS = {"synthetic": (0.4, 0.5), "mnist": (0.6, 0.7)}
# Standard deviations of accuracy and error over the paper's five runs, which it prints with two digits.
SPREADS = {
    ("synthetic", 0.4): {"m-hop": (0.02, 0.01), "u-hop": (0.04, 0.02)},
    ("synthetic", 0.5): {"m-hop": (0.03, 0.01), "u-hop": (0.01, 0.01)},
    ("mnist", 0.6): {"m-hop": (0.01, 0.00), "u-hop": (0.03, 0.01)},
    ("mnist", 0.7): {"m-hop": (0.02, 0.00), "u-hop": (0.02, 0.01)},
}
PAPERS_RUNS = 5
# What is printed as .00 is less than this.
LEAST_SPREAD = 0.005


@dataclass(frozen=True)
class Config:
    """What a run does; sizes are the paper's, seeds others than those that the first presets were chosen by."""

    data: str = "synthetic"
    presets: tuple[str, ...] = PRESETS
    patterns: int = 2048
    queries: int = 1000
    runs: int = 15
    seed: int = 5
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        choice(self.data, "data", tuple(LEVELS))
        if not self.presets:
            raise ValueError("presets must name at least one, got none")
        for preset in self.presets:
            choice(preset, "presets", PRESETS)
        for name, least in (("patterns", 1), ("queries", 1), ("runs", 2)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.runs)


def quick(config: Config) -> Config:
    """The same with few queries and runs."""
    return Config(**{**vars(config), "queries": 100, "runs": 2, "quick": True})


def standard_errors(ours: dict[str, Any], paper: float, deviation: float) -> float:
    r"""By how many standard errors of the difference our mean is above the paper's.

    .. math:: \frac{\bar a - \bar p}{\sqrt{s_a^2 / n + s_p^2 / 5}}

    Args:
        ours: Mean, standard deviation and runs, as :func:`ahop_paper.spread.spread` has them.
        paper: Its mean.
        deviation: Its standard deviation; one that rounds to nothing counts as the largest that does.

    Example:
        >>> standard_errors({"mean": 0.6, "std": 0.0, "runs": [0.6, 0.6]}, paper=0.5, deviation=0.05 * 5**0.5)
        2.0
    """
    variance = ours["std"] ** 2 / len(ours["runs"]) + max(deviation, LEAST_SPREAD) ** 2 / PAPERS_RUNS
    return round((ours["mean"] - paper) / math.sqrt(variance), 1)


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """Every preset, difficulty and network; each run has its own patterns, bias and queries.

    What ``out`` already holds is not done again, and each part is kept when ready. None begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    head = reports.stamp("generators", asdict(config), __file__)
    free, code = ("presets", "runs", "seed", "device"), partial(code_of, asdict(config))
    journal = reports.Journal(out, head, free, partial(summary, config), code)
    with reports.reading(out):
        known = {(one["seed"], one["preset"], one["level"]) for one in journal.done}
    jobs = [
        (seed, preset, level) for seed in config.seeds for preset in config.presets for level in LEVELS[config.data]
    ]
    left = [job for job in jobs if job not in known]
    with progress("generators", len(left)) as bar:
        for found in each(score, [(*job, config) for job in left], workers, until):
            journal.add(found)
            bar.advance(f"{found[0]['preset']} {found[0]['level']:g}")
    return journal.report()


def code_of(config: dict[str, Any], one: dict[str, Any]) -> str:
    """The fingerprint of what makes a row: measure, patterns and network."""
    return lineage.fingerprint(score, retrieval.loader(config["data"]), one["model"])


def score(seed: int, preset: str, level: float, config: Config) -> list[dict[str, Any]]:
    """What each network finds among queries that were drawn in one way.

    Args:
        seed: Seed of patterns, bias and queries.
        preset: How queries are drawn.
        level: The difficulty.
        config: What to run.
    """
    source = retrieval.Config(data=config.data, patterns=config.patterns, device=config.device)
    patterns = retrieval.draw_patterns(source, seed)
    test = Mixed(level, level, level, preset=preset, seed=seed).sample(patterns, config.queries)  # type: ignore[arg-type]
    found = []
    for model in MODELS:
        accuracy, error, _ = evaluate(create(model, patterns), test)
        one = {"seed": seed, "preset": preset, "level": level, "model": model}
        found.append({**one, "accuracy": accuracy, "error": error})
    return found


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a preset, difficulty and network, with the paper's figures beside ours.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    rows = []
    for preset, level, model in product(config.presets, LEVELS[config.data], MODELS):
        place = (preset, level, model)
        runs = [one for one in done if (one["preset"], one["level"], one["model"]) == place]
        runs = [one for one in runs if one["seed"] in config.seeds]
        if not runs:
            continue
        row: dict[str, Any] = {"preset": preset, "data": config.data, "level": level, "model": model}
        means, spreads = retrieval.PAPER[config.data, level][model], SPREADS[config.data, level][model]
        for what, paper, deviation in zip(("accuracy", "error"), means, spreads, strict=True):
            ours = spread([one[what] for one in runs])
            row[what] = {**ours, "paper": paper, "standard_errors": standard_errors(ours, paper, deviation)}
        rows.append(row)
    return {**head, "rows": rows, "done": done}
