"""Retrieval of items that were measured twice, where nobody knows the corruption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop import datasets
from ahop._checks import whole
from ahop._progress import progress
from ahop._registry import Registry
from ahop.datasets import Measured
from ahop.memories import AdaptiveHopfield
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.paper import report as reports
from ahop.similarity import Density, Similarity

Builder = Callable[[Measured, int, int], AssociativeMemory]


class Model(NamedTuple):
    """A memory of the comparison: how it is made of the data, a number of samples and a seed; and what it learns from.

    A model that learns from nothing is fixed. ``ours`` stand in bold.
    """

    build: Builder
    learns: str
    ours: bool


MODELS: Registry[Model] = Registry("model")
NOTHING, BOTH, ALONE = "nothing", "queries and origins", "queries alone"


def model(name: str, *, learns: str, ours: bool = False) -> Callable[[Builder], Builder]:
    """Let a memory take part under this name, in ``ahop real`` and in its tables."""

    def join(build: Builder) -> Builder:
        MODELS.add(name, Model(build, learns, ours))
        return build

    return join


@model("distance", learns=NOTHING)
def _distance(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return AssociativeMemory(data.patterns, "distance", "softmax")


@model("cosine", learns=NOTHING)
def _cosine(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return AssociativeMemory(data.patterns, "cosine", "softmax")


@model("manhattan", learns=NOTHING)
def _manhattan(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return AssociativeMemory(data.patterns, "manhattan", "softmax")


@model("whitening", learns=BOTH)
def _whitening(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    """The usual metric learning: distances after whitening by the shrunk covariance of what queries differ by."""
    return AssociativeMemory(data.patterns.double(), "mahalanobis", "softmax").fit(*_seen(data, samples, seed))


@model("a-hop", learns=BOTH)
def _adaptive(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return AdaptiveHopfield(data.patterns).fit(*_seen(data, samples, seed))


@model("b-hop*", learns=ALONE, ours=True)
def _unlabelled(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(data.queries[data.learn], seed=seed)


@model("b-hop", learns=BOTH, ours=True)
def _labelled(data: Measured, samples: int, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(data.queries[data.learn], data.origins[data.learn], seed=seed)


def _seen(data: Measured, samples: int, seed: int) -> tuple[Tensor, Tensor]:
    """As many of the queries to learn from as a slow learner is given."""
    rows = data.learn.nonzero().squeeze(1)
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:samples]]
    return data.queries[rows], data.origins[rows]


def _told(similarity: Similarity) -> str:
    return similarity.describe() if isinstance(similarity, Density) else ""


@dataclass(frozen=True)
class Config:
    """What a run does, by default with every set of items measured twice and every model; ``samples`` bounds what
    a-hop and whitening learn from."""

    data: tuple[str, ...] = field(default_factory=lambda: datasets.names_of(Measured))
    models: tuple[str, ...] = field(default_factory=lambda: tuple(MODELS))
    samples: int = 2048
    seed: int = 0

    def __post_init__(self) -> None:
        sets = datasets.names_of(Measured)
        for name in self.data:
            if name not in sets:
                raise ValueError(f"unknown data set {name!r}; known: {', '.join(sets)}")
        for name in self.models:
            MODELS.named(name)
        for kind, chosen in (("data sets", self.data), ("models", self.models)):
            if not chosen:
                raise ValueError(f"{kind} must be at least one, got none")
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
                memory = MODELS[model].build(data, config.samples, config.seed)
                first = memory.recall(queries.to(memory.patterns)).indices.squeeze(-1)
                accuracy = float((first == origins).double().mean())
                learned = _told(memory.similarity)
                rows.append({"data": name, "model": model, "accuracy": round(accuracy, 4), "learned": learned})
                bar.advance(f"{name}, {model}")
    return {**head, "rows": rows}
