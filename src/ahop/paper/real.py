"""Retrieval of items that were measured twice, where nobody knows the corruption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from ahop import datasets
from ahop._checks import whole
from ahop._progress import progress
from ahop.datasets import Measured
from ahop.memories import AdaptiveHopfield
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.paper import report as reports
from ahop.similarity import Density, Similarity

NAMES = ("tablets", "gas", "wifi")


def _fixed(similarity: str) -> Callable[[Measured, int, int], AssociativeMemory]:
    return lambda data, samples, seed: AssociativeMemory(data.patterns, similarity, "softmax")


def _whitening(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    """The usual metric learning: distances after whitening by the shrunk covariance of what queries differ by."""
    return AssociativeMemory(data.patterns.double(), "mahalanobis", "softmax").fit(*_seen(data, samples, seed))


def _adaptive(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return AdaptiveHopfield(data.patterns).fit(*_seen(data, samples, seed))


def _labelled(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(data.queries[data.learn], data.origins[data.learn], seed=seed)


def _unlabelled(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(data.queries[data.learn], seed=seed)


def _seen(data: Measured, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """As many of the queries to learn from as a slow learner is given."""
    rows = data.learn.nonzero().squeeze(1)
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:samples]]
    return data.queries[rows], data.origins[rows]


def _told(similarity: Similarity) -> str:
    return similarity.describe() if isinstance(similarity, Density) else ""


MODELS: dict[str, Callable[[Measured, int, int], AssociativeMemory]] = {
    "distance": _fixed("distance"),
    "cosine": _fixed("cosine"),
    "manhattan": _fixed("manhattan"),
    "whitening": _whitening,
    "a-hop": _adaptive,
    "b-hop*": _unlabelled,
    "b-hop": _labelled,
}


LEARNS = {
    **dict.fromkeys(("distance", "cosine", "manhattan"), "nothing"),
    **dict.fromkeys(("whitening", "a-hop", "b-hop"), "queries and their origins"),
    "b-hop*": "queries alone",
}


@dataclass(frozen=True)
class Config:
    """What a run does; ``samples`` bounds what a-hop and whitening learn from."""

    data: tuple[str, ...] = NAMES
    models: tuple[str, ...] = tuple(MODELS)
    samples: int = 2048
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, chosen, known in (("data set", self.data, NAMES), ("model", self.models, tuple(MODELS))):
            for name in chosen:
                if name not in known:
                    raise ValueError(f"unknown {kind} {name!r}; known: {', '.join(known)}")
            if not chosen:
                raise ValueError(f"{kind}s must be at least one, got none")
        whole(self.samples, "samples", 1)
        reports.require_seed(self.seed)


def run(config: Config) -> dict[str, Any]:
    """How often the first choice is right on items that were not learned from, by data set and model."""
    head = reports.stamp("real", asdict(config))
    # All before the work, which would be in vain where one is not to be had.
    measured: dict[str, Measured] = {name: datasets.load(name) for name in config.data}
    rows = []
    with progress("real variants", len(config.data) * len(config.models)) as bar:
        for name, data in measured.items():
            queries, origins = data.queries[~data.learn], data.origins[~data.learn]
            for model in config.models:
                memory = MODELS[model](data, config.samples, config.seed)
                first = memory.recall(queries.to(memory.patterns)).indices.squeeze(-1)
                accuracy = float((first == origins).double().mean())
                learned = _told(memory.similarity)
                rows.append({"data": name, "model": model, "accuracy": round(accuracy, 4), "learned": learned})
                bar.advance(f"{name}, {model}")
    return {**head, "rows": rows}
