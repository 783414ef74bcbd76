"""Who takes part in the comparison on items that were measured twice, and what each learns from."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._registry import Registry
from ahop.datasets import Measured
from ahop.memories import AdaptiveHopfield
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop_paper import baselines, self_taught
from ahop_paper.baselines import ALONE, BOTH, METRICS, NOTHING, PLAIN, Compared

Builder = Callable[[Measured, int], AssociativeMemory | Compared]
ForData = Callable[[str, Measured], bool]

# What a model learns from, and how many labels that is.
LABELS: dict[str, float] = {
    NOTHING: 0,
    ALONE: 0,
    "queries, 10 labels": 10,
    "500 pairs": 500,
    "queries, 500 labels": 500,
    "2,000 pairs": 2000,
    BOTH: math.inf,
}
# What a-hop learns from, at most: it is slow.
_MAX_ADAPTIVE_PAIRS = 2048


def every_set(name: str, data: Measured) -> bool:
    """All data, also where queries have another number of dimensions than patterns."""
    return True


def one_space(name: str, data: Measured) -> bool:
    """Patterns and queries have as many dimensions."""
    return data.patterns.shape[1] == data.queries.shape[1]


def of(*kinds: str) -> ForData:
    """The sets of these names, or their versions."""
    return lambda name, data: any(name == kind or name.startswith(f"{kind}-") for kind in kinds)


class Model(NamedTuple):
    """How it is made of the data and a seed, what it learns from, whether it is ours, and the data it is meant for."""

    build: Builder
    learns: str
    ours: bool
    for_data: ForData

    @property
    def labels(self) -> float:
        """How many labels it is given; infinity is all there are."""
        return LABELS[self.learns]

    def suits(self, name: str, data: Measured) -> bool:
        """Whether it is meant for this set, and is given fewer labels than there are, or all."""
        return self.for_data(name, data) and (math.isinf(self.labels) or self.labels < int(data.learn.sum()))


MODELS: Registry[Model] = Registry("model")


def model(name: str, *, learns: str, ours: bool = False, for_data: ForData = every_set) -> Callable[[Builder], Builder]:
    """Register a memory or a baseline for ``ahop-paper real`` and its tables.

    Args:
        name: Its name.
        learns: What it learns from, one of ``LABELS``.
        ours: Whether it is this library's own.
        for_data: Whether it is meant for a data set; by default for all.

    Returns:
        A decorator for what builds it.
    """
    if learns not in LABELS:
        raise ValueError(f"learns must be one of {', '.join(map(repr, LABELS))}, got {learns!r}")

    def join(build: Builder) -> Builder:
        MODELS.add(name, Model(build, learns, ours, for_data), build)
        return build

    return join


def also_for(for_data: ForData, *names: str) -> None:
    """Let models that are known by these names take part on further data; no row of theirs has to be run again."""
    for name in names:
        known = MODELS.named(name)
        MODELS[name] = known._replace(for_data=_either(known.for_data, for_data))


def _either(first: ForData, second: ForData) -> ForData:
    return lambda name, data: first(name, data) or second(name, data)


def pairs(data: Measured, seed: int, count: int | None = None) -> tuple[Tensor, Tensor]:
    """Queries to learn from, and their origins.

    Args:
        data: The data set.
        seed: Seed of their order.
        count: How many; None is all.
    """
    rows = data.learn.nonzero().squeeze(1)
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:count]]
    return data.queries[rows], data.origins[rows]


def partly_labelled(data: Measured, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """All queries to learn from and their origins, of which all but so many are -1: unknown."""
    queries, origins = pairs(data, seed)
    return queries, torch.where(torch.arange(len(origins)).to(origins) < count, origins, -1)


# --- anyone's -------------------------------------------------------------------------------------------------


def _join_plain(name: str) -> None:
    make, learns = PLAIN[name]

    @model(name, learns=learns, for_data=one_space)
    def plain(data: Measured, seed: int) -> Compared:
        return make(data.patterns, *pairs(data, seed), seed)


for _name, _plain in PLAIN.items():
    if _plain.learns != BOTH:
        _join_plain(_name)


@model("CSLS cosine", learns=ALONE, for_data=one_space)
def _csls_cosine(data: Measured, seed: int) -> Compared:
    """Around both means."""
    queries = data.queries[data.learn]
    return baselines.csls(baselines.centred(data.patterns, queries, "cosine"), queries)


# How many pairs a model learns from, and what that is called.
_PAIRS: tuple[tuple[int | None, str], ...] = ((500, "500 pairs"), (2000, "2,000 pairs"), (None, BOTH))


def _named(name: str, count: int | None) -> str:
    return name if count is None else f"{name} {count}"


def _join_ridge(count: int | None, learns: str) -> None:
    @model(_named("ridge", count), learns=learns)
    def ridge(data: Measured, seed: int) -> Compared:
        return baselines.tuned(baselines.ridge, baselines.RIDGES, data.patterns, *pairs(data, seed, count), seed)


def _join_csls_ridge(count: int | None, learns: str) -> None:
    @model(_named("CSLS ridge", count), learns=learns)
    def with_csls(data: Measured, seed: int) -> Compared:
        found = baselines.tuned(baselines.ridge, baselines.RIDGES, data.patterns, *pairs(data, seed, count), seed)
        return baselines.csls(found, data.queries[data.learn])


_join_csls_ridge(500, "queries, 500 labels")
_join_csls_ridge(None, BOTH)


def _join_whitening(count: int, learns: str) -> None:
    @model(_named("whitening", count), learns=learns, for_data=one_space)
    def whitening(data: Measured, seed: int) -> Compared:
        return baselines.whitening(data.patterns, *pairs(data, seed, count))


for _count, _learns in _PAIRS:
    if _count:
        _join_whitening(_count, _learns)
    _join_ridge(_count, _learns)


@model("whitening", learns=BOTH, for_data=one_space)
def _whitening(data: Measured, seed: int) -> AssociativeMemory:
    """As a memory, which can say how sure it is."""
    return baselines.whitened(data.patterns, *pairs(data, seed))


# --- the fields' own ------------------------------------------------------------------------------------------


@model("normal variates", learns=ALONE, for_data=of("tablets"))
def _normal_variates(data: Measured, seed: int) -> Compared:
    """L1, being the best of the metrics after this and after derivatives."""
    return baselines.prepared(data.patterns, data.queries[data.learn], baselines.normal_variates, "L1")


@model("derivatives", learns=ALONE, for_data=of("tablets"))
def _derivatives(data: Measured, seed: int) -> Compared:
    return baselines.prepared(data.patterns, data.queries[data.learn], baselines.derivatives, "L1")


@model("self-taught projection", learns=ALONE, for_data=of("tablets"))
def _projected(data: Measured, seed: int) -> Compared:
    """Of 0 to 32 components, five preparations and two metrics the best on scored items: nobody could choose it."""
    return self_taught.projected(data.patterns, data.queries[data.learn], 8, "L1")


@model("self-learned rotation", learns=ALONE, for_data=of("embeddings"))
def _rotated(data: Measured, seed: int) -> Compared:
    return self_taught.rotated(data.patterns, data.queries[data.learn], seed)


@model("VecMap", learns=ALONE, for_data=of("embeddings"))
def _translated(data: Measured, seed: int) -> Compared:
    return self_taught.translated(data.patterns, data.queries[data.learn], seed)


@model("direct standardisation", learns=BOTH, for_data=of("tablets"))
def _direct(data: Measured, seed: int) -> Compared:
    options = list(product((2, 4, 8, 16, 32, 64), METRICS))
    return baselines.tuned(baselines.direct, options, data.patterns, *pairs(data, seed), seed)


@model("piecewise standardisation", learns=BOTH, for_data=of("tablets"))
def _piecewise(data: Measured, seed: int) -> Compared:
    options = list(product((1, 3, 8), (1e-6, 1e-4, 1e-2), METRICS))
    return baselines.tuned(baselines.piecewise, options, data.patterns, *pairs(data, seed), seed)


@model("orthogonal projection", learns=BOTH, for_data=of("tablets", "gas"))
def _orthogonal(data: Measured, seed: int) -> Compared:
    """For sensors that drift it is known as component correction."""
    options = list(product((0, 1, 2, 4, 8, 16, 32), METRICS))
    return baselines.tuned(baselines.orthogonal, options, data.patterns, *pairs(data, seed), seed)


@model("Sørensen of powers", learns=NOTHING, for_data=of("wifi"))
def _sorensen(data: Measured, seed: int) -> Compared:
    """With the power of Torres-Sospedra and others."""
    return baselines.sorensen(data.patterns, math.e)


@model("ranks", learns=NOTHING, for_data=of("wifi"))
def _ranked(data: Measured, seed: int) -> Compared:
    return baselines.ranked(data.patterns)


@model("weighted cosine", learns=NOTHING, for_data=of("ms2"))
def _weighted(data: Measured, seed: int) -> Compared:
    """With the powers of Kim and others (2012)."""
    return baselines.weighted_cosine(data.patterns, 1.3, 0.53)


def _join_tuned_cosine(count: int | None, learns: str) -> None:
    @model(_named("tuned weighted cosine", count), learns=learns, for_data=of("ms2"))
    def tuned(data: Measured, seed: int) -> Compared:
        def make(patterns: Tensor, queries: Tensor, origins: Tensor, mass: float, intensity: float) -> Compared:
            return baselines.weighted_cosine(patterns, mass, intensity)

        options = list(product((0.0, 0.25, 0.5, 1.0, 1.5), (0.1, 0.2, 0.3, 0.4, 0.5)))
        return baselines.tuned(make, options, data.patterns, *pairs(data, seed, count), seed)


for _count, _learns in _PAIRS:
    _join_tuned_cosine(_count, _learns)


@model("spectral entropy", learns=NOTHING, for_data=of("ms2"))
def _entropy(data: Measured, seed: int) -> Compared:
    return baselines.spectral_entropy(data.patterns, power=2)


@model("spectral entropy of roots", learns=NOTHING, for_data=of("ms2"))
def _entropy_of_roots(data: Measured, seed: int) -> Compared:
    return baselines.spectral_entropy(data.patterns, power=1)


def _join_maps(count: int | None, learns: str) -> None:
    @model(_named("Procrustes", count), learns=learns, for_data=of("embeddings"))
    def procrustes(data: Measured, seed: int) -> Compared:
        queries, origins = pairs(data, seed, count)
        return baselines.procrustes(data.patterns.double(), queries.double(), origins)

    @model(_named("residual MLP", count), learns=learns, for_data=of("embeddings"))
    def perceptron(data: Measured, seed: int) -> Compared:
        options = [(1.0, 30, seed), (1.0, 150, seed), (0.1, 500, seed)]
        return baselines.tuned(baselines.perceptron, options, data.patterns, *pairs(data, seed, count), seed)


for _count, _learns in _PAIRS:
    _join_maps(_count, _learns)


# --- networks --------------------------------------------------------------------------------------------------


@model("a-hop", learns=BOTH, for_data=lambda name, data: one_space(name, data) and not of("embeddings")(name, data))
def _adaptive(data: Measured, seed: int) -> AssociativeMemory:
    return AdaptiveHopfield(data.patterns).fit(*pairs(data, seed, _MAX_ADAPTIVE_PAIRS))


@model("b-hop*", learns=ALONE, ours=True)
def _unlabelled(data: Measured, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(data.queries[data.learn], seed=seed)


@model("b-hop 10", learns="queries, 10 labels", ours=True)
def _ten(data: Measured, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(*partly_labelled(data, seed, 10), seed=seed)


@model("b-hop 500", learns="queries, 500 labels", ours=True)
def _some(data: Measured, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(*partly_labelled(data, seed, 500), seed=seed)


@model("b-hop", learns=BOTH, ours=True)
def _labelled(data: Measured, seed: int) -> AssociativeMemory:
    return BayesianHopfield(data.patterns).fit(data.queries[data.learn], data.origins[data.learn], seed=seed)
