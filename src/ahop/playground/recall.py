"""What each memory brings back of a damaged picture, how sure it is, and the state's walk to rest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ahop.memories import BayesianHopfield, Oracle, create
from ahop.memories.base import AssociativeMemory
from ahop.playground.damage import Damage, Paint, Sliders
from ahop.playground.pictures import Pictures
from ahop.variants import Samples


class Kind(NamedTuple):
    """What a memory goes by.

    Attributes:
        about: In words.
        learns: Whether it is told the origins of examples.
        alone: Whether it learns from examples without origins, too.
        knows: Whether it is told the damage itself.
    """

    about: str
    learns: bool = False
    alone: bool = False
    knows: bool = False


# The memories on the page, by name.
MEMORIES = {
    "m-hop": Kind("dot product"),
    "u-hop": Kind("Manhattan distance, the best alone"),
    "s-hop": Kind("dot product, few patterns"),
    "k2-hop": Kind("dot product in a learned space", learns=True),
    "a-hop": Kind("learned weights of sorted terms", learns=True),
    "b-hop": Kind("learned likelihood of the damage", learns=True, alone=True),
    "Oracle": Kind("the true likelihood: the ceiling", knows=True),
}
EXAMPLES = 150
# The share of genuine queries that may be refused.
REFUSED = 0.05
_BEST = 5
_MOST_STEPS = 12
# Chances that differ by less are equal.
_EQUAL = 1e-3


class Task(NamedTuple):
    """A picture, what happens to it, and whether it is taken out of the memory before.

    Attributes:
        pictures: Those to store.
        chosen: The picture that is damaged.
        sliders, paint: What happens to it.
        forget: Whether that picture is not stored; "none of these" is then the right answer.
        seed: Of the noise.
    """

    pictures: Pictures
    chosen: int
    sliders: Sliders = Sliders()
    paint: Paint = Paint()
    forget: bool = False
    seed: int = 0

    @property
    def damage(self) -> Damage:
        return Damage(self.pictures.shape, self.sliders, self.paint, seed=self.seed)

    @property
    def query(self) -> Tensor:
        """The damaged picture, ``(d,)``."""
        return self.damage.query(self.pictures.patterns[self.chosen], self.seed)

    @property
    def stored(self) -> list[int]:
        """The pictures in the memory, in its order."""
        return [place for place in range(len(self.pictures)) if not (self.forget and place == self.chosen)]


class Answer(NamedTuple):
    """What one memory says.

    Attributes:
        name: Of the memory.
        picture: What it brings back, ``(d,)``.
        best: The five pictures that explain the query best, and the probability of each.
        right: Whether the first is the one, or as likely as the one; None where that one is not stored.
        tied: Whether two or more are as likely as the first.
        refused: Whether it says "none of these"; None for a memory that cannot.
    """

    name: str
    picture: Tensor
    best: tuple[tuple[int, float], ...]
    right: bool | None
    tied: bool
    refused: bool | None


class Walk(NamedTuple):
    """The states from the query to rest, ``(T, d)``, the energy of each, ``(T,)``, and whether the last one rests."""

    states: Tensor
    energies: Tensor
    rests: bool


def names_for(damage: Damage) -> list[str]:
    """The memories that can be asked; an Oracle only where the likelihood is known."""
    return [name for name, kind in MEMORIES.items() if damage.scored or not kind.knows]


def memory_for(task: Task, name: str) -> AssociativeMemory:
    """A memory of the task's pictures that has seen examples of its damage."""
    left_out = task.chosen if task.forget else None
    return _taught(task.pictures, left_out, task.sliders, task.paint, name)


@lru_cache(maxsize=128)
def _taught(pictures: Pictures, left_out: int | None, sliders: Sliders, paint: Paint, name: str) -> AssociativeMemory:
    patterns = pictures.patterns
    if left_out is not None:
        patterns = torch.cat([patterns[:left_out], patterns[left_out + 1 :]])
    damage = Damage(pictures.shape, sliders, paint, seed=1)
    return taught(name, patterns, damage.sample(patterns, EXAMPLES), damage)


def taught(name: str, patterns: Tensor, train: Samples, damage: Damage, *, labels: bool = True) -> AssociativeMemory:
    """A memory by name, fitted to damaged examples.

    Args:
        name: The memory's name on the page.
        patterns: ``(N, d)``.
        train: The examples and their origins.
        damage: What was done to them, which the Oracle knows.
        labels: Whether to learn from the origins as well.
    """
    if MEMORIES[name].knows:
        return Oracle(patterns, damage)
    memory = create(name, patterns)
    if not memory.learns:
        return memory
    options: dict[str, Any] = {"verbose": False} if isinstance(memory, BayesianHopfield) else {}
    with warnings.catch_warnings():
        # What was learned so far is kept, and good enough to look at.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return memory.fit(train.queries, train.origins if labels else None, **options)


@torch.no_grad()
def ask(task: Task, name: str) -> Answer:
    """What one memory says of the task's query."""
    memory, query, stored = memory_for(task, name), task.query, task.stored
    found = memory.recall(query, min(_BEST, len(memory)))
    best = tuple(
        (stored[index], chance)
        for index, chance in zip(found.indices.tolist(), found.probabilities.tolist(), strict=True)
    )
    refused = None
    if isinstance(memory, BayesianHopfield) and int(memory.similarity.genuine_count):
        refused = int(memory.recall(query, reject=REFUSED).indices) < 0
    wanted = task.pictures.patterns[task.chosen]
    likeliest = [index for index, chance in best if chance > best[0][1] - _EQUAL]
    right = any(torch.equal(task.pictures.patterns[index], wanted) for index in likeliest)
    return Answer(name, memory.retrieve(query), best, None if task.forget else right, len(likeliest) > 1, refused)


def ask_all(task: Task) -> Iterator[Answer]:
    """One answer after the other; those that need not learn come first."""
    for name in sorted(names_for(task.damage), key=lambda name: MEMORIES[name].learns):
        yield ask(task, name)


@torch.no_grad()
def walk(memory: AssociativeMemory, query: Tensor, most: int = _MOST_STEPS) -> Walk:
    """The state after each step of retrieval, until it rests or ``most`` steps are made.

    Args:
        memory: What retrieves.
        query: The first state, ``(d,)``.
        most: The most steps to make.
    """
    states, rests = [query], False
    while len(states) <= most and not rests:
        states.append(memory.retrieve(states[-1]))
        rests = bool((states[-1] - states[-2]).abs().max() <= 1e-4)
    path = torch.stack(states)
    return Walk(path, memory.energy(path), rests)
