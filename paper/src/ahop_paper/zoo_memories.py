"""Who is in the zoo: every network and every separation that the library knows, and what a user would try first."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.memories import BayesianHopfield, create
from ahop.memories.base import AssociativeMemory
from ahop.memories.names import kind_of, known_names
from ahop.memories.scattered import Scattered
from ahop.separation import Separation
from ahop.variants import Samples
from ahop_paper import lineage
from ahop_paper.baselines import PLAIN, Compared
from ahop_paper.zoo_worlds import Replicates

NEAREST = {"nearest by L2": "distance", "nearest by cosine": "cosine"}
# Inverse temperatures that a separation is given its own of, by labels.
_BETAS = tuple(2.0**power for power in range(-8, 4))


class Beside:
    """A network that keeps no patterns of its own, with them beside it: an answer is the nearest to what it reads out.

    Args:
        network: What adds and removes patterns, and has ``retrieve`` and ``energy``.
        patterns: What it was made of, ``(N, d)``.
    """

    def __init__(self, network: Any, patterns: Tensor) -> None:
        self.network, self.readouts = network, patterns

    def __len__(self) -> int:
        return len(self.readouts)

    def add(self, patterns: Tensor) -> Beside:
        self.network.add(patterns)
        self.readouts = torch.cat([self.readouts, patterns])
        return self

    def remove(self, indices: Tensor) -> Beside:
        self.network.remove(self.readouts[indices])
        kept = torch.ones(len(self), dtype=torch.bool)
        kept[indices] = False
        self.readouts = self.readouts[kept]
        return self

    def to(self, device: str) -> Beside:
        return Beside(self.network.to(device), self.readouts.to(device))

    def retrieve(self, queries: Tensor) -> Tensor:
        found: Tensor = self.network.retrieve(queries)
        return found

    # All that it can be asked for, and so what a query costs.
    recall = retrieve


class Made(NamedTuple):
    """A memory, or a baseline, that has learned.

    Attributes:
        memory: It.
        centre: What values are counted from where units are -1 or +1, ``(d,)``; None takes them as they are.
        by_score: Whether its best score, and not the first probability, tells a stranger.
        labels: Whether labels have changed its first choices.
    """

    memory: AssociativeMemory | Beside | Compared
    centre: Tensor | None = None
    by_score: bool = False
    labels: bool = False

    def store(self, patterns: Tensor) -> None:
        """Add further patterns ``(n, d)`` to a memory."""
        assert not isinstance(self.memory, Compared)
        self.memory.add(patterns if self.centre is None else signs(patterns - self.centre))

    def place(self, queries: Tensor) -> Tensor:
        """Queries as the memory is asked with them."""
        return queries if self.centre is None else queries - self.centre


class Answer(NamedTuple):
    """First choices ``(n,)``; how sure, where that is said; and how familiar each query seems."""

    first: Tensor
    sure: Tensor | None
    familiar: Tensor


Builder = Callable[[Tensor, Samples], Made]


class Model(NamedTuple):
    """How it is made of patterns and of queries to learn from, whether these may have another width, whether learning
    takes long, whether it asks how far measurements of each pattern scatter, and whether it takes part in worlds alone:
    what it holds and costs is not measured."""

    build: Builder
    any_width: bool = False
    long: bool = False
    spread: bool = False
    worlds_alone: bool = False


@lineage.picks
def models() -> dict[str, Model]:
    """All that take part, by the names that tables have for them."""
    ours = [name for name in known_names() if _is_ours(kind_of(name))]
    # Finding out what happens to queries takes long, and may take them to another space.
    finds_out = {name: issubclass(kind_of(name), BayesianHopfield) for name in ours}
    found = {name: Model(partial(network, name), any_width=finds_out[name], long=finds_out[name]) for name in ours}
    # Without labels a memory is asked as with them, only one world has a spread, and a baseline is no network.
    found["b-hop*"] = Model(unlabelled, any_width=True, long=True, worlds_alone=True)
    for name in ours:
        if issubclass(kind_of(name), Scattered):
            found[f"{name}, with spread"] = Model(
                partial(scattered, name), long=finds_out[name], spread=True, worlds_alone=True
            )
    for name, kind in Separation.members.items():
        if issubclass(kind, Separation) and _is_ours(kind):
            # A score below zero has no weight where weights are no distribution.
            similarity = "distance" if kind.probabilistic else "dot"
            found[f"{similarity}, {name}"] = Model(partial(parts, similarity, name))
    found |= {name: Model(partial(nearest, similarity)) for name, similarity in NEAREST.items()}
    found["ridge"] = Model(ridge, any_width=True, worlds_alone=True)
    return found


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("ahop.")


def network(name: str, patterns: Tensor, train: Samples) -> Made:
    """A network by its short name, fitted where it learns; on signs around the mean where it takes nothing else.

    Args:
        name: The short name.
        patterns: ``(N, d)``.
        train: What it may learn from.
    """
    centre = None
    try:
        memory = create(name, patterns)
    except ValueError:
        centre = patterns.mean(0)
        memory = create(name, signs(patterns - centre))
    if not isinstance(memory, AssociativeMemory):
        return Made(Beside(memory, patterns))
    if not memory.learns:
        return Made(memory, centre)
    return Made(_taught(memory, train.queries, train.origins), labels=True)


def unlabelled(patterns: Tensor, train: Samples) -> Made:
    """b-hop, which is told no origin."""
    return Made(_taught(create("b-hop", patterns), train.queries, None))


def scattered(name: str, patterns: Tensor, train: Samples) -> Made:
    """A network that is told how far measurements of each pattern scatter.

    Args:
        name: Its short name.
        patterns: ``(N, d)``.
        train: What it learns from, and the spread.
    """
    assert isinstance(train, Replicates)
    return Made(_taught(create(name, patterns, spread=train.spread), train.queries, train.origins), labels=True)


def parts(similarity: str, separation: str, patterns: Tensor, train: Samples) -> Made:
    """A similarity and a separation; its temperature, if it has one, is that of the best Brier score on labels.

    Args:
        similarity, separation: Their names.
        patterns: ``(N, d)``.
        train: What the temperature is chosen on.
    """
    kind = Separation.named(separation)
    if "beta" not in inspect.signature(kind).parameters:
        return Made(AssociativeMemory(patterns, similarity, separation))
    known = train.origins >= 0
    queries, origins = train.queries[known], train.origins[known]

    def brier(beta: float) -> float:
        found = AssociativeMemory(patterns, similarity, kind(beta=beta)).recall(queries)
        first, sure = found.indices.squeeze(1), found.probabilities.squeeze(1)
        # Who is refused is taken for a stranger, which is a sure answer, and a wrong one.
        sure = torch.where(first < 0, 1.0, sure)
        return float(((first == origins).float() - sure).square().mean())

    return Made(AssociativeMemory(patterns, similarity, kind(beta=min(_BETAS, key=brier))))


def nearest(similarity: str, patterns: Tensor, train: Samples) -> Made:
    """The single nearest pattern.

    Args:
        similarity: Its name.
        patterns: ``(N, d)``.
        train: Not used.
    """
    return Made(AssociativeMemory(patterns, similarity, "argmax"), by_score=True)


def ridge(patterns: Tensor, train: Samples) -> Made:
    """Ridge regression from queries to patterns, tuned on labels that are held out; then the nearest."""
    known = train.origins >= 0
    return Made(
        PLAIN["ridge"].make(patterns, train.queries[known], train.origins[known], 0), by_score=True, labels=True
    )


def signs(rows: Tensor) -> Tensor:
    """-1 or +1 for every value."""
    return torch.where(rows < 0, -1.0, 1.0)


def _taught(memory: AssociativeMemory, queries: Tensor, origins: Tensor | None) -> AssociativeMemory:
    with warnings.catch_warnings():
        # What a fit has not found shows in its figures.
        warnings.simplefilter("ignore", UserWarning)
        return memory.fit(queries, origins)


@torch.no_grad()
def answer(made: Made, queries: Tensor) -> Answer:
    """What it says to queries ``(n, e)``."""
    memory, asked = made.memory, made.place(queries)
    if isinstance(memory, Compared):
        best, first = memory.score(memory.patterns, memory.move(asked.double())).max(1)
        return Answer(first, None, best)
    if isinstance(memory, Beside):
        first = torch.cdist(memory.retrieve(asked), memory.readouts).argmin(1)
        return Answer(first, None, -memory.network.energy(asked))
    first, sure = (part.squeeze(1) for part in memory.recall(asked))
    if made.by_score:
        return Answer(first, None, memory.scores(asked).amax(1))
    # By what it can do: a name would tie every row to how that memory learns.
    familiarity = getattr(memory, "familiarity", None)
    return Answer(first, sure, sure if familiarity is None else familiarity(asked))
