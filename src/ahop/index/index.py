"""Index: the two stages of a recall from many patterns, and what keeps them in step with the memory."""

from __future__ import annotations

import importlib.util
import math
import os
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import Observed, as_queries, whole
from ahop._component import single
from ahop.index.products import Products
from ahop.index.recorded import Recorded
from ahop.index.rough import Engine, Rough, seen
from ahop.index.scan import Scan
from ahop.index.storage import save
from ahop.memories.base import Recall

if TYPE_CHECKING:
    from ahop.memories.bayesian import BayesianHopfield

# Root mean square error of a rough score.
TOLERANCE = 0.1
# The log of the share of a sum from which on it has to be right.
_MATTERS = math.log(2e-3)
# So few queries are asked by steps that a GPU has recorded.
_FEW = 8
# How many patterns are scored exactly for each query, unless told otherwise.
CANDIDATES = 100


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

    def __init__(self, memory: BayesianHopfield) -> None:
        self.memory, self.engine = memory, _made(memory)
        self._follows()

    @classmethod
    def around(cls, memory: BayesianHopfield, engine: Engine) -> Index:
        """One whose codes are already made; the memory takes it for its own."""
        index = cls.__new__(cls)
        index.memory, index.engine = memory, engine
        index._follows()
        memory._index = index
        return index

    def __len__(self) -> int:
        return len(self.memory)

    def __repr__(self) -> str:
        return f"Index({self.memory!r})"

    @torch.no_grad()
    def recall(self, queries: Any, k: int = 1, *, candidates: int = CANDIDATES, observed: Observed = None) -> Recall:
        """The k stored patterns that best explain each query, as from the memory.

        Args:
            queries: ``(..., d)``.
            k: How many patterns, at most N.
            candidates: How many are scored exactly for each query, or k where that is more.
            observed: As in the memory; codes of hidden causes and of a moved space need whole queries.

        Shape:
            ``indices`` and ``probabilities`` are ``(..., k)``, best first.
        """
        self._refresh()
        memory = self.memory
        if whole(k, "k", 1) > len(memory):
            raise ValueError(f"k must lie in 1 to {len(memory)}, the number of stored patterns; got {k}")
        count = min(max(whole(candidates, "candidates", 1), k), len(memory))
        queries, mask = as_queries(queries, memory.patterns, observed, memory.query_dim)
        flat = single(queries.reshape(-1, queries.shape[-1]))
        mask = None if mask is None else mask.reshape(flat.shape)
        indices, probabilities = [], []
        # Candidates take room: so many patterns, several times over.
        for part in split(len(flat), 8 * count * memory.patterns.shape[1] * flat.element_size()):
            found, sure = self._best(flat[part], None if mask is None else mask[part], count, k)
            indices.append(found)
            probabilities.append(sure)
        shape = (*queries.shape[:-1], k)
        if not indices:
            return Recall(torch.empty(shape, dtype=torch.long), flat.new_empty(shape))
        return memory.doubted(Recall(torch.cat(indices).reshape(shape), torch.cat(probabilities).reshape(shape)))

    def _best(self, queries: Tensor, observed: Tensor | None, count: int, k: int) -> tuple[Tensor, Tensor]:
        """The k best and their probabilities, ``(Q, k)`` each."""

        def steps(queries: Tensor) -> tuple[Tensor, Tensor]:
            chosen, logits, total = self._scored(queries, observed, count)
            first = logits.sort(dim=1, descending=True, stable=True).indices[:, :k]
            return chosen.gather(1, first), (logits.gather(1, first) - total[:, None]).exp()

        if observed is not None or len(queries) > _FEW or not getattr(self.engine, "recordable", False):
            return steps(queries)
        shape = len(queries), count, k
        if shape not in self._recorded:
            self._recorded[shape] = Recorded(steps, queries)
        found, sure = self._recorded[shape](queries)
        return found, sure

    def _scored(self, queries: Tensor, observed: Tensor | None, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """So many candidates ``(Q, C)`` in the order of the patterns, for equal ones to come in that order, with their
        exact logits ``(Q, C)``; and the log of what all patterns sum up to ``(Q,)``."""
        log_prior = self.memory._log_prior()
        found = self.engine.search(queries, observed, count, log_prior)
        chosen, order = found.listed[:, :count].sort(1)
        logits = self._exact(chosen, queries, observed, log_prior).masked_fill_(chosen < 0, -math.inf)
        own, rest = logits.logsumexp(1), found.log_rest.to(logits)
        if found.scores is None:
            return chosen, logits, torch.logaddexp(own, rest)
        rough = found.scores.to(logits)
        off = _off(rough[:, :count].gather(1, order), logits)
        if found.listed.shape[1] == count:
            return chosen, logits, torch.logaddexp(own, rest + off)
        others = rough[:, count:].logsumexp(1) + off
        # Where they matter, they are scored exactly as well.
        hard = (others - torch.logaddexp(own, others) > _MATTERS).nonzero().squeeze(1)
        seen_of = None if observed is None else observed[hard]
        others[hard] = self._exact(found.listed[hard, count:], queries[hard], seen_of, log_prior).logsumexp(1)
        return chosen, logits, torch.logaddexp(torch.logaddexp(own, others), rest)

    def _exact(self, chosen: Tensor, queries: Tensor, observed: Tensor | None, log_prior: Tensor | None) -> Tensor:
        patterns, places = self.memory.patterns, chosen
        if patterns.dtype != single(patterns[:0]).dtype:
            # Only those that are wanted are made into float32.
            some, places = chosen.unique(return_inverse=True)
            patterns = single(patterns[some])
        scores = self.memory.similarity.exact(patterns, places, queries, observed)
        return scores if log_prior is None else scores + log_prior[chosen]

    @torch.no_grad()
    def agreement(self, queries: Any, k: int = 10, *, candidates: int = CANDIDATES) -> Agreement:
        """How far answers to these queries agree with exact scoring of all patterns, which takes its time."""
        self._refresh()
        k = min(k, len(self))
        found, exact = self.recall(queries, k, candidates=candidates), self.memory.recall_exactly(queries, k)
        first = float((found.indices[..., 0] == exact.indices[..., 0]).double().mean())
        common = (found.indices[..., :, None] == exact.indices[..., None, :]).any(-1).double().mean()
        gap = (found.probabilities[..., 0] - exact.probabilities[..., 0]).abs()
        return Agreement(first, float(common), float(gap.amax()))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write memory and codes into ``folder``; :func:`ahop.load` opens them without reading them."""
        self._refresh()
        save(self, folder)

    # --- in step with the memory -------------------------------------------------------------------------

    def _refresh(self) -> None:
        """Make the codes anew if the memory has learned, was moved, or changed in a way that nobody told."""
        if not self._snapshot.holds(self.memory):
            self.engine = _made(self.memory)
            self._follows()

    def _follows(self) -> None:
        """The codes are those of the memory as it is now, and what was recorded with others is gone."""
        self._snapshot = Snapshot(self.memory)
        self._recorded: dict[tuple[int, int, int], Recorded] = {}

    def follow(self, before: Tensor, kept: Tensor, added: int) -> None:
        """Follow the memory: of the patterns before, these are kept, and so many were added behind them."""
        if not self._snapshot.learned_alike(self.memory) or self._snapshot.patterns() is not before:
            # Something else has changed as well: the next recall makes new codes.
            return
        if 2 * len(kept) < len(before):
            # What is left may be unlike what codes were made for.
            return
        if self.memory.prior is None:
            if len(kept) < len(before):
                self.engine.keep(kept)
            if added:
                self.engine.add(single(self.memory.patterns[-added:]).float(), None)
            self._follows()


def _off(rough: Tensor, exact: Tensor) -> Tensor:
    """By how much rough scores are too low, as far as the lower half of the candidates tells: the upper half are
    candidates because theirs are too high."""
    lower = (rough <= rough.median(1, keepdim=True).values) & rough.isfinite()
    gap = torch.where(lower, exact - rough, -math.inf)
    return gap.logsumexp(1) - lower.sum(1).clamp_min(1).to(exact).log()


class Snapshot:
    """What tells one state of a memory from another: its tensors, and how often each was written to."""

    def __init__(self, memory: BayesianHopfield) -> None:
        self.patterns = weakref.ref(memory.patterns)
        self.learned = [(weakref.ref(one), *_mark(one)) for one in _learned(memory)]
        self.written = _mark(memory.patterns)
        self.prior = None if memory.prior is None else weakref.ref(memory.prior)

    def learned_alike(self, memory: BayesianHopfield) -> bool:
        now = _learned(memory)
        return len(now) == len(self.learned) and all(
            before() is one and tuple(mark) == _mark(one)
            for one, (before, *mark) in zip(now, self.learned, strict=True)
        )

    def holds(self, memory: BayesianHopfield) -> bool:
        same = self.patterns() is memory.patterns and self.written == _mark(memory.patterns)
        prior = None if self.prior is None else self.prior()
        return same and prior is memory.prior and self.learned_alike(memory)


def _learned(memory: BayesianHopfield) -> list[Tensor]:
    return [*memory.similarity.parameters(), *memory.similarity.buffers()]


def _mark(tensor: Tensor) -> tuple[int, torch.device, torch.dtype]:
    return tensor._version, tensor.device, tensor.dtype


@torch.no_grad()
def _made(memory: BayesianHopfield) -> Engine:
    patterns, log_prior = single(memory.patterns), memory._log_prior()
    some = seen(patterns).float()
    beta = math.exp(float(memory.similarity.log_beta))
    rough = Rough(memory.similarity.mixture(some, TOLERANCE), beta)
    engine: Engine | None = None
    if patterns.device.type == "cpu" and importlib.util.find_spec("faiss") is not None:
        engine = Scan.of(rough, some, log_prior)
    if engine is None:
        engine = Products(rough, patterns.device)
    engine.add(patterns.float(), log_prior)
    return engine
