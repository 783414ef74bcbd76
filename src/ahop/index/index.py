"""Index: the two stages of a recall from many patterns, and what keeps them in step with the memory."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._checks import Observed
from ahop._component import single
from ahop._recall import Recall
from ahop.index import view as views
from ahop.index.host import Host
from ahop.index.rough import Engine
from ahop.index.storage import read, save
from ahop.index.view import CANDIDATES, View


class Agreement(NamedTuple):
    """How far answers agree with exact scoring: the share of first choices, that of all k choices, and the largest
    difference of a first choice's probability."""

    first: float
    all: float
    probability: float


class Index:
    r"""Recall from many patterns at the cost of a dot product.

    1. Rough scores of *all* patterns, by dot products of narrow codes in low precision, or by FAISS with four bits a
       dimension, name some candidates and say what the others sum up to.
    2. The learned likelihood scores the candidates exactly.

    It belongs to its memory and follows it: what is added or removed there is here as well, and what the memory learns
    makes new codes at the next recall. Make one by ``memory.index()``.

    Args:
        memory: What to recall from.

    Example:
        >>> patterns = torch.rand(2000, 16, generator=torch.Generator().manual_seed(0))
        >>> world = ahop.variants.Noisy(0.3)
        >>> memory = ahop.BayesianHopfield(patterns).fit(*world.sample(patterns, 200))
        >>> index, queries = memory.index(), world.sample(patterns, 50).queries
        >>> bool((index.recall(queries).indices == memory.recall(queries).indices).all())
        True
    """

    def __init__(self, memory: Host) -> None:
        self.memory, self.view = memory, View(memory, views.build_engine(memory))

    @classmethod
    def around(cls, memory: Host, engine: Engine) -> Index:
        """One whose codes are already made; the memory takes it for its own."""
        if len(engine) != len(memory):
            raise ValueError(f"codes must be those of the {len(memory)} stored patterns, got {len(engine)}")
        index = cls.__new__(cls)
        index.memory, index.view = memory, View(memory, engine)
        memory._index = index
        return index

    @classmethod
    def open(cls, folder: str | os.PathLike[str], device: str = "cpu") -> Index:
        """The one that was saved in ``folder``; patterns and codes are read when they are needed."""
        memory, engine = read(folder)
        index = cls.around(memory, engine)
        # A GPU has codes of its own, which the next recall makes.
        memory.to(device)
        return index

    @property
    def engine(self) -> Engine:
        """The way it searches."""
        return self.view.engine

    def __len__(self) -> int:
        return len(self.memory)

    def __repr__(self) -> str:
        return f"Index({self.memory!r})"

    def recall(self, queries: Any, k: int = 1, *, candidates: int = CANDIDATES, observed: Observed = None) -> Recall:
        """The k stored patterns that best explain each query, as from the memory.

        Several threads may ask while others add, remove and learn: each answer is that of the memory at one moment.

        Args:
            queries: ``(..., d)``.
            k: How many patterns, at most N.
            candidates: How many are scored exactly for each query, or k where that is more.
            observed: As in the memory; codes of hidden causes and of a moved space need complete queries.

        Shape:
            ``indices`` and ``probabilities`` are ``(..., k)``, best first.
        """
        with self._asking() as (_, view):
            return view.recall(queries, k, candidates=candidates, observed=observed)

    @torch.no_grad()
    def agreement(self, queries: Any, k: int = 10, *, candidates: int = CANDIDATES) -> Agreement:
        """How far answers to these queries agree with exact scoring of all patterns, which takes its time.

        Args:
            queries: ``(..., d)``.
            k: How many answers to compare.
            candidates: How many candidates the index scores exactly.
        """
        with self._asking() as (now, view):
            k = min(k, len(view))
            found, exact = view.recall(queries, k, candidates=candidates), now.recall_exactly(queries, k)
        first = float((found.indices[..., 0] == exact.indices[..., 0]).double().mean())
        common = (found.indices[..., :, None] == exact.indices[..., None, :]).any(-1).double().mean()
        gap = (found.probabilities[..., 0] - exact.probabilities[..., 0]).abs()
        return Agreement(first, float(common), float(gap.amax()))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write memory and codes into ``folder``; :func:`ahop.load` opens them without reading them."""
        with self.memory.changing:
            now, engine = copy.copy(self.memory), self.fresh().engine
        save(now, engine, folder)

    # --- in step with the memory -------------------------------------------------------------------------

    @contextmanager
    def _asking(self) -> Iterator[tuple[Host, View]]:
        """The memory and its codes at one moment. Codes here are never written to; those in a database are."""
        with ExitStack() as turn:
            turn.enter_context(self.memory.changing)
            now, view = copy.copy(self.memory), self.fresh()
            if view.engine.local:
                turn.close()
            yield now, view

    def fresh(self) -> View:
        """The memory as it is now; codes are made anew if it has learned, was moved, or changed untold."""
        with self.memory.changing:
            if not self.view.is_of(self.memory):
                if not self.engine.local:
                    raise ValueError(
                        "the memory has changed and its database has not followed: call over(memory, store) again"
                    )
                self.view = View(self.memory, views.build_engine(self.memory))
            return self.view

    def follow(self, before: Tensor, kept: Tensor, added: int) -> None:
        """Follow the memory: of the patterns before, these are kept, and so many were added behind them.

        Args:
            before: The patterns before the change, ``(N, d)``.
            kept: Indices of those that were kept, in their order.
            added: How many were added behind them.
        """
        alike = self.view.patterns is before and self.view.learned_as(self.memory)
        new = single(self.memory.patterns[len(kept) :]).float()
        # With a prior, the share of every pattern has changed; and the others may be unlike what codes were made for.
        # The next recall makes new codes then.
        if not alike or self.memory.prior is not None or not self.view.covers(len(self.memory), new):
            return
        # Others may be searching in the old one.
        engine = copy.copy(self.view.engine)
        if len(kept) < len(before):
            engine.keep(kept)
        if added:
            engine.add(new, None)
        self.view = View(self.memory, engine, self.view.made_for)
