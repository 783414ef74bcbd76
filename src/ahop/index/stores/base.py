"""What is asked of a vector database, and an index whose candidates come from one."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ahop._checks import as_tensor, positive
from ahop._component import single
from ahop._progress import progress
from ahop._queries import Queries
from ahop.index.host import Host
from ahop.index.index import Index
from ahop.index.rough import Found, Rough, sampled
from ahop.index.sample import Sample
from ahop.index.view import TOLERANCE
from ahop.similarity.codes import NoCodesError

# Rows that are sent at a time; each is stored whole or not at all.
_BATCH = 1000


class StoreError(RuntimeError):
    """A database did not do what it was asked to."""


class Store(Protocol):
    """A vector database with one set of vectors, found by their dot product, cosine or distance.

    Three methods on numpy arrays are all that another one needs. What goes wrong is raised as :class:`StoreError`.
    """

    def upsert(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        """Store vectors ``(n, w)`` of float32 under ids ``(n,)`` of int64, in place of those that are there already."""

    def delete(self, ids: np.ndarray) -> None:
        """Remove the vectors of these ids; one that is not there is no error."""

    def search(self, vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The best ids for each vector ``(Q, w)`` and their scores, ``(Q, count)`` each, best first; -1 where there are
        not so many."""


@torch.no_grad()
def over(
    memory: Host,
    store: Store,
    *,
    metric: str | None = None,
    ids: Any = None,
    tolerance: float = TOLERANCE,
    upload: bool = True,
) -> Index:
    """An index whose candidates come from a database; exact likelihoods score them here.

    Args:
        memory: What to recall from. Its patterns stay here as well: they are what is scored.
        store: Where the vectors lie.
        metric: None sends codes of the patterns. With "inner", "cosine" or "l2" the database holds the patterns as they
            are, as an existing table of embeddings does, and goes by that; queries of a moved space are then brought
            there by :meth:`~ahop.BayesianHopfield.query_adapter`.
        ids: Under which id each pattern is stored, ``(N,)``, rising; None counts from 0.
        tolerance: Root mean square error of a score by codes: more makes narrower codes.
        upload: Whether the vectors are sent now. It can be repeated after an interruption: each is stored once, under
            its id. False where the database has them.

    ``memory.add`` and ``memory.remove`` then write to the database as well. After anything else that changes the
    memory, call this again. Threads of this process take turns at the database; other processes must not change it.
    """
    patterns, log_prior = single(memory.patterns).float(), memory._log_prior()
    numbers = _numbers(ids, len(memory))
    parts = memory.similarity.mixture(sampled(patterns), positive(tolerance, "tolerance"))
    rough = Rough(parts, math.exp(float(memory.similarity.log_beta)))
    if len(rough.parts) > 1:
        raise NoCodesError(
            f"a database needs a single likelihood, got a mixture of {len(rough.parts)}, whose scores are not dot "
            "products"
        )
    if metric is None and not rough.parts[0][1].fit_float32(sampled(patterns)):
        raise NoCodesError(
            "patterns lie too far apart for a database: float32, which it holds, would lose what tells neighbours apart"
        )
    adapter = None if metric is None else memory.query_adapter(metric)
    engine = Stored(rough, store, adapter)
    engine.hold(patterns, log_prior, numbers, upload)
    return Index.around(memory, engine)


def _numbers(ids: Any, count: int) -> np.ndarray:
    if ids is None:
        return np.arange(count)
    numbers = as_tensor(ids, "ids", whole=True).cpu().numpy()
    if numbers.shape != (count,) or bool((np.diff(numbers) <= 0).any()):
        raise ValueError(f"ids must be {count} increasing integers, one per pattern; got shape {numbers.shape}")
    return numbers.astype(np.int64)


class Stored:
    """Search in a database; see :class:`ahop.index.rough.Engine`.

    Args:
        rough: What to score by; of one part.
        store: The database.
        adapter: From queries to what it is asked with; None asks with codes.
    """

    local, recordable = False, False

    def __init__(self, rough: Rough, store: Store, adapter: Callable[[Tensor], Tensor] | None) -> None:
        self.rough, self.store, self.adapter = rough, store, adapter
        self.ids = np.empty(0, np.int64)
        self.sample = Sample(rough)

    def __len__(self) -> int:
        return len(self.ids)

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        raise ValueError("an index over a database is not saved: its vectors are there already; save the memory")

    def hold(self, patterns: Tensor, log_prior: Tensor | None, ids: np.ndarray, upload: bool) -> None:
        """Patterns under these ids, behind those that are there."""
        if upload:
            with progress("storing vectors", len(patterns)) as bar:
                for start in range(0, len(patterns), _BATCH):
                    rows = patterns[start : start + _BATCH]
                    vectors = rows if self.adapter is not None else self.rough.encode(rows)[0].float()
                    self.store.upsert(ids[start : start + _BATCH], vectors.cpu().contiguous().numpy())
                    bar.advance(by=len(rows))
        self.sample = self.sample.grown(patterns.cpu(), log_prior, len(self))
        self.ids = np.concatenate([self.ids, ids])

    def add(self, patterns: Tensor, log_prior: Tensor | None) -> None:
        first = int(self.ids[-1]) + 1 if len(self.ids) else 0
        new = np.arange(first, first + len(patterns))
        try:
            self.hold(patterns, log_prior, new, upload=True)
        except BaseException:
            # What was stored of them would be found, and is nothing that the memory has.
            with suppress(StoreError):
                self.store.delete(new)
            raise

    def keep(self, kept: Tensor) -> None:
        gone = np.ones(len(self.ids), bool)
        gone[kept.cpu().numpy()] = False
        self.store.delete(self.ids[gone])
        self.sample = self.sample.kept(kept.cpu(), len(self))
        self.ids = self.ids[~gone]

    def search(self, queries: Queries, count: int, log_prior: Tensor | None) -> Found:
        question = self.rough.ask(queries)
        vectors = question[0].codes if self.adapter is None else self.adapter(queries.rows)
        ids, products = self.store.search(vectors.float().cpu().contiguous().numpy(), count)
        listed = torch.from_numpy(self._places(ids)).to(queries.rows.device)
        scores = None
        if self.adapter is None:
            scores = self.rough.logits(question, [torch.from_numpy(products).to(queries.rows)])
            scores = scores if log_prior is None else scores + log_prior[listed]
            scores = scores.masked_fill(listed < 0, -math.inf)
        return Found(listed, scores, self.sample.log_rest(question, len(self), listed))

    def _places(self, ids: np.ndarray) -> np.ndarray:
        """Where in the memory the patterns of these ids stand; -1 stays."""
        places = np.searchsorted(self.ids, ids).clip(0, len(self.ids) - 1)
        unknown = (self.ids[places] != ids) & (ids >= 0)
        if unknown.any():
            raise StoreError(f"the database has the id {ids[unknown][0]}, which belongs to no stored pattern")
        return np.where(ids < 0, -1, places)
