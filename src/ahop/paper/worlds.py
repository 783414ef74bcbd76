"""How close to the Bayes ceiling a memory comes in worlds whose corruption nobody told it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from ahop._progress import progress
from ahop._registry import Registry
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.metrics import calibration_error
from ahop.paper import report as reports
from ahop.paper.parallel import each
from ahop.paper.retrieval import BASELINES, prepare, require_models, scored
from ahop.variants import Biased, Compose, Either, Masked, Mixed, Noisy, Scaled, Variant

Builder = Callable[[int, int], Variant]
Done = dict[str, Any]


def _spread_out(low: float, high: float, dim: int, seed: int) -> Tensor:
    """A number for each dimension, drawn once for a world."""
    return low + (high - low) * torch.rand(dim, generator=torch.Generator().manual_seed(seed + 99))


def _mixed(intensity: float, preset: str) -> Builder:
    return lambda dim, seed: Mixed(intensity, intensity, intensity, preset=preset, seed=seed)  # type: ignore[arg-type]


# Each makes a world of so many dimensions from a seed.
WORLDS: Registry[Builder] = Registry("world")
for _preset in ("published", "std", "literal"):
    for _intensity in (0.4, 0.5):
        WORLDS.add(f"{_preset} {_intensity}", _mixed(_intensity, _preset))


@WORLDS.register("mask .8, noise .05")
def _masked(dim: int, seed: int) -> Variant:
    return Compose([Noisy(0.05), Masked(0.8, exact=True)], seed=seed)


@WORLDS.register("noise of variance .7")
def _noisy(dim: int, seed: int) -> Variant:
    return Noisy(0.7**0.5, seed=seed)


@WORLDS.register("bias 1")
def _biased(dim: int, seed: int) -> Variant:
    return Biased(1.0, seed=seed)


@WORLDS.register("noise unlike by dimension")
def _noisy_unlike(dim: int, seed: int) -> Variant:
    return Noisy(_spread_out(0.2, 1.8, dim, seed), seed=seed)


@WORLDS.register("gain .5, bias .5, noise .4")
def _scaled(dim: int, seed: int) -> Variant:
    return Compose([Scaled(0.5), Biased(0.5, seed=seed), Noisy(0.4)], seed=seed)


@WORLDS.register("salt and pepper .6, noise .3")
def _salted(dim: int, seed: int) -> Variant:
    return Compose([Noisy(0.3), Masked(0.6, fill="salt-pepper")], seed=seed)


@WORLDS.register("mask unlike by dimension")
def _masked_unlike(dim: int, seed: int) -> Variant:
    return Compose([Noisy(0.4), Masked(_spread_out(0.0, 1.0, dim, seed))], seed=seed)


@WORLDS.register("noise .9 or mask .8")
def _either(dim: int, seed: int) -> Variant:
    return Either([Noisy(0.9), Compose([Noisy(0.05), Masked(0.8)])], seed=seed)


@dataclass(frozen=True)
class Config:
    """What a run does."""

    worlds: tuple[str, ...] = field(default_factory=lambda: tuple(WORLDS))
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
        for world in self.worlds:
            WORLDS.named(world)
        for name in ("patterns", "samples", "queries", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.runs)

    @property
    def contestants(self) -> tuple[str, ...]:
        """The models, the Oracle last."""
        return (*(model for model in self.models if model != "oracle"), "oracle")


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """Accuracy, first choices against the Oracle's, calibration and the AUROC of telling strangers, by cell.

    What ``out`` already holds is not done again, and each part is kept when ready. None begins after ``until``.
    """
    free = ("worlds", "models", "runs", "seed", "device")
    journal = reports.Journal(out, reports.stamp("worlds", asdict(config), __file__), free, partial(summary, config))
    with reports.reading(out):
        known = {(one["world"], one["model"], one["seed"]) for one in journal.done}
    # The Oracle first: without it there is no fraction of it.
    models = (config.contestants[-1], *config.contestants[:-1])
    jobs = [(name, model, seed) for seed in config.seeds for name in config.worlds for model in models]
    left = [job for job in jobs if job not in known]
    with progress("worlds", len(left)) as bar:
        for one in each(score, [(*job, config) for job in left], workers, until):
            journal.add([one])
            bar.advance(f"{one['world']}, {one['model']}: {one['first_choice']:.3f}")
    return journal.report()


def score(name: str, model: str, seed: int, config: Config) -> Done:
    """What one model finds in one world of one seed."""
    generator = torch.Generator().manual_seed(seed)
    # The second half is never stored: its variants are the strangers.
    known, unknown = (torch.rand(2, config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
    corruption = WORLDS[name](config.dim, seed)
    seen, test = corruption.sample(known, config.samples), corruption.sample(known, config.queries)
    found: Done = {"world": name, "model": model, "seed": seed}
    made = prepare(model, known, seen, corruption, seed)
    result = scored(made, known, test)
    found |= {"accuracy": result.accuracy, "first_choice": result.first_choice}
    if isinstance(made, AssociativeMemory):
        found["calibration_error"] = calibration_error(made, test)
    if isinstance(made, BayesianHopfield):
        strangers = corruption.sample(unknown, config.queries).queries
        found["rejection_auroc"] = _rejection(made, test.queries, strangers)
    return found


def summary(config: Config, head: dict[str, Any], done: list[Done]) -> dict[str, Any]:
    """The report: one row for a world and model, of the runs whose ceiling is known."""
    found: dict[tuple[str, str], dict[int, Done]] = {}
    for one in done:
        found.setdefault((one["world"], one["model"]), {})[one["seed"]] = one
    rows = []
    for name in config.worlds:
        ceiling = found.get((name, "oracle"), {})
        for model in config.contestants:
            runs = found.get((name, model), {})
            cells = [runs[seed] for seed in config.seeds if seed in runs and seed in ceiling]
            if cells:
                best = [max(ceiling[one["seed"]]["first_choice"], 1e-9) for one in cells]
                share = reports.spread([one["first_choice"] / most for one, most in zip(cells, best, strict=True)])
                rows.append({"world": name, "model": model, **_figures(cells), "fraction_of_oracle": share})
    return {**head, "rows": rows, "done": done}


def _figures(cells: list[Done]) -> dict[str, Any]:
    keys = ("accuracy", "first_choice", "calibration_error", "rejection_auroc")
    return {key: reports.spread([one[key] for one in cells]) for key in keys if key in cells[0]}


def _rejection(memory: BayesianHopfield, stored: Tensor, strangers: Tensor) -> float:
    with torch.no_grad():
        levels = torch.cat([memory.familiarity(stored), memory.familiarity(strangers)]).cpu()
    labels = torch.cat([torch.ones(len(stored)), torch.zeros(len(strangers))])
    return float(roc_auc_score(labels.numpy(), levels.numpy()))
