"""Concepts in two modalities: a damaged picture brings a sound to mind, and the sound, damaged again, its concept.

The paper gives figures but no definition. Here concept k has a pattern in modality A and one in modality B. A memory
that stores A-patterns and B-values gets a variant of A's and reads out B's, softly; what it read out is damaged once
more; a second memory, over B-patterns, must find which concept it was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ahop._progress import progress
from ahop.memories import create
from ahop.memories.base import AssociativeMemory
from ahop.variants import Mixed, Samples
from ahop_paper import report as reports
from ahop_paper.baselines import PLAIN, Compared
from ahop_paper.retrieval import answers, fitted, scored
from ahop_paper.spread import spread

CONCEPTS = (128, 256, 512, 1024)
# Accuracy in the paper, by the networks of both phases.
PAPER = {
    ("m-hop", "m-hop"): (0.173, 0.092, 0.044, 0.021),
    ("u-hop", "u-hop"): (),
    ("centred L1", "centred L1"): (),
    ("k2-hop", "k2-hop"): (0.574, 0.349, 0.146, 0.081),
    ("k2-hop", "a-hop"): (0.636, 0.465, 0.276, 0.183),
    ("a-hop", "k2-hop"): (0.904, 0.709, 0.492, 0.328),
    ("a-hop", "a-hop"): (0.997, 0.998, 0.993, 0.988),
    ("b-hop", "b-hop"): (),
}


@dataclass(frozen=True)
class Config:
    """What a run does: intensities of the damage, alike in both phases, and sizes."""

    concepts: tuple[int, ...] = CONCEPTS
    mask: float = 0.6
    noise: float = 0.05
    bias: float = 0.05
    dim: int = 64
    samples: int = 512
    queries: int = 1000
    runs: int = 5
    seed: int = 0
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        if not self.concepts:
            raise ValueError("concepts must name at least one number")
        for name, value in [("concepts", min(self.concepts)), *((n, getattr(self, n)) for n in ("dim", "queries"))]:
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.samples < 5 or self.runs < 1:
            raise ValueError(f"samples must be at least 5 and runs 1, got {self.samples} and {self.runs}")
        # It says what it cannot be.
        Mixed(self.mask, self.noise, self.bias)


def quick(config: Config) -> Config:
    """The same with few concepts and queries, once."""
    sizes = {"concepts": (64, 128), "samples": 256, "queries": 200, "runs": 1, "quick": True}
    return Config(**{**vars(config), **sizes})


def run(config: Config) -> dict[str, Any]:
    """Every pair of networks with every number of concepts."""
    head = reports.stamp("multimodal", asdict(config), __file__)
    found: dict[tuple[str, str, int], list[float]] = {}
    with progress("concepts", config.runs * len(config.concepts) * len(PAPER)) as bar:
        for seed in range(config.seed, config.seed + config.runs):
            for count in config.concepts:
                for first, second in PAPER:
                    accuracy = retrieve(first, second, count, seed, config)
                    found.setdefault((first, second, count), []).append(accuracy)
                    bar.advance(f"{count} concepts, {first} then {second}")
    rows = []
    for (first, second, count), figures in found.items():
        paper = dict(zip(CONCEPTS, PAPER[first, second], strict=False)).get(count)
        row = {"first": first, "second": second, "concepts": count}
        rows.append({**row, "accuracy": spread(figures), "paper": paper})
    return {**head, "rows": rows}


def retrieve(first: str, second: str, count: int, seed: int, config: Config) -> float:
    """The share of queries whose concept is found in the end.

    Args:
        first, second: The names of both memories.
        count: The number of concepts.
        seed: Seed of patterns and corruption.
        config: What to run.
    """
    generator = torch.Generator().manual_seed(seed)
    pictures, sounds = (
        (torch.rand(count, config.dim, generator=generator) * 2 - 1).to(config.device) for _ in range(2)
    )
    seen_damage = Mixed(config.mask, config.noise, config.bias, seed=seed)
    heard_damage = Mixed(config.mask, config.noise, config.bias, seed=seed + 1)
    train, test = seen_damage.sample(pictures, config.samples), seen_damage.sample(pictures, config.queries)
    recall = _taught(first, pictures, sounds, train, seed)
    with torch.no_grad():
        heard, asked = (
            heard_damage.corrupt(answers(recall, sounds, some.queries), generator) for some in (train, test)
        )
    # The second memory learns from what the first makes of the same samples.
    memory = _taught(second, sounds, None, Samples(heard, train.origins), seed)
    return scored(memory, sounds, Samples(asked, test.origins)).accuracy


def _taught(
    name: str, patterns: Tensor, values: Tensor | None, train: Samples, seed: int
) -> AssociativeMemory | Compared:
    """A memory or a baseline that has learned; what a baseline reads out is the value of its first choice."""
    if name in PLAIN:
        return PLAIN[name].make(patterns, *train, seed)
    return fitted(create(name, patterns, values=values), train)
