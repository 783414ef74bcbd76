"""How close to the Bayes ceiling a memory comes in worlds whose corruption nobody told it.

The first fourteen worlds were watched while starts of unlabelled learning were added for two of them, "mask .8, noise
.05" and "noise unlike by dimension". The untuned ones lie outside the family of corruptions that is learned. Their
intensities were set once, by the Oracle alone, for it to find most patterns and not all, before any memory had met
them. Rounded values have since led to another way of learning, so that this one is watched now; the rest must not be.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._progress import progress
from ahop._registry import Registry
from ahop.memories.base import AssociativeMemory
from ahop.metrics import calibration_error
from ahop.variants import (
    Biased,
    Compose,
    Correlated,
    Dropped,
    Either,
    Gained,
    Growing,
    Masked,
    Mixed,
    Noisy,
    Quantised,
    Rotated,
    Scaled,
    Swapped,
    Variant,
)
from ahop_paper import lineage
from ahop_paper import report as reports
from ahop_paper.parallel import each
from ahop_paper.retrieval import BASELINES, CEILING, builder, prepare, require_models, scored, with_ceiling
from ahop_paper.spread import spread

Done = dict[str, Any]
Builder = Callable[[int, int], Variant]
UNTUNED_MODELS = (*BASELINES, "m-hop", "a-hop", "b-hop*", "b-hop")


class World(NamedTuple):
    """A corruption of so many dimensions from a seed, what is stored of patterns drawn, and if nobody tuned on it."""

    corruption: Builder
    stored: Callable[[Tensor], Tensor]
    untuned: bool


WORLDS: Registry[World] = Registry("world")


def world(
    name: str, *, stored: Callable[[Tensor], Tensor] = lambda patterns: patterns, untuned: bool = False
) -> Callable[[Builder], Builder]:
    """Let a corruption take part under this name."""

    def join(corruption: Builder) -> Builder:
        WORLDS.add(name, World(corruption, stored, untuned))
        return corruption

    return join


def group(untuned: bool) -> tuple[str, ...]:
    """The worlds that nobody tuned on, or the others."""
    return tuple(name for name, one in WORLDS.items() if one.untuned == untuned)


def _spread_out(low: float, high: float, dim: int, seed: int) -> Tensor:
    """A number for each dimension, drawn once for a world."""
    return low + (high - low) * torch.rand(dim, generator=torch.Generator().manual_seed(seed + 99))


def _mixed(intensity: float, preset: str) -> Builder:
    return lambda dim, seed: Mixed(intensity, intensity, intensity, preset=preset, seed=seed)  # type: ignore[arg-type]


for _preset in ("published", "std", "literal"):
    for _intensity in (0.4, 0.5):
        world(f"{_preset} {_intensity}")(_mixed(_intensity, _preset))


@world("mask .8, noise .05")
def _masked(dim: int, seed: int) -> Variant:
    return Compose([Noisy(0.05), Masked(0.8, exact=True)], seed=seed)


@world("noise of variance .7")
def _noisy(dim: int, seed: int) -> Variant:
    return Noisy(0.7**0.5, seed=seed)


@world("bias 1")
def _biased(dim: int, seed: int) -> Variant:
    return Biased(1.0, seed=seed)


@world("noise unlike by dimension")
def _noisy_unlike(dim: int, seed: int) -> Variant:
    return Noisy(_spread_out(0.2, 1.8, dim, seed), seed=seed)


@world("gain .5, bias .5, noise .4")
def _scaled(dim: int, seed: int) -> Variant:
    return Compose([Scaled(0.5), Biased(0.5, seed=seed), Noisy(0.4)], seed=seed)


@world("salt and pepper .6, noise .3")
def _salted(dim: int, seed: int) -> Variant:
    return Compose([Noisy(0.3), Masked(0.6, fill="salt-pepper")], seed=seed)


@world("mask unlike by dimension")
def _masked_unlike(dim: int, seed: int) -> Variant:
    return Compose([Noisy(0.4), Masked(_spread_out(0.0, 1.0, dim, seed))], seed=seed)


@world("noise .9 or mask .8")
def _either(dim: int, seed: int) -> Variant:
    return Either([Noisy(0.9), Compose([Noisy(0.05), Masked(0.8)])], seed=seed)


# --- outside the family of corruptions that is learned ------------------------------------------------------------


@world("a block of half lost, noise .5", untuned=True)
def _dropped(dim: int, seed: int) -> Variant:
    return Dropped(dim // 2, 0.5, seed=seed)


@world("noise .3, growing by 1.5 of the value", untuned=True)
def _growing(dim: int, seed: int) -> Variant:
    return Growing(0.3, 1.5, seed=seed)


@world("noise 2.5 that neighbours share by .9", untuned=True)
def _correlated(dim: int, seed: int) -> Variant:
    return Correlated(2.5, 0.9, seed=seed)


@world("rotation by 45°, noise .8", untuned=True)
def _rotated(dim: int, seed: int) -> Variant:
    return Rotated(45, 0.8, seed=seed)


@world("rotation by 90°, noise .8", untuned=True)
def _turned(dim: int, seed: int) -> Variant:
    return Rotated(90, 0.8, seed=seed)


@world("a gain of .2 to 1.8 a query, noise .5", untuned=True)
def _gained(dim: int, seed: int) -> Variant:
    return Gained(0.2, 1.8, 0.5, seed=seed)


@world("noise .5, rounded to -2, 0, 2", untuned=True)
def _quantised(dim: int, seed: int) -> Variant:
    return Quantised(2.0, 0.5, seed=seed)


@world("neighbours swapped, noise .5", untuned=True)
def _swapped(dim: int, seed: int) -> Variant:
    return Swapped(0.5, 0.5, seed=seed)


def _with_outliers(patterns: Tensor) -> Tensor:
    """One pattern in 64 lies ten times as far away."""
    far = torch.arange(len(patterns)).to(patterns.device) % 64 == 0
    return torch.where(far[:, None], 10 * patterns, patterns)


world("std 0.4, outliers among patterns", stored=_with_outliers, untuned=True)(_mixed(0.4, "std"))


@dataclass(frozen=True)
class Config:
    """What a run does, by default in the worlds that were watched."""

    worlds: tuple[str, ...] = field(default_factory=lambda: group(untuned=False))
    models: tuple[str, ...] = ("m-hop", *BASELINES, "b-hop*", "b-hop")
    patterns: int = 2048
    dim: int = 64
    samples: int = 512
    queries: int = 1000
    runs: int = 5
    seed: int = 0
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        if not self.worlds:
            raise ValueError("worlds must name at least one, got none")
        require_models(self.models)
        reports.require_seed(self.seed)
        for name in self.worlds:
            WORLDS.named(name)
        for name in ("patterns", "samples", "queries", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.runs)

    @property
    def with_oracle(self) -> tuple[str, ...]:
        """The models, the Oracle last."""
        return with_ceiling(self.models)


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """Accuracy, first choices against the Oracle's, calibration and the AUROC of telling strangers, by cell.

    What ``out`` already holds is not done again, and each part is kept when ready. None begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    free = ("worlds", "models", "runs", "seed", "device")
    head = reports.stamp("worlds", asdict(config), __file__)
    journal = reports.Journal(out, head, free, partial(summary, config), partial(code_of, asdict(config)))
    with reports.reading(out):
        known = {(one["world"], one["model"], one["seed"]) for one in journal.done}
    # The Oracle first: without it there is no fraction of it.
    models = (config.with_oracle[-1], *config.with_oracle[:-1])
    jobs = [(name, model, seed) for seed in config.seeds for name in config.worlds for model in models]
    left = [job for job in jobs if job not in known]
    with progress("worlds", len(left)) as bar:
        for one in each(score, [(*job, config) for job in left], workers, until):
            journal.add([one])
            bar.advance(f"{one['world']}, {one['model']}: {one['first_choice']:.3f}")
    return journal.report()


