"""Past one machine: shards of an index, each held by an actor of a Ray cluster; answers are merged exactly."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import Observed, as_origins, as_queries, positive, whole
from ahop._component import single
from ahop._extras import require
from ahop._recall import Recall, doubted
from ahop.index.host import Host
from ahop.index.index import CANDIDATES
from ahop.index.rough import seen
from ahop.index.view import View, made, rough_of

# What a fit learns from: so many patterns by chance, and so many that each query may have come from.
_DRAWN, _LIKELY = 2048, 16


def _ray() -> Any:
    require("ray", extra="ray")
    import ray

    return ray


class ShardError(RuntimeError):
    """A shard did not answer."""


class PartialRecall(NamedTuple):
    """As :class:`~ahop.Recall`, of those shards that answered; ``asked`` is the share of patterns they hold."""

    indices: Tensor
    probabilities: Tensor
    asked: float


class Lesson(NamedTuple):
    """What all shards go by: which lesson it is, and where the similarity and its codes lie in the cluster.

    In a list, for Ray to hand on where they lie, and not what they are.
    """

    number: int
    places: list[Any]


class Shard:
    """What an actor holds: some of the patterns, with codes that all shards share.

    Args:
        kind: Of memory.
        patterns: ``(n, d)``.
        prior: ``(n,)``, or None.
        first: Which of all patterns its first one is.
        device: Where it computes.
    """

    def __init__(self, kind: Any, patterns: Tensor, prior: Tensor | None, first: int, device: str) -> None:
        self.memory, self.first = kind(patterns, prior=prior).to(device), first
        self.lesson = -1
        self.view: View | None = None

    def answer(
        self, lesson: Lesson, queries: Tensor, observed: Tensor | None, count: int, k: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The k best here, counted through all patterns, their logits ``(Q, k)``, and the log of what all here sum to.

        A shard that was started again has missed lessons, so each question brings the last one.
        """
        view, here = self._learned(lesson), self.memory.patterns.device
        mask = None if observed is None else observed.to(here)
        with torch.no_grad():
            chosen, logits, total = view.scored(queries.to(here), mask, min(count, len(self.memory)))
        best = logits.sort(dim=1, descending=True, stable=True).indices[:, :k]
        return (chosen.gather(1, best) + self.first).cpu(), logits.gather(1, best).cpu(), total.cpu()

    def _learned(self, lesson: Lesson) -> View:
        if self.view is None or self.lesson != lesson.number:
            ray = _ray()
            similarity, rough = ray.get(lesson.places)
            self.memory.similarity = copy.deepcopy(similarity).to(self.memory.patterns)
            self.view, self.lesson = View(self.memory, made(self.memory, rough)), lesson.number
        return self.view

    def rows(self, places: Tensor) -> Tensor:
        """Some of the patterns, by their places here."""
        return self.memory.patterns[places.to(self.memory.patterns.device)].cpu()


