"""Past one machine: shards of an index, each held by an actor of a Ray cluster; answers are merged exactly."""

from __future__ import annotations

import copy
import itertools
import threading
import time
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import UNKNOWN, Observed, as_origins, as_queries, as_tensor, integer, positive
from ahop._component import single
from ahop._queries import Queries
from ahop._recall import Recall, with_doubt
from ahop.index.host import Host
from ahop.index.rough import Rough, sampled
from ahop.index.shard import Change, Shard, State, Version, cluster
from ahop.index.view import CANDIDATES, rough_of

# What a fit learns from: so many patterns by chance, and so many that each query may have come from.
_SAMPLED_PATTERNS, _CANDIDATES_EACH = 2048, 16
# What codes are made for, of each shard, when patterns come that are unlike those before.
_CODED_PATTERNS = 4096
# Changes after which a shard starts from what it has, and not from what it had.
_MOST_CHANGES = 256


class ShardError(RuntimeError):
    """A shard did not answer."""


class PartialRecall(NamedTuple):
    """As :class:`~ahop.Recall`, of those shards that answered; ``asked`` is the share of patterns they hold."""

    indices: Tensor
    probabilities: Tensor
    asked: float


class Held(NamedTuple):
    """All that a question goes by, as it is at one moment.

    Attributes:
        actors: One for each shard.
        edges: Which of all patterns is the first of each shard, and how many there are.
        changes: What each shard's patterns come from.
        version: What was learned last.
        similarity: The same, for what is done here.
        prior: How often each pattern is asked for, ``(N,)``, or None.
    """

    actors: tuple[Any, ...]
    edges: tuple[int, ...]
    changes: tuple[tuple[Change, ...], ...]
    version: Version
    similarity: Any
    prior: Tensor | None

    def state(self, number: int) -> State:
        """What a question to one shard brings."""
        return State(self.changes[number], self.version)

    def asked(self, what: str, *arguments: Any) -> dict[int, Any]:
        """A question that all shards have been asked, by their numbers."""
        return {
            number: getattr(actor, what).remote(self.state(number), *arguments)
            for number, actor in enumerate(self.actors)
        }

    def counts(self, number: int) -> Tensor | None:
        """The prior of a shard's own patterns; all alike where none is ever asked for, which its weight says."""
        if self.prior is None:
            return None
        own = self.prior[self.edges[number] : self.edges[number + 1]]
        return own if float(own.sum()) else torch.ones_like(own)

    def log_weight(self, number: int) -> Tensor | float:
        """The log share of all queries that ask for a shard's patterns; each shard knows shares of its own alone."""
        if self.prior is None:
            return 0.0
        own = self.prior[self.edges[number] : self.edges[number + 1]]
        return (own.double().sum() / self.prior.double().sum()).log().to(own)


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
        timeout: Seconds to wait for an answer; for what is learned, added or removed, ten times as long.
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
        ray = cluster()
        self.timeout = positive(timeout, "timeout")
        if integer(shards, "shards", 1) > len(memory):
            raise ValueError(f"shards must be between 1 and {len(memory)}, the number of stored patterns; got {shards}")
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        # One pattern of it stays here, to check by what comes in.
        kind: Any = type(memory)
        self.memory = kind(memory.patterns[:1].cpu(), similarity=copy.deepcopy(memory.similarity).cpu())
        self.report = memory.report
        self._numbers = itertools.count()
        # Held while questions are handed out, and while anything changes: each actor takes them in that order.
        self._turn = threading.RLock()
        remote = ray.remote(Shard).options(max_restarts=restarts, max_task_retries=-1, num_cpus=1, num_gpus=gpus)
        actors = tuple(remote.remote(kind, "cuda" if gpus else "cpu") for _ in range(shards))
        edges = tuple(len(memory) * number // shards for number in range(shards + 1))
        prior = None if memory.prior is None else memory.prior.cpu()
        self._held = Held(actors, edges, (), Version(-1, []), self.memory.similarity, prior)
        starts = (
            (self._change("start", memory.patterns[first:last].cpu(), self._held.counts(number)),)
            for number, (first, last) in enumerate(itertools.pairwise(edges))
        )
        self._held = self._held._replace(changes=tuple(starts))
        self._publish(self._held, self.memory.similarity, sampled(single(memory.patterns).float()).cpu())

    def __len__(self) -> int:
        return self._held.edges[-1]

    @property
    def actors(self) -> tuple[Any, ...]:
        """Those of Ray that hold the shards."""
        return self._held.actors

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
        # All is handed out at one moment, and so all answers are of one.
        with self._turn:
            held, questions = self._open(), []
            if integer(k, "k", 1) > len(self):
                raise ValueError(f"k must be between 1 and {len(self)}, the number of stored patterns; got {k}")
            count = max(integer(candidates, "candidates", 1), k)
            given = as_queries(queries, self.memory.patterns, observed, self.memory.query_dim)
            flat = given.flat().single()
            shape, width = given.rows.shape[:-1], self.memory.patterns.shape[1]
            for part in split(len(flat), 8 * count * width * flat.rows.element_size()):
                questions.append(held.asked("answer", flat[part], count, k))
        answers, asked = [], 1.0
        for question in questions:
            found = _gathered(question, self.timeout, partial)
            answers.append(_merged(held, found, k))
            asked = min(asked, sum(held.edges[number + 1] - held.edges[number] for number in found) / held.edges[-1])
        if not answers:
            answers = [Recall(torch.empty(0, k, dtype=torch.long), flat.rows.new_empty(0, k))]
        together = Recall(*(torch.cat(some) for some in zip(*answers, strict=True)))
        log_prior = None if held.prior is None else (held.prior / held.prior.sum()).log()
        sure = with_doubt(together, held.similarity.doubt, log_prior, held.edges[-1])
        recall = Recall(*(some.reshape(*shape, some.shape[1]) for some in sure))
        return PartialRecall(*recall, asked) if partial else recall

    @torch.no_grad()
    def fit(self, queries: Any, origins: Any = None, **options: Any) -> Shards:
        """Learn what happens to queries, from a sample of the patterns; returns the shards themselves.

        The sample has patterns by chance from all shards, those that known origins name, and, where origins are not
        known, those that the queries most likely come from by what is known so far.

        Args:
            queries: ``(n, d)``.
            origins: ``(n,)``; -1 where unknown, None if none is known. ``ahop.STRANGER`` is
                an error: a sample does not tell how familiar known strangers are.
            options: As in :meth:`ahop.BayesianHopfield.fit`.
        """
        if options.get("learn_prior"):
            raise ValueError("learn_prior must be False: a sample does not tell how often each pattern is asked for")
        # The sample is of one moment; what comes and goes while it is learned from does not matter to it.
        with self._turn:
            asked = as_queries(queries, self.memory.patterns, None, self.memory.query_dim).rows
            drawn = torch.randperm(len(self), generator=torch.Generator().manual_seed(0))[:_SAMPLED_PATTERNS]
            known = torch.full((len(asked),), -1)
            if origins is not None:
                known = as_origins(origins, len(asked), len(self), least=UNKNOWN)
            likely = known[known >= 0]
            if bool((known < 0).any()):
                found = self.recall(asked[known < 0], min(_CANDIDATES_EACH, len(self))).indices
                likely = torch.cat([likely, found.flatten()])
            places = torch.cat([drawn, likely]).unique()
            memory = type(self.memory)(self._rows(places), similarity=copy.deepcopy(self.memory.similarity))
        new = torch.where(known >= 0, torch.searchsorted(places, known.clamp_min(0)), -1)
        memory.fit(asked, None if origins is None else new, **options)
        with self._turn:
            self._publish(self._open(), memory.similarity, single(memory.patterns).float())
            self.report = memory.report
        return self

    def _open(self) -> Held:
        """All that a question goes by now."""
        if not self._held.actors:
            raise ShardError("these shards are closed: make new ones from the memory")
        return self._held

    def _rows(self, places: Tensor) -> Tensor:
        """Patterns from all shards, by their places among all, in order."""
        with self._turn:
            held = self._open()
            owner = torch.bucketize(places, torch.tensor(held.edges[1:-1], dtype=torch.long), right=True)
            wanted = [places[owner == number] - first for number, first in enumerate(held.edges[:-1])]
            asked = {
                number: actor.rows.remote(held.state(number), wanted[number])
                for number, actor in enumerate(held.actors)
            }
        return torch.cat([some for _, some in sorted(_gathered(asked, self.timeout).items())])

    # --- growing, shrinking, learning --------------------------------------------------------------------

    def add(self, patterns: Any, *, prior: Any = None) -> Shards:
        """Store further patterns, with their prior counts where there is a prior; the last shard takes them.

        Questions that are asked meanwhile wait; after an error everything is as it was.
        """
        with self._turn:
            held = self._open()
            # Checked as any memory checks them.
            one = None if held.prior is None else torch.ones(1)
            checked = type(self.memory)(self.memory.patterns, prior=one).add(patterns, prior=prior)
            new, last = checked.patterns[1:], len(held.actors) - 1
            edges = (*held.edges[:-1], held.edges[-1] + len(new))
            prior = None if held.prior is None else torch.cat([held.prior, checked.prior[1:].to(held.prior)])
            larger = held._replace(edges=edges, prior=prior)
            change = self._change("add", new.cpu(), larger.counts(last))
            larger = larger._replace(changes=(*held.changes[:-1], (*held.changes[-1], change)))
            if all(codes.covers(single(new).float()) for _, codes in self._rough.parts):
                self._take(larger, self._rough)
            else:
                some = _gathered(held.asked("some", _CODED_PATTERNS), self.timeout)
                self._publish(larger, held.similarity, single(torch.cat([*some.values(), new.cpu()])).float())
        return self

    def remove(self, indices: Any) -> Shards:
        """Forget the patterns at ``indices``, counted through all shards; those behind them move up.

        A shard that has none left is let go. Questions that are asked meanwhile wait; after an error everything is as
        it was.
        """
        with self._turn:
            held = self._open()
            gone = as_tensor(indices, "indices", whole=True).reshape(-1).long()
            gone = as_origins(gone, len(gone), len(self), "indices").unique()
            if len(gone) == len(self):
                raise ValueError(f"indices must leave at least one pattern, got all {len(self)} of them")
            keep = torch.ones(len(self), dtype=torch.bool)
            keep[gone] = False
            owned = [gone[(gone >= first) & (gone < last)] - first for first, last in itertools.pairwise(held.edges)]
            left = [last - first for first, last in itertools.pairwise(held.edges)]
            left = [count - len(own) for count, own in zip(left, owned, strict=True)]
            stay = [number for number, count in enumerate(left) if count]
            smaller = held._replace(
                actors=tuple(held.actors[number] for number in stay),
                edges=(0, *itertools.accumulate(left[number] for number in stay)),
                prior=None if held.prior is None else held.prior[keep],
            )
            changes = [
                (*held.changes[number], self._change("remove", owned[number], smaller.counts(place)))
                if len(owned[number])
                else held.changes[number]
                for place, number in enumerate(stay)
            ]
            self._take(smaller._replace(changes=tuple(changes)), self._rough)
            for number, count in enumerate(left):
                if not count:
                    # After what it was asked before.
                    held.actors[number].__ray_terminate__.remote()
        return self

    def _change(self, kind: str, given: Tensor, prior: Tensor | None) -> Change:
        ray = cluster()
        return Change(next(self._numbers), kind, [ray.put(given), None if prior is None else ray.put(prior)])

    def _publish(self, held: Held, similarity: Any, patterns: Tensor) -> None:
        """Let all shards go by what was learned; codes are made once, of patterns like these."""
        ray, rough = cluster(), rough_of(similarity, patterns)
        version = Version(held.version.number + 1, [ray.put(similarity), ray.put(rough)])
        self._take(held._replace(version=version, similarity=similarity), rough)
        self.memory.similarity = similarity

    def _take(self, held: Held, rough: Rough) -> None:
        """Let all shards come to what is new; only when they have, questions go by it."""
        if any(len(changes) > _MOST_CHANGES for changes in held.changes):
            held = self._from_now(held)
        query = self.memory.patterns.new_zeros(1, held.similarity.query_dim or self.memory.patterns.shape[1])
        # Encoding all patterns takes its time.
        _gathered(held.asked("answer", Queries(query), 1, 1), 10 * self.timeout)
        self._held, self._rough = held, rough

    def _from_now(self, held: Held) -> Held:
        """The same, with shards that start from what they have: one that dies need not go through every change."""
        patterns = _gathered(held.asked("all"), 10 * self.timeout)
        starts = [(self._change("start", patterns[number], held.counts(number)),) for number in patterns]
        return held._replace(changes=tuple(starts))

    def close(self) -> None:
        """Let the shards go; the cluster stays."""
        with self._turn:
            for shard in self._held.actors:
                cluster().kill(shard)
            self._held = self._held._replace(actors=(), changes=())


def _merged(held: Held, found: dict[int, tuple[Tensor, Tensor, Tensor]], k: int) -> Recall:
    """One answer from those of shards."""
    indices, logits, totals = [], [], []
    for number, (chosen, own, total) in found.items():
        weight = held.log_weight(number)
        indices.append(chosen + held.edges[number])
        logits.append(own + weight)
        totals.append(total + weight)
    together, total = torch.cat(logits, 1), torch.stack(totals).logsumexp(0)
    best = together.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return Recall(torch.cat(indices, 1).gather(1, best), (together.gather(1, best) - total[:, None]).exp())


def _gathered(asked: dict[int, Any], timeout: float, partial: bool = False) -> dict[int, Any]:
    """What all shards say, by their numbers; an error names the first that says nothing."""
    ray, end = cluster(), time.monotonic() + timeout
    found, trouble = {}, ""
    for number, answer in asked.items():
        try:
            found[number] = ray.get(answer, timeout=max(0.0, end - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            trouble = trouble or f"shard {number} of {len(asked)} did not answer within {timeout:g} s"
        except ray.exceptions.RayActorError as error:
            first = str(error).strip().splitlines()[0]
            trouble = trouble or f"shard {number} of {len(asked)} is dead and was not started again: {first}"
        except ray.exceptions.RayTaskError as error:
            raise ShardError(f"shard {number} of {len(asked)} failed: {error.cause}") from error
    if trouble and not (partial and found):
        raise ShardError(trouble)
    return found
