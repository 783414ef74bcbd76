"""What each part of the adaptive similarity is good for: the paper's four ablations.

Every similarity here is fitted by Adam, as in the paper. The matrix U changes nothing that can be expressed, only the
way there, so that the convex fit, which always arrives, could not tell one from another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch

from ahop._progress import progress
from ahop.experiments import report as reports
from ahop.metrics import evaluate
from ahop.models import AdaptiveHopfield
from ahop.variants import Mixed

DIFFICULTIES = (0.4, 0.5)
# What stands for the paper's endless samples.
MANY = 16


class Condition(NamedTuple):
    """One line of an ablation."""

    study: str
    name: str
    options: Callable[[int, int], dict[str, Any]]
    """Of the network, by its dimensions and the seed."""
    samples: int
    """How many times the usual number it learns from."""
    paper: tuple[float, float]
    """The paper's accuracy at both difficulties."""


def _random(dim: int, seed: int) -> torch.Tensor:
    return torch.randn(dim, dim, generator=torch.Generator().manual_seed(seed)) / dim**0.5


def _matrix(kind: str, *, learned: bool) -> Callable[[int, int], dict[str, Any]]:
    def options(dim: int, seed: int) -> dict[str, Any]:
        return {"matrix": _random(dim, seed) if kind == "random" else kind, "learn_matrix": learned}

    return options


def _fixed(**options: Any) -> Callable[[int, int], dict[str, Any]]:
    return lambda dim, seed: options


# As printed: the paper's "both" at the top has a learned U, and all but "usual" saw endless samples.
CONDITIONS = (
    Condition("sorting and U", "neither", _fixed(sort=False, matrix="identity"), 1, (0.5172, 0.2094)),
    Condition("sorting and U", "U alone", _fixed(sort=False), 1, (0.5444, 0.1888)),
    Condition("sorting and U", "sorted alone", _fixed(matrix="identity"), 1, (0.6928, 0.3374)),
    Condition("sorting and U", "both", _fixed(), 1, (0.7280, 0.3634)),
    Condition("U", "random", _matrix("random", learned=False), 1, (0.6928, 0.3340)),
    Condition("U", "identity", _matrix("identity", learned=False), 1, (0.6802, 0.3458)),
    Condition("U", "cumulative", _matrix("cumulative", learned=False), 1, (0.7242, 0.3600)),
    Condition("U", "learned from random", _matrix("random", learned=True), 1, (0.7176, 0.3414)),
    Condition("U", "learned from identity", _matrix("identity", learned=True), 1, (0.7114, 0.3528)),
    Condition("U", "learned from cumulative", _matrix("cumulative", learned=True), 1, (0.7280, 0.3634)),
    Condition("bases", "dot", _fixed(bases=["dot"]), 1, (0.5926, 0.2520)),
    Condition("bases", "distance", _fixed(bases=["distance"]), 1, (0.6458, 0.3286)),
    Condition("bases", "both", _fixed(), 1, (0.7242, 0.3600)),
    Condition("samples", "usual", _fixed(), 1, (0.7204, 0.3541)),
    Condition("samples", "many", _fixed(), MANY, (0.7242, 0.3600)),
)


@dataclass(frozen=True)
class Config:
    """What a run does; sizes are the paper's."""

    patterns: int = 2048
    dim: int = 64
    samples: int = 512
    queries: int = 1000
    runs: int = 5
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("patterns", "dim", "samples", "queries", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def published(self) -> bool:
        """Whether the paper's figures are of this size."""
        return (self.patterns, self.dim, self.samples) == (2048, 64, 512)


def quick(config: Config) -> Config:
    """The same at a size that ends in a minute on two cores."""
    return Config(patterns=256, samples=128, queries=200, runs=1, seed=config.seed, device=config.device)


def run(config: Config) -> dict[str, Any]:
    """Every condition at both difficulties; all see the same patterns, samples and queries."""
    head = reports.stamp("ablations", asdict(config))
    figures: dict[tuple[float, Condition], list[tuple[float, float]]] = {}
    with progress("ablations", config.runs * len(DIFFICULTIES) * len(CONDITIONS)) as bar:
        for seed in range(config.seed, config.seed + config.runs):
            generator = torch.Generator().manual_seed(seed)
            patterns = (torch.rand(config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
            for difficulty in DIFFICULTIES:
                world = Mixed(difficulty, difficulty, difficulty, seed=seed)
                test = world.sample(patterns, config.queries)
                seen = {times: world.sample(patterns, times * config.samples) for times in (1, MANY)}
                for condition in CONDITIONS:
                    options = condition.options(config.dim, seed)
                    memory = AdaptiveHopfield(patterns, **options).fit(*seen[condition.samples], solver="adam")
                    result = evaluate(memory, test)
                    figures.setdefault((difficulty, condition), []).append((result.accuracy, result.error))
                    bar.advance(f"difficulty {difficulty:g}, {condition.study}: {condition.name}")
    rows = []
    for (difficulty, condition), found in figures.items():
        accuracy, error = (reports.spread(values) for values in zip(*found, strict=True))
        row = {"study": condition.study, "condition": condition.name, "difficulty": difficulty}
        paper = condition.paper[DIFFICULTIES.index(difficulty)] if config.published else None
        rows.append({**row, "accuracy": accuracy, "error": error, "paper": paper})
    return {**head, "rows": rows}
