r"""All queries matched together, where no stored pattern is meant more often than it has room for.

By itself, each query has a posterior :math:`p_{ij}` over patterns. Together they are shared out among patterns for
probabilities under the constraint (``transport``), and assigned for the one best answer (``assignment``).

Queries that come from no stored pattern go into a dustbin. The odds that a query is genuine are its familiarity
:math:`f_i` over the threshold :math:`t` of recall, so that one on the threshold is as likely a stranger as not:

.. math:: \log p_{i0} = -(f_i - t), \qquad w_{ij} = \log p_{ij} - \max_k \log p_{ik} + f_i - t, \qquad w_{i0} = 0

for probabilities and for what a pattern is worth in the assignment. So a query that has lost its pattern to a better
one takes another only if that is worse than its first choice by less than what speaks for its being genuine at all.
With room for all, exactly those are refused that recall refuses.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ahop._blocks import budget, split
from ahop._component import single
from ahop._queries import Queries
from ahop._recall import priors
from ahop.learning.assignment import assigned
from ahop.learning.transport import Plan, shared_out
from ahop.similarity.codes import NoCodesError
from ahop.similarity.families.stand_ins import like_all

if TYPE_CHECKING:
    from ahop.index.host import Host
    from ahop.index.view import View

# Patterns that compete for each query, where there are more, and the bytes of one with its place.
_CANDIDATES, _ENTRY_BYTES = 100, 16
# Log-odds beyond which nothing is uncertain, and the score of a pattern that is never asked for.
_MOST_LOG_ODDS, _EXCLUDED_SCORE = 1e6, 1e30
# A share that rounding alone may leave.
_ROUNDING = 1e-5
# Patterns that are named in a text.
_NAMED_PATTERNS = 3


@dataclass(frozen=True, eq=False)
class Matching:
    """Which pattern each of ``n`` queries comes from, if none is meant more often than it has room for.

    Attributes:
        indices: The pattern in the single best assignment; -1 for a stranger, or where no room was left.
        probabilities: Of that pattern, under the constraint; 0 where there is none.
        second, second_probabilities: The likeliest other pattern under the constraint; -1 and 0 where there is none.
        strangers: The probability that a query comes from no stored pattern; 0 where that was not asked, unless there
            are more queries than room and some of them have to.
        alone: What recall answers to each query by itself.
        strained: The patterns that more queries asked for by themselves than they have room for, and how many; most
            asked for first.
        room: How many queries all patterns take together.
        found: Whether the memory found anything that is better than chance. If not, probabilities are the prior.
        converged: Whether the probabilities had converged.
        verified: As in :class:`~ahop.Recall`.

    Example:
        >>> memory = ahop.BayesianHopfield([[0.0, 0.0], [1.0, 1.0], [4.0, 4.0]])
        >>> print(memory.match([[0.8, 0.8], [1.0, 1.1]]))
        matched         2 of 2 queries, to patterns that have room for 3
        changed         1 answer of recall, which takes each query by itself
        strained        1 pattern asked for more often than there is room: 1 (2 queries)
    """

    indices: Tensor
    probabilities: Tensor
    second: Tensor
    second_probabilities: Tensor
    strangers: Tensor
    alone: Tensor
    strained: dict[int, int]
    room: int
    found: bool = True
    converged: bool = True
    verified: bool = False

    @property
    def changed(self) -> int:
        """How many answers are others than those of recall."""
        return int((self.indices != self.alone).sum())

    def __str__(self) -> str:
        count, matched = len(self.indices), int((self.indices >= 0).sum())
        lines = {"matched": f"{matched:,} of {_some(count, 'query')}, to patterns that have room for {self.room:,}"}
        if matched < count:
            full = matched == self.room
            why = "there is no more room" if full else "strangers, or their pattern went to a likelier query"
            lines["left out"] = f"{count - matched:,}: {why}"
        lines["changed"] = f"{_some(self.changed, 'answer')} of recall, which takes each query by itself"
        if self.strained:
            named = [f"{pattern} ({_some(times, 'query')})" for pattern, times in self.strained.items()]
            shown = ", ".join(named[:_NAMED_PATTERNS]) + (", ..." if len(named) > _NAMED_PATTERNS else "")
            lines["strained"] = f"{_some(len(named), 'pattern')} asked for more often than there is room: {shown}"
        if not self.found:
            lines["how sure"] = "nothing was found that is better than chance: probabilities are the prior"
        elif not self.converged:
            lines["how sure"] = "probabilities had not converged: read them as rough"
        return "\n".join(f"{name:13}   {text}" for name, text in lines.items())


def _some(count: int, name: str) -> str:
    many = "queries" if name == "query" else f"{name}s"
    return f"{count:,} {name if count == 1 else many}"


def as_room(value: Any, patterns: int) -> Tensor:
    """How many queries each pattern takes ``(N,)``, from one number for all or one for each."""
    wanted = f"room must be an integer of at least 1, or {patterns} of at least 0, one for each pattern"
    try:
        room = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{wanted}; got {type(value).__name__}") from error
    if room.is_floating_point() or room.is_complex() or room.dtype == torch.bool:
        raise ValueError(f"{wanted}; got {room.dtype}")
    if room.shape not in ((), (patterns,)):
        raise ValueError(f"{wanted}; got shape {tuple(room.shape)}")
    if int(room.amin()) < (room.ndim == 0):
        raise ValueError(f"{wanted}; got {int(room.amin())}")
    return room.long().expand(patterns)


class _Candidates(NamedTuple):
    """The likeliest patterns of each query ``(n, k)``, best first, and the logs of their probabilities; the logs of
    what all others sum up to ``(n,)``, and of the evidence ``(n,)`` that probabilities are shares of."""

    columns: Tensor
    log: Tensor
    others: Tensor
    evidence: Tensor

    def taking(self, memory: Host, queries: Queries, indices: Tensor) -> _Candidates:
        """With these patterns ``(n,)`` in the place of the last ones, where they are no candidates yet."""
        new = ((indices >= 0) & (self.columns != indices[:, None]).all(1)).nonzero().squeeze(1)
        columns, log, others = self.columns.clone(), self.log.clone(), self.others.clone()
        others[new] = torch.logaddexp(others[new], log[new, -1])
        columns[new, -1] = indices[new]
        for part in split(len(new), _ENTRY_BYTES * len(memory)):
            here = new[part]
            log[here, -1] = self.of_all(memory, queries, here).gather(1, indices[here, None]).squeeze(1)
        return self._replace(columns=columns, log=log, others=others)

    def of_all(self, memory: Host, queries: Queries, rows: Tensor) -> Tensor:
        """The logs of the probabilities of all patterns, for some of the queries, ``(q, N)``."""
        return memory._scores(queries[rows]).double() - self.evidence[rows, None]


def matched(memory: Host, view: View | None, queries: Queries, room: Tensor, level: float) -> Matching:
    """What :meth:`ahop.BayesianHopfield.match` answers, from a memory and its codes at one moment.

    Args:
        memory, view: The memory, and its codes where it has any.
        queries: ``(n, d)``.
        room: How many queries each pattern takes, ``(N,)``.
        level: The familiarity below which a query is a stranger; minus infinity where none is.
    """
    if memory.prior is not None:
        # What is never asked for takes nobody.
        room = room * (memory.prior > 0)
    candidates, open_set, device = _candidates(memory, view, queries), level > -math.inf, room.device
    surplus = 0 if open_set else max(0, len(queries) - int(room.sum()))
    odds = torch.full_like(candidates.evidence, _MOST_LOG_ODDS)
    if open_set or surplus:
        familiar = _familiarity(memory, queries, candidates.evidence)
        odds = (familiar - level if open_set else familiar).clamp(-_MOST_LOG_ODDS, _MOST_LOG_ODDS)
    alone = candidates.columns[:, 0].masked_fill(open_set & (odds < 0), -1)
    nothing = candidates.log[:, 0] - odds

    def every(rows: Tensor) -> Tensor:
        here = rows.to(device)
        return (candidates.of_all(memory, queries, here) - nothing[here, None]).cpu()

    worth, floor = candidates.log - nothing[:, None], 0.0 if open_set else -math.inf
    indices = assigned(worth.cpu(), candidates.columns.cpu(), room.cpu(), every, floor).to(device)
    candidates = candidates.taking(memory, queries, indices)
    # Any query may be a stranger; where none is, as many are left out as find no room.
    plan = _shared(candidates, -odds, room, surplus or len(queries))
    return _as_matching(memory, candidates.columns, plan, indices, alone, room)


def _shared(candidates: _Candidates, stranger: Tensor, room: Tensor, dustbin: int) -> Plan:
    """The plan over candidates, the dustbin, and all other patterns together. These take no more than queries by
    themselves ask of them: who has to give way goes to a candidate, as in the assignment."""
    log = torch.where(room[candidates.columns] > 0, candidates.log, candidates.log - _MOST_LOG_ODDS)
    outside = torch.arange(len(room), len(room) + 2, device=room.device).expand(len(log), 2)
    scores = torch.cat([log, stranger[:, None], candidates.others[:, None]], 1)
    others = candidates.others.exp().sum()
    rooms = torch.cat([room.to(others), torch.stack([torch.full_like(others, dustbin), others])])
    return shared_out(scores, torch.cat([candidates.columns, outside], 1), rooms)


def _as_matching(memory: Host, columns: Tensor, plan: Plan, indices: Tensor, alone: Tensor, room: Tensor) -> Matching:
    doubt = memory.similarity.doubt.double()
    prior = priors(memory._log_prior(), len(room), doubt)
    log, strangers = plan.log[:, : columns.shape[1]], plan.log[:, columns.shape[1]].exp()
    chosen = columns == indices[:, None]
    runner_up = log.masked_fill(chosen, -math.inf).max(1)
    second = columns.gather(1, runner_up.indices[:, None]).squeeze(1)
    second = torch.where(runner_up.values > -math.inf, second, -1)

    def sure(found: Tensor, index: Tensor) -> Tensor:
        # Of queries that tell nothing, the prior speaks.
        blended = torch.lerp(found, (1 - strangers) * prior[index.clamp_min(0)], doubt)
        return blended.masked_fill(index < 0, 0.0).to(single(memory.patterns[:0]).dtype)

    asked = torch.bincount(alone[alone >= 0], minlength=len(room))
    strained = (asked > room).nonzero().squeeze(1)
    most_first = strained[asked[strained].argsort(descending=True, stable=True)]
    return Matching(
        indices,
        sure((log.exp() * chosen).sum(1), indices),
        second,
        sure(runner_up.values.exp(), second),
        strangers.to(single(memory.patterns[:0]).dtype),
        alone,
        dict(zip(most_first.tolist(), asked[most_first].tolist(), strict=True)),
        int(room.sum()),
        found=float(doubt) < 1,
        converged=plan.converged,
        verified=memory.verified,
    )


# --- what each query says by itself -----------------------------------------------------------------------------


def _candidates(memory: Host, view: View | None, queries: Queries) -> _Candidates:
    """By the index where there is one for such queries, and otherwise from the scores of all patterns."""
    k = min(len(memory), _CANDIDATES, max(2, budget() // (_ENTRY_BYTES * max(1, len(queries)))))
    if view is not None:
        with suppress(NoCodesError):
            width = 8 * k * memory.patterns.shape[1] * queries.rows.element_size()
            return _joined([_listed(view, queries[part].single(), k) for part in _parts(len(queries), width)])
    return _joined([_scanned(memory, queries[part], k) for part in _parts(len(queries), _ENTRY_BYTES * len(memory))])


def _parts(count: int, bytes_each: int) -> list[slice]:
    return split(count, bytes_each) or [slice(0, 0)]


def _joined(parts: list[_Candidates]) -> _Candidates:
    return _Candidates(*(torch.cat(some) for some in zip(*parts, strict=True)))


def _listed(view: View, queries: Queries, k: int) -> _Candidates:
    columns, logits, evidence = view.scored(queries, k)
    best = logits.double().sort(dim=1, descending=True, stable=True)
    log = best.values - evidence.double()[:, None]
    # What the candidates leave of one; below what float32 can tell, nothing.
    left = 1 - log.exp().sum(1)
    others = torch.where(left > _ROUNDING, left.log(), -math.inf)
    return _Candidates(columns.gather(1, best.indices).clamp_min(0), log, others, evidence.double())


def _scanned(memory: Host, queries: Queries, k: int) -> _Candidates:
    scores = memory._scores(queries).double()
    evidence, best = scores.logsumexp(1), scores.topk(k, 1)
    others = scores.scatter_(1, best.indices, -math.inf).logsumexp(1) - evidence
    log = best.values - evidence[:, None]
    return _Candidates(best.indices, log.masked_fill(log < -_EXCLUDED_SCORE, -math.inf), others, evidence)


def _familiarity(memory: Host, queries: Queries, evidence: Tensor) -> Tensor:
    """As :meth:`ahop.BayesianHopfield.familiarity`, of evidence that is at hand."""
    known = queries.single()
    parts = _parts(len(known), _ENTRY_BYTES * len(memory))
    patterns = like_all(memory._described())
    background = [memory.similarity.stranger(patterns, known.rows[part], known[part].observed) for part in parts]
    return evidence - torch.cat(background).double() - (math.log(len(memory)) if memory.prior is None else 0.0)
