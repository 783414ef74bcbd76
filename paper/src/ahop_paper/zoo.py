"""Every memory of the library on the same worlds, beside the ceiling: who is right, who is sure, and what it holds."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from torch import Tensor

from ahop._checks import choice, integer
from ahop._progress import progress
from ahop.metrics import calibration_gap
from ahop_paper import lineage
from ahop_paper import report as reports
from ahop_paper.parallel import each
from ahop_paper.spread import with_interval
from ahop_paper.zoo_costs import capacity
from ahop_paper.zoo_memories import Made, answer, models
from ahop_paper.zoo_worlds import TRIALS, Size

Done = dict[str, Any]
# Where, who, and of which seed.
Job = tuple[str, str, int]
FREE = ("worlds", "models", "runs", "seed")
CEILING, CAPACITY = "oracle", "capacity"


@dataclass(frozen=True)
class Config:
    """What a run does; ``most`` bounds the search for a capacity."""

    worlds: tuple[str, ...] = field(default_factory=lambda: tuple(TRIALS))
    models: tuple[str, ...] = field(default_factory=lambda: tuple(models()))
    size: Size = field(default_factory=Size)
    most: int = 2**17
    runs: int = 5
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        for kind, chosen in (("worlds", self.worlds), ("models", self.models)):
            if not chosen:
                raise ValueError(f"{kind} must name at least one, got none")
        for name in self.worlds:
            TRIALS.named(name)
        known = models()
        for name in self.models:
            choice(name, "models", tuple(known))
        integer(self.runs, "runs", 1)
        reports.require_seed(self.seed)

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.runs)


def quick(config: Config) -> Config:
    """Two seeds of small worlds: to see that it works, not to be read."""
    size = Size(patterns=60, dim=32, samples=60, queries=60, items=40, texts=60)
    return Config(**{**vars(config), "size": size, "most": 2**8, "runs": 2, "quick": True})


def at_hand() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The worlds whose data are on this machine, and the others."""
    here = tuple(name for name, place in TRIALS.items() if place.here())
    return here, tuple(name for name in TRIALS if name not in here)


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """First choices, calibration and strangers by world, and capacity.

    What ``out`` already holds is not done again, and each part is kept when ready. None begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    head = reports.stamp("zoo", asdict(config), __file__)
    journal = reports.Journal(out, head, FREE, partial(summary, config), partial(code_of, asdict(config)))
    with reports.reading(out):
        known = {(one["world"], one["model"], one["seed"]) for one in journal.done}
    jobs = [job for job in _jobs(config) if job not in known]
    with progress("zoo", len(jobs)) as bar:
        for one in each(score, [(*job, config) for job in jobs], workers, until):
            journal.add([one])
            bar.advance(f"{one['world']}, {one['model']}, seed {one['seed']}")
    return journal.report()


def _jobs(config: Config) -> list[Job]:
    """What there is to do; what takes long comes first, for no process to wait for it in the end."""
    everyone = models()
    networks = [name for name in config.models if not everyone[name].worlds_alone]
    found = [(CAPACITY, name, seed) for name in networks for seed in config.seeds]
    for world in config.worlds:
        place = TRIALS[world]
        able = [
            name
            for name in config.models
            if (place.one_space or everyone[name].any_width) and (place.spread or not everyone[name].spread)
        ]
        found += [(world, name, seed) for name in (*able, *[CEILING] * place.ceiling) for seed in config.seeds]
    return sorted(found, key=lambda job: job[1] == CEILING or not everyone[job[1]].long)


def code_of(config: dict[str, Any], one: Done) -> str:
    """The fingerprint of what makes a row: measure, world and model."""
    build = None if one["model"] == CEILING else models()[one["model"]].build
    if one["world"] in TRIALS:
        return lineage.fingerprint(tried, TRIALS[one["world"]].draw, build)
    return lineage.fingerprint(capacity, build)


def score(world: str, model: str, seed: int, config: Config) -> Done:
    """What one model makes of one world of one seed, or what it holds.

    Args:
        world: The world, or the capacity.
        model: The memory's name.
        seed: Seed of patterns and queries.
        config: What to run.
    """
    found: Done = {"world": world, "model": model, "seed": seed}
    if world in TRIALS:
        return found | tried(world, model, seed, config.size)
    return found | {"capacity": capacity(models()[model], seed, config.most)}


def tried(world: str, model: str, seed: int, size: Size) -> Done:
    """Right first choices among genuine queries, how far off probabilities are, and how strangers are told, of whom no
    first choice is right.

    Args:
        world: The world.
        model: The memory's name.
        seed: Seed of patterns and queries.
        size: How many patterns, samples and queries.
    """
    trial = TRIALS[world].draw(seed, size)
    if model == CEILING:
        assert trial.ceiling is not None
        made = Made(trial.ceiling())
    else:
        made = models()[model].build(trial.patterns, trial.train)
    first, sure, familiar = answer(made, trial.asked)
    genuine = trial.answers[:, 0] >= 0
    right = (first[:, None] == trial.answers).any(1)
    found: Done = {"first_choice": float(right[genuine].double().mean())}
    found |= {"signs": made.centre is not None, "labels": made.labels}
    # Where either of two is right, a probability that one of them is says nothing of that.
    if sure is not None and trial.answers.shape[1] == 1:
        found["calibration_error"] = calibration_gap(sure, right)
    if not bool(genuine.all()) and model != CEILING:
        found["strangers_auroc"] = _auroc(genuine, familiar)
    return found


def _auroc(genuine: Tensor, familiar: Tensor) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(genuine.numpy(), familiar.numpy()))


def summary(config: Config, head: dict[str, Any], done: list[Done]) -> dict[str, Any]:
    """The report: one row for a world and a model, with the 95 % confidence interval of each mean over seeds.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    found: dict[tuple[str, str], dict[int, Done]] = {}
    for one in done:
        found.setdefault((one["world"], one["model"]), {})[one["seed"]] = one
    everywhere = (*config.worlds, CAPACITY)
    rows = [
        {"world": world, "model": model, **_figures([runs[seed] for seed in config.seeds if seed in runs])}
        for world in everywhere
        for model in (*config.models, CEILING)
        if (runs := found.get((world, model)))
    ]
    return {**head, "rows": rows, "done": done}


def _figures(runs: list[Done]) -> Done:
    keys = ("first_choice", "calibration_error", "strangers_auroc", "capacity")
    figures = {key: with_interval([one[key] for one in runs]) for key in keys if runs and key in runs[0]}
    kept: Done = {key: runs[0][key] for key in ("signs", "labels") if runs and key in runs[0]}
    return {**figures, **kept}
