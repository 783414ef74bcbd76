"""A memory as it was at one moment, with its codes: what a recall goes by, whatever is added or learned meanwhile."""

from __future__ import annotations

import importlib.util
import math
import threading
from typing import Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import Observed, as_queries, integer
from ahop._component import single
from ahop._queries import Queries
from ahop._recall import Recall, with_doubt
from ahop.index.host import Host
from ahop.index.products import Products
from ahop.index.recorded import Recorded
from ahop.index.rough import Engine, Rough, sampled
from ahop.index.scan import Scan
from ahop.similarity import Corruption

# How many patterns are scored exactly for each query, unless told otherwise.
CANDIDATES = 100
# Root mean square error of a rough score.
TOLERANCE = 0.1
# The log of the share of a sum from which on it has to be right.
_LOG_NEGLIGIBLE = math.log(2e-3)
# So few queries are asked by steps that a GPU has recorded.
_RECORDED_QUERIES = 8


class View:
    """Patterns, what was learned, and the codes that belong to them. Nothing of it changes.

    Args:
        memory: As it is now.
        engine: Its codes.
        made_for: How many patterns there were when codes were chosen; None is now.
    """

    def __init__(self, memory: Host, engine: Engine, made_for: int | None = None) -> None:
        self.patterns, self.prior, self.similarity = memory.patterns, memory.prior, memory.similarity
        self.log_prior, self.query_dim, self.engine = memory._log_prior(), memory.query_dim, engine
        self.made_for = len(memory) if made_for is None else made_for
        self._learned = [*self.similarity.parameters(), *self.similarity.buffers()]
        self._marks = _marks([self.patterns, *self._learned])
        self._recorded: dict[tuple[int, int, int], Recorded] = {}
        # What was recorded has one place for what it is given: threads take turns.
        self._turn = threading.Lock()

    def __len__(self) -> int:
        return len(self.patterns)

    def is_of(self, memory: Host) -> bool:
        """Whether the memory is still what it was then."""
        return self.patterns is memory.patterns and self.prior is memory.prior and self.learned_as(memory)

    def learned_as(self, memory: Host) -> bool:
        """Whether it has learned nothing since, whatever was added or removed."""
        now = [*memory.similarity.parameters(), *memory.similarity.buffers()]
        same = len(now) == len(self._learned) and all(
            one is other for one, other in zip(now, self._learned, strict=True)
        )
        return same and self._marks == _marks([self.patterns, *now])

    def covers(self, count: int, new: Tensor) -> bool:
        """Whether the codes are good for so many patterns, of which some are new ``(n, d)``."""
        near = self.made_for <= 2 * count <= 4 * self.made_for
        return near and all(codes.covers(new) for _, codes in self.engine.rough.parts)

    # --- from queries to answers -------------------------------------------------------------------------

    @torch.no_grad()
    def recall(self, queries: Any, k: int = 1, *, candidates: int = CANDIDATES, observed: Observed = None) -> Recall:
        """The k stored patterns that best explain each query; see :meth:`ahop.index.Index.recall`.

        Args:
            queries: ``(..., d)``.
            k: How many patterns to return.
            candidates: How many to score exactly.
            observed: Which entries of the queries to trust, as in :meth:`ahop.index.Index.recall`.
        """
        if integer(k, "k", 1) > len(self):
            raise ValueError(f"k must be between 1 and {len(self)}, the number of stored patterns; got {k}")
        count = min(max(integer(candidates, "candidates", 1), k), len(self))
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = asked.flat().single()
        # Candidates take room: so many patterns, several times over.
        parts = split(len(flat), 8 * count * self.patterns.shape[1] * flat.rows.element_size())
        found = [self.best(flat[part], count, k) for part in parts]
        shape = (*asked.rows.shape[:-1], k)
        if not found:
            return Recall(flat.rows.new_empty(shape, dtype=torch.long), flat.rows.new_empty(shape))
        indices, sure = (torch.cat(some).reshape(shape) for some in zip(*found, strict=True))
        return with_doubt(Recall(indices, sure), self.similarity.doubt, self.log_prior, len(self))

    def best(self, queries: Queries, count: int, k: int) -> tuple[Tensor, Tensor]:
        """The k best of so many candidates and their probabilities, ``(Q, k)`` each.

        Args:
            queries: ``(Q, d)``.
            count: How many candidates to score exactly.
            k: How many to return.
        """

        def steps(queries: Queries) -> tuple[Tensor, ...]:
            chosen, logits, total = self.scored(queries, count)
            first = logits.sort(dim=1, descending=True, stable=True).indices[:, :k]
            return chosen.gather(1, first), (logits.gather(1, first) - total[:, None]).exp()

        if queries.observed is None and len(queries) <= _RECORDED_QUERIES and self.engine.recordable:
            shape = len(queries), count, k
            with self._turn:
                if shape not in self._recorded:
                    self._recorded[shape] = Recorded(lambda rows: steps(Queries(rows)), queries.rows)
                found, sure = self._recorded[shape](queries.rows)
        else:
            found, sure = steps(queries)
        return found, sure

    def scored(self, queries: Queries, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """So many candidates ``(Q, C)`` in the order of the patterns, for equal ones to come in that order, with their
        exact logits ``(Q, C)``; and the log of what all patterns sum up to ``(Q,)``."""
        found = self.engine.search(queries, count, self.log_prior)
        chosen, order = found.listed[:, :count].sort(1)
        logits = self._exact(chosen, queries).masked_fill_(chosen < 0, -math.inf)
        own, rest = logits.logsumexp(1), found.log_rest.to(logits)
        if found.scores is None:
            return chosen, logits, torch.logaddexp(own, rest)
        rough = found.scores.to(logits)
        off = _off(rough[:, :count].gather(1, order), logits)
        if found.listed.shape[1] == count:
            return chosen, logits, torch.logaddexp(own, rest + off)
        others = rough[:, count:].logsumexp(1) + off
        # Where they matter, they are scored exactly as well.
        hard = (others - torch.logaddexp(own, others) > _LOG_NEGLIGIBLE).nonzero().squeeze(1)
        if len(hard):
            others[hard] = self._exact(found.listed[hard, count:], queries[hard]).logsumexp(1)
        return chosen, logits, torch.logaddexp(torch.logaddexp(own, others), rest)

    def _exact(self, chosen: Tensor, queries: Queries) -> Tensor:
        patterns, places = self.patterns, chosen
        if patterns.dtype != single(patterns[:0]).dtype:
            # Only those that are wanted are made into float32.
            patterns = single(patterns[chosen.flatten()])
            places = torch.arange(chosen.numel(), device=chosen.device).view_as(chosen)
        scores = self.similarity.exact(patterns, places, queries.rows, queries.observed)
        return scores if self.log_prior is None else scores + self.log_prior[chosen]


def _off(rough: Tensor, exact: Tensor) -> Tensor:
    """By how much rough scores are too low, as far as the lower half of the candidates tells: the upper half are
    candidates because theirs are too high."""
    lower = (rough <= rough.median(1, keepdim=True).values) & rough.isfinite()
    gap = torch.where(lower, exact - rough, -math.inf)
    return gap.logsumexp(1) - lower.sum(1).clamp_min(1).to(exact).log()


def _marks(tensors: list[Tensor]) -> list[tuple[Any, ...]]:
    """How often each was written to, as far as PyTorch counts that, and where it is."""
    return [(0 if one.is_inference() else one._version, one.device, one.dtype) for one in tensors]


# --- codes -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def rough_of(similarity: Corruption, patterns: Tensor) -> Rough:
    """Rough scores of what was learned, good for patterns like these."""
    return Rough(similarity.mixture(patterns, TOLERANCE), math.exp(float(similarity.log_beta)))


@torch.no_grad()
def build_engine(memory: Host, rough: Rough | None = None) -> Engine:
    """Codes of all patterns of a memory, where it is; by those rough scores, or its own."""
    patterns, log_prior = single(memory.patterns), memory._log_prior()
    some = sampled(patterns).float()
    rough = rough_of(memory.similarity, some) if rough is None else rough
    engine: Engine | None = None
    if patterns.device.type == "cpu" and importlib.util.find_spec("faiss") is not None:
        engine = Scan.of(rough, some, log_prior)
    if engine is None:
        engine = Products(rough, patterns.device)
    engine.add(patterns.float(), log_prior)
    return engine
