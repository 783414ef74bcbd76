"""What an actor of a Ray cluster holds: some of the patterns, and how it comes to what a question goes by."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._extras import require
from ahop._queries import Queries
from ahop.index.index import Index
from ahop.index.rough import sampled
from ahop.index.view import View, build_engine


def cluster() -> Any:
    """The library that knows the cluster."""
    require("ray", extra="ray")
    import ray

    return ray


class Version(NamedTuple):
    """What was learned: the number of the version, and where the similarity and its codes lie in the cluster.

    In a list, for Ray to hand on where they lie, and not what they are; so it is with patterns.
    """

    number: int
    places: list[Any]


class Change(NamedTuple):
    """What came to a shard's patterns or went; no two have the same number.

    Attributes:
        number: Which change it is.
        kind: ``"start"`` from these patterns, ``"add"`` them, or ``"remove"`` those at these places.
        places: Where the patterns or places lie in the cluster, and the prior of all that the shard then has, or None.
    """

    number: int
    kind: str
    places: list[Any]


class State(NamedTuple):
    """What a question goes by: a start and all that changed since, and the last version learned."""

    changes: tuple[Change, ...]
    version: Version


class Shard:
    """Some of the patterns, with codes that all shards share.

    A shard that was started again has missed versions and changes, and one may have received a change that was given
    up. So each question brings what it goes by.

    Args:
        kind: Of memory.
        device: Where it computes.
    """

    def __init__(self, kind: Any, device: str) -> None:
        self.kind, self.device = kind, device
        self.memory: Any = None
        self.known: tuple[int, ...] = ()
        self.version, self.rough = -1, None

    def answer(self, state: State, queries: Queries, count: int, k: int) -> tuple[Tensor, Tensor, Tensor]:
        """The k best here, their logits ``(Q, k)``, and the log of what all here sum to ``(Q,)``.

        Args:
            state: What was learned, and which version of it.
            queries: ``(Q, d)``.
            count: How many candidates to score exactly.
            k: How many to return.
        """
        view = self._view(state)
        with torch.no_grad():
            chosen, logits, total = view.scored(queries.to(self.device), min(count, len(view)))
        best = logits.sort(dim=1, descending=True, stable=True).indices[:, :k]
        return chosen.gather(1, best).cpu(), logits.gather(1, best).cpu(), total.cpu()

    def rows(self, state: State, places: Tensor) -> Tensor:
        """Some of the patterns, by their places here."""
        return self._patterns(state)[places.to(self.device)].cpu()

    def some(self, state: State, count: int) -> Tensor:
        """So many patterns by chance, or all, with the lowest and highest values."""
        return sampled(self._patterns(state), count).cpu()

    def all(self, state: State) -> Tensor:
        """All patterns."""
        return self._patterns(state).cpu()

    # --- what a question goes by -------------------------------------------------------------------------

    def _view(self, state: State) -> View:
        self._patterns(state)
        if self.version != state.version.number:
            similarity, self.rough = cluster().get(state.version.places)
            self.memory.similarity = copy.deepcopy(similarity).to(self.memory.patterns)
            self.version = state.version.number
        index = self.memory._index
        # Where it could not follow, codes are made of what all shards share.
        if index is None or not index.view.is_of(self.memory):
            index = Index.around(self.memory, build_engine(self.memory, self.rough))
        view: View = index.view
        return view

    def _patterns(self, state: State) -> Tensor:
        numbers = tuple(change.number for change in state.changes)
        if self.known != numbers[: len(self.known)]:
            self.known = ()
        for change in state.changes[len(self.known) :]:
            self._change(change)
            self.known += (change.number,)
        patterns: Tensor = self.memory.patterns
        return patterns

    def _change(self, change: Change) -> None:
        given, prior = cluster().get(change.places[0]), change.places[1]
        prior = None if prior is None else cluster().get(prior)
        if change.kind == "start":
            self.memory, self.version = self.kind(given, prior=prior).to(self.device), -1
            return
        if change.kind == "add":
            self.memory.add(given, prior=None if prior is None else torch.ones(len(given)))
        else:
            self.memory.remove(given)
        if prior is not None:
            self.memory.prior = prior.to(self.memory.prior)