def code_of(config: dict[str, Any], one: Done) -> str:
    """The fingerprint of what makes a row: measure, world and model."""
    return lineage.fingerprint(
        score, WORLDS[one["world"]].corruption, WORLDS[one["world"]].stored, builder(one["model"])
    )


def score(name: str, model: str, seed: int, config: Config) -> Done:
    """What one model finds in one world of one seed.

    Args:
        name: The world.
        model: The memory's or baseline's name.
        seed: Seed of patterns, corruption and queries.
        config: What to run.
    """
    found: Done = {"world": name, "model": model, "seed": seed}
    generator = torch.Generator().manual_seed(seed)
    # The second half is never stored: its variants are the strangers.
    drawn = (torch.rand(2, config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
    known, unknown = (WORLDS[name].stored(patterns) for patterns in drawn)
    corruption = WORLDS[name].corruption(config.dim, seed)
    train, test = corruption.sample(known, config.samples), corruption.sample(known, config.queries)
    made = prepare(model, known, train, corruption, seed)
    result = scored(made, known, test)
    found |= {"accuracy": result.accuracy, "first_choice": result.first_choice}
    if isinstance(made, AssociativeMemory):
        found["calibration_error"] = calibration_error(made, test)
    # By what it can do: its name would make every row depend on how it learns.
    if hasattr(made, "familiarity"):
        strangers = corruption.sample(unknown, config.queries).queries
        found["rejection_auroc"] = _rejection(made, test.queries, strangers)
    return found


def summary(config: Config, head: dict[str, Any], done: list[Done]) -> dict[str, Any]:
    """The report: one row for a world and model, of the runs whose ceiling is known.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    found: dict[tuple[str, str], dict[int, Done]] = {}
    for one in done:
        found.setdefault((one["world"], one["model"]), {})[one["seed"]] = one
    rows = []
    for name in config.worlds:
        ceiling = found.get((name, CEILING), {})
        for model in config.with_oracle:
            runs = found.get((name, model), {})
            cells = [runs[seed] for seed in config.seeds if seed in runs and seed in ceiling]
            if cells:
                best = [max(ceiling[one["seed"]]["first_choice"], 1e-9) for one in cells]
                share = spread([one["first_choice"] / most for one, most in zip(cells, best, strict=True)])
                rows.append({"world": name, "model": model, **_figures(cells), "fraction_of_oracle": share})
    return {**head, "rows": rows, "done": done}


def _figures(cells: list[Done]) -> dict[str, Any]:
    keys = ("accuracy", "first_choice", "calibration_error", "rejection_auroc")
    return {key: spread([one[key] for one in cells]) for key in keys if key in cells[0]}


def _rejection(memory: Any, stored: Tensor, strangers: Tensor) -> float:
    from sklearn.metrics import roc_auc_score

    with torch.no_grad():
        levels = torch.cat([memory.familiarity(stored), memory.familiarity(strangers)]).cpu()
    labels = torch.cat([torch.ones(len(stored)), torch.zeros(len(strangers))])
    return float(roc_auc_score(labels.numpy(), levels.numpy()))