class Shards:
    """A memory of any size, in shards on a Ray cluster.

    Every answer is that of one memory of all patterns: each shard gives its best and the sum over all it has, and both
    are merged exactly. A shard whose process dies is started again, and the answer is the same. One that stays dead is
    an error within ``timeout``, never an answer from part of the memory unless that is asked for.

    Args:
        memory: What to recall from. It is cut into shards and can be let go.
        shards: How many.
        address: Of the cluster; None takes the one that is there, or starts one on this machine.
        gpus: How many GPUs each shard takes, or which part of one; 0 computes on CPUs.
        restarts: How often a shard is started again.
        timeout: Seconds to wait for an answer.
    """

    def __init__(
        self,
        memory: Host,
        shards: int = 2,
        *,
        address: str | None = None,
        gpus: float = 0.0,
        restarts: int = 3,
        timeout: float = 60.0,
    ) -> None:
        ray = _ray()
        self.timeout = positive(timeout, "timeout")
        if whole(shards, "shards", 1) > len(memory):
            raise ValueError(f"shards must lie in 1 to {len(memory)}, the number of stored patterns; got {shards}")
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        # One pattern of it stays here, to check queries by.
        kind: Any = type(memory)
        self.memory = kind(memory.patterns[:1].cpu(), similarity=copy.deepcopy(memory.similarity).cpu())
        self.prior = None if memory.prior is None else (memory.prior / memory.prior.sum()).cpu()
        self.edges = [len(memory) * number // shards for number in range(shards + 1)]
        self.report = memory.report
        actor = ray.remote(Shard).options(max_restarts=restarts, max_task_retries=-1, num_cpus=1, num_gpus=gpus)
        # Kept: a shard that is started again is made of them once more.
        self._parts, self.actors = [], []
        for first, last in itertools.pairwise(self.edges):
            prior = None if memory.prior is None else memory.prior[first:last].cpu()
            if prior is not None and not float(prior.sum()):
                # None of them is ever asked for, which the weight of the shard says.
                prior = None
            self._parts.append((ray.put(memory.patterns[first:last].cpu()), None if prior is None else ray.put(prior)))
            self.actors.append(actor.remote(type(memory), *self._parts[-1], first, "cuda" if gpus else "cpu"))
        self._lesson = Lesson(0, [])
        self._teach(self.memory.similarity, seen(single(memory.patterns).float()).cpu())

    def _teach(self, similarity: Any, patterns: Tensor) -> None:
        """Let all shards go by what was learned; codes are made once, of patterns like these."""
        ray = _ray()
        lesson = Lesson(self._lesson.number + 1, [ray.put(similarity), ray.put(rough_of(similarity, patterns))])
        # Encoding takes its time.
        asked = self.memory.patterns.new_zeros(1, similarity.query_dim or self.memory.patterns.shape[1])
        self._all(lambda shard: shard.answer.remote(lesson, asked, None, 1, 1), 10 * self.timeout)
        # Only when all know it: till then, questions bring the one before.
        self._lesson, self.memory.similarity = lesson, similarity

    def __len__(self) -> int:
        return self.edges[-1]

    @torch.no_grad()
    def recall(
        self,
        queries: Any,
        k: int = 1,
        *,
        candidates: int = CANDIDATES,
        observed: Observed = None,
        partial: bool = False,
    ) -> Recall | PartialRecall:
        """The k stored patterns that best explain each query; see :meth:`ahop.index.Index.recall`.

        Args:
            queries, k, candidates, observed: As there; candidates are those of each shard.
            partial: Whether to answer without the shards that do not, and say what share was asked.
        """
        if whole(k, "k", 1) > len(self):
            raise ValueError(f"k must lie in 1 to {len(self)}, the number of stored patterns; got {k}")
        count = max(whole(candidates, "candidates", 1), k)
        queries, mask = as_queries(queries, self.memory.patterns, observed, self.memory.query_dim)
        flat = single(queries.reshape(-1, queries.shape[-1]))
        flat_mask = None if mask is None else mask.reshape(flat.shape)
        shape, width = queries.shape[:-1], self.memory.patterns.shape[1]
        answers, asked = [], 1.0
        for part in split(len(flat), 8 * count * width * flat.element_size()):
            found = self._answers(flat[part], None if flat_mask is None else flat_mask[part], count, k, partial)
            answers.append(self._merged(found, k))
            asked = min(asked, sum(self.edges[number + 1] - self.edges[number] for number in found) / len(self))
        if not answers:
            answers = [Recall(torch.empty(0, k, dtype=torch.long), flat.new_empty(0, k))]
        together = Recall(*(torch.cat(some) for some in zip(*answers, strict=True)))
        log_prior = None if self.prior is None else self.prior.log()
        sure = doubted(together, self.memory.similarity.doubt, log_prior, len(self))
        recall = Recall(*(some.reshape(*shape, some.shape[1]) for some in sure))
        return PartialRecall(*recall, asked) if partial else recall

    def _answers(
        self, queries: Tensor, observed: Tensor | None, count: int, k: int, partial: bool
    ) -> dict[int, tuple[Tensor, Tensor, Tensor]]:
        lesson = self._lesson
        return self._all(lambda shard: shard.answer.remote(lesson, queries, observed, count, k), self.timeout, partial)

    def _merged(self, found: dict[int, tuple[Tensor, Tensor, Tensor]], k: int) -> Recall:
        """One answer from those of shards."""
        indices, logits, totals = [], [], []
        for number, (chosen, own, total) in found.items():
            # Each shard knows the shares of its own patterns alone.
            share = self._weight(number).log() if self.prior is not None else 0.0
            indices.append(chosen)
            logits.append(own + share)
            totals.append(total + share)
        together, total = torch.cat(logits, 1), torch.stack(totals).logsumexp(0)
        best = together.sort(dim=1, descending=True, stable=True).indices[:, :k]
        return Recall(torch.cat(indices, 1).gather(1, best), (together.gather(1, best) - total[:, None]).exp())

    def _weight(self, number: int) -> Tensor:
        assert self.prior is not None
        return self.prior[self.edges[number] : self.edges[number + 1]].sum()

    @torch.no_grad()
    def fit(self, queries: Any, origins: Any = None, **options: Any) -> Shards:
        """Learn what happens to queries, from a sample of the patterns; returns the shards themselves.

        The sample has patterns by chance from all shards, those that known origins name, and, where origins are not
        known, those that the queries most likely come from by what is known so far.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``; -1 for one that nobody knows, None when nobody knows any.
            options: As in :meth:`ahop.BayesianHopfield.fit`.
        """
        if options.get("learn_prior"):
            raise ValueError("learn_prior must be False: a sample does not tell how often each pattern is asked for")
        asked, _ = as_queries(queries, self.memory.patterns, None, self.memory.query_dim)
        drawn = torch.randperm(len(self), generator=torch.Generator().manual_seed(0))[:_DRAWN]
        known = torch.full((len(asked),), -1)
        if origins is not None:
            known = as_origins(origins, len(asked), len(self), unknown=True)
        likely = known[known >= 0]
        if bool((known < 0).any()):
            found = self.recall(asked[known < 0], min(_LIKELY, len(self))).indices
            likely = torch.cat([likely, found.flatten()])
        places = torch.cat([drawn, likely]).unique()
        memory = type(self.memory)(self._rows(places), similarity=copy.deepcopy(self.memory.similarity))
        new = torch.where(known >= 0, torch.searchsorted(places, known.clamp_min(0)), -1)
        memory.fit(asked, None if origins is None else new, **options)
        self._teach(memory.similarity, single(memory.patterns).float())
        self.report = memory.report
        return self

    def _rows(self, places: Tensor) -> Tensor:
        """Patterns from all shards, by their places among all, in order."""
        inner = torch.tensor(self.edges[1:-1])
        owner = torch.bucketize(places, inner, right=True)
        wanted = [places[owner == number] - first for number, first in enumerate(self.edges[:-1])]
        found = self._all(lambda shard: shard.rows.remote(wanted[self.actors.index(shard)]), self.timeout)
        return torch.cat([found[number] for number in range(len(self.actors))])

    def _all(self, ask: Callable[[Any], Any], timeout: float, partial: bool = False) -> dict[int, Any]:
        """What every shard says, by its number; an error names the first that says nothing."""
        ray = _ray()
        asked, end = [ask(shard) for shard in self.actors], time.monotonic() + timeout
        found, trouble = {}, ""
        for number, answer in enumerate(asked):
            try:
                found[number] = ray.get(answer, timeout=max(0.0, end - time.monotonic()))
            except ray.exceptions.GetTimeoutError:
                trouble = trouble or f"shard {number} of {len(self.actors)} did not answer within {timeout:g} s"
            except ray.exceptions.RayActorError as error:
                first = str(error).strip().splitlines()[0]
                trouble = trouble or f"shard {number} of {len(self.actors)} is dead and was not started again: {first}"
            except ray.exceptions.RayTaskError as error:
                raise ShardError(f"shard {number} of {len(self.actors)} failed: {error.cause}") from error
        if trouble and not (partial and found):
            raise ShardError(trouble)
        return found

    def close(self) -> None:
        """Let the shards go; the cluster stays."""
        ray = _ray()
        for shard in self.actors:
            ray.kill(shard)
        self.actors, self._parts = [], []
