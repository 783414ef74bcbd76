"""What each part of the adaptive similarity is good for: the paper's four ablations.

Every similarity here is fitted by Adam, as in the paper. The matrix U changes nothing that can be expressed, only the
way there, so that the convex fit, which always arrives, could not tell one from another.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._progress import progress
from ahop.memories import AdaptiveHopfield
from ahop.metrics import evaluate
from ahop.variants import Mixed
from ahop_paper import report as reports
from ahop_paper.retrieval import fitted
from ahop_paper.spread import spread

DIFFICULTIES = (0.4, 0.5)
# What stands for the paper's endless samples.
MANY = 16


class Network(NamedTuple):
    """How a network is made and taught; the defaults are what the paper has elsewhere."""

    sort: bool = True
    matrix: str = "cumulative"
    learned: bool = False
    bases: tuple[str, ...] = ("distance", "dot")
    samples: int = 1
    """How many times the usual number it learns from."""

    def options(self, dim: int, seed: int) -> dict[str, Any]:
        """Of the similarity."""
        matrix: str | Tensor = self.matrix
        if matrix == "random":
            matrix = torch.randn(dim, dim, generator=torch.Generator().manual_seed(seed)) / dim**0.5
        return {"bases": self.bases, "sort": self.sort, "matrix": matrix, "learn_matrix": self.learned}


class Condition(NamedTuple):
    """One line of an ablation, with the paper's accuracy at both difficulties."""

    study: str
    name: str
    network: Network
    paper: tuple[float, float]


# As printed: the paper's "both" at the top has a learned U, and all but "usual" saw endless samples.
CONDITIONS = (
    Condition("sorting and U", "neither", Network(sort=False, matrix="identity"), (0.5172, 0.2094)),
    Condition("sorting and U", "U alone", Network(sort=False), (0.5444, 0.1888)),
    Condition("sorting and U", "sorted alone", Network(matrix="identity"), (0.6928, 0.3374)),
    Condition("sorting and U", "both", Network(), (0.7280, 0.3634)),
    Condition("U", "random", Network(matrix="random"), (0.6928, 0.3340)),
    Condition("U", "identity", Network(matrix="identity"), (0.6802, 0.3458)),
    Condition("U", "cumulative", Network(), (0.7242, 0.3600)),
    Condition("U", "learned from random", Network(matrix="random", learned=True), (0.7176, 0.3414)),
    Condition("U", "learned from identity", Network(matrix="identity", learned=True), (0.7114, 0.3528)),
    Condition("U", "learned from cumulative", Network(learned=True), (0.7280, 0.3634)),
    Condition("bases", "dot", Network(bases=("dot",)), (0.5926, 0.2520)),
    Condition("bases", "distance", Network(bases=("distance",)), (0.6458, 0.3286)),
    Condition("bases", "both", Network(), (0.7242, 0.3600)),
    Condition("samples", "usual", Network(), (0.7204, 0.3541)),
    Condition("samples", "many", Network(samples=MANY), (0.7242, 0.3600)),
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
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        for name in ("patterns", "dim", "samples", "queries", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    @property
    def published(self) -> bool:
        """Whether the paper's figures are of this size."""
        return (self.patterns, self.dim, self.samples) == (2048, 64, 512)


def quick(config: Config) -> Config:
    """The same at a size that ends in a minute on two cores."""
    return Config(patterns=256, samples=128, queries=200, runs=1, seed=config.seed, device=config.device, quick=True)


def run(config: Config) -> dict[str, Any]:
    """Every condition at both difficulties; all see the same patterns, samples and queries."""
    head = reports.stamp("ablations", asdict(config), __file__)
    # Several lines are of one network.
    networks = list(dict.fromkeys(condition.network for condition in CONDITIONS))
    figures: dict[tuple[float, Network], list[tuple[float, float]]] = {}
    with progress("ablations", config.runs * len(DIFFICULTIES) * len(networks)) as bar:
        for seed in range(config.seed, config.seed + config.runs):
            generator = torch.Generator().manual_seed(seed)
            patterns = (torch.rand(config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
            for difficulty in DIFFICULTIES:
                world = Mixed(difficulty, difficulty, difficulty, seed=seed)
                test = world.sample(patterns, config.queries)
                train = {times: world.sample(patterns, times * config.samples) for times in (1, MANY)}
                for network in networks:
                    memory = AdaptiveHopfield(patterns, **network.options(config.dim, seed))
                    result = evaluate(fitted(memory, train[network.samples], solver="adam"), test)
                    figures.setdefault((difficulty, network), []).append((result.accuracy, result.error))
                    bar.advance(f"run {seed}, difficulty {difficulty:g}")
    rows = []
    for place, difficulty in enumerate(DIFFICULTIES):
        for condition in CONDITIONS:
            found = zip(*figures[difficulty, condition.network], strict=True)
            accuracy, error = (spread(values) for values in found)
            row = {"study": condition.study, "condition": condition.name, "difficulty": difficulty}
            paper = condition.paper[place] if config.published else None
            rows.append({**row, "accuracy": accuracy, "error": error, "paper": paper})
    return {**head, "rows": rows}
