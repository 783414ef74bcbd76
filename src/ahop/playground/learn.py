"""Accuracy over the number of damaged examples that were shown, beside the ceiling, and what was learned from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from torch import Tensor

from ahop.memories import BayesianHopfield
from ahop.memories.base import AssociativeMemory
from ahop.metrics import first_choice_accuracy
from ahop.playground.damage import Damage, Sliders
from ahop.playground.pictures import Pictures
from ahop.playground.recall import MEMORIES, taught
from ahop.variants import Samples

LEAST, MOST = 10, 500
_SIZES = (10, 20, 50, 100, 200, 500)
_TESTED = 200
# The memories on the curve.
_SHOWN = ("m-hop", "a-hop", "b-hop", "Oracle")


class Setup(NamedTuple):
    """What to learn from: damaged pictures of a set, with their origins or without."""

    pictures: Pictures
    sliders: Sliders
    examples: int
    labels: bool = True


class Point(NamedTuple):
    """How often first choices were right after so many examples, by memory; b-hop's memory is the one that learned."""

    examples: int
    accuracy: dict[str, float]
    memory: BayesianHopfield


class Property(NamedTuple):
    """Something that was learned: a title, and a value for each pixel or (with places) a curve."""

    title: str
    values: Tensor
    places: Tensor | None


def sizes(examples: int) -> list[int]:
    """Where the curve has its points.

    Example:
        >>> sizes(120)
        [10, 20, 50, 100, 120]
    """
    if not LEAST <= examples <= MOST:
        raise ValueError(f"examples must be between {LEAST} and {MOST}, got {examples}")
    return [*(size for size in _SIZES if size < examples), examples]


def learners(labels: bool) -> list[str]:
    """The memories on the curve; without labels, those that learn from nothing else are left out."""
    kinds = {name: MEMORIES[name] for name in _SHOWN}
    return [name for name, kind in kinds.items() if labels or kind.alone or not kind.learns]


def points(setup: Setup) -> Iterator[Point]:
    """Points of the curve, one after the other; all are scored on the same damaged pictures, shown to none."""
    patterns = setup.pictures.patterns
    damage = Damage(setup.pictures.shape, setup.sliders, seed=2)
    test, train = damage.sample(patterns, _TESTED), damage.sample(patterns, setup.examples)
    names = learners(setup.labels)
    fixed = {
        name: first_choice_accuracy(taught(name, patterns, train, damage), test)
        for name in names
        if not MEMORIES[name].learns
    }
    for size in sizes(setup.examples):
        shown = Samples(train.queries[:size], train.origins[:size])
        memories: dict[str, AssociativeMemory] = {
            name: taught(name, patterns, shown, damage, labels=setup.labels) for name in names if name not in fixed
        }
        own = {name: first_choice_accuracy(memory, test) for name, memory in memories.items()}
        memory = next(memory for memory in memories.values() if isinstance(memory, BayesianHopfield))
        yield Point(size, {**fixed, **own}, memory)


def properties(memory: BayesianHopfield, pixels: int) -> list[Property]:
    """What b-hop learned, as pictures of one value a pixel and as curves; of a mixture, its largest part."""
    _, largest = max(memory.similarity.parts(), key=lambda part: part[0])
    curves = [Property(title, values.detach(), places) for title, values, places in largest.curves()]
    return [one for one in curves if one.places is not None or len(one.values) == pixels]
