"""How close to the Bayes ceiling a memory comes in worlds whose corruption nobody told it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from ahop._progress import progress
from ahop._registry import Registry
from ahop.memories import Oracle
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.metrics import calibration_error, evaluate
from ahop.paper import report as reports
from ahop.paper.retrieval import prepare, require_models
from ahop.variants import Biased, Compose, Either, Masked, Mixed, Noisy, Scaled, Variant

Builder = Callable[[int, int], Variant]


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
    models: tuple[str, ...] = ("m-hop", "b-hop*", "b-hop")
    patterns: int = 2048
    dim: int = 64
    samples: int = 512
    queries: int = 1000
    runs: int = 5
    seed: int = 0
    device: str = "cpu"

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


def run(config: Config) -> dict[str, Any]:
    """Accuracy, first choices against the Oracle's, calibration and the AUROC of telling strangers, by cell."""
    head = reports.stamp("worlds", asdict(config))
    figures: dict[tuple[str, str], dict[str, list[float]]] = {}
    models = [*(model for model in config.models if model != "oracle"), "oracle"]
    with progress("worlds", config.runs * len(config.worlds) * len(models)) as bar:
        for seed in range(config.seed, config.seed + config.runs):
            generator = torch.Generator().manual_seed(seed)
            # The second half is never stored: its variants are the strangers.
            known, unknown = (torch.rand(2, config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
            for name in config.worlds:
                world = WORLDS[name](config.dim, seed)
                seen, test = world.sample(known, config.samples), world.sample(known, config.queries)
                strangers = world.sample(unknown, config.queries).queries
                ceiling = evaluate(Oracle(known, world), test).first_choice
                for model in models:
                    memory = prepare(model, known, seen, world, seed)
                    result = evaluate(memory, test)
                    cell = figures.setdefault((name, model), {})
                    cell.setdefault("accuracy", []).append(result.accuracy)
                    cell.setdefault("first_choice", []).append(result.first_choice)
                    cell.setdefault("fraction_of_oracle", []).append(result.first_choice / max(ceiling, 1e-9))
                    cell.setdefault("calibration_error", []).append(calibration_error(memory, test))
                    if isinstance(memory, BayesianHopfield):
                        cell.setdefault("rejection_auroc", []).append(_rejection(memory, test.queries, strangers))
                    bar.advance(f"{name}, {model}")
    rows = [
        {"world": name, "model": model} | {key: reports.spread(values) for key, values in cell.items()}
        for (name, model), cell in figures.items()
    ]
    return {**head, "rows": rows}


def _rejection(memory: AssociativeMemory, stored: Tensor, strangers: Tensor) -> float:
    from sklearn.metrics import roc_auc_score

    assert isinstance(memory, BayesianHopfield)
    with torch.no_grad():
        levels = torch.cat([memory.familiarity(stored), memory.familiarity(strangers)]).cpu()
    labels = torch.cat([torch.ones(len(stored)), torch.zeros(len(strangers))])
    return float(roc_auc_score(labels.numpy(), levels.numpy()))
