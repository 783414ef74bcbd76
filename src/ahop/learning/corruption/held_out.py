"""A jury: how well a model retrieves origins that it was not fitted to."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# Few origins are left out a few at a time, many by the eighth: a model of few is worth what each of them tells.
_FEW, _FEW_FOLDS = 64, 12
_FOLDS = 8
# Enough queries and rivals to tell two models apart; more would only take longer.
_JUDGED = 2048
# Standard errors by which one model has to be right more often than another, or surer of what is right.
_RIGHT, _SURE = 0.7, 2.0
# Logarithms of temperatures that chance alone may bring about.
_ABOUT = 0.4
_RIVALS = 1024
# Values that a model is learned from to be judged, and rows it has at least.
_LESSONS, _LEAST = 2**18, 512


@dataclass
class Judgement:
    """Held-out log posteriors ``(n,)`` of the origins ``(n,)``, at their best inverse temperature; and whether each was
    the first choice ``(n,)``."""

    log_posterior: Tensor
    origins: Tensor
    log_beta: float
    right: Tensor

    @property
    def accuracy(self) -> float:
        return float(self.right.double().mean())

    def beats(self, other: Judgement) -> bool:
        """By more than chance: in how often it is right or, where the two are level in that, in the log posterior."""
        right = self._gain(self.right.double(), other.right.double())
        return right > _RIGHT or (right >= 0 and self._gain(self.log_posterior, other.log_posterior) > _SURE)

    def surer_than(self, other: Judgement) -> bool:
        """By more than chance, in the log posterior: for one kind of model in two forms."""
        return self._gain(self.log_posterior, other.log_posterior) > 1

    def _gain(self, ours: Tensor, theirs: Tensor) -> float:
        """The mean gain in standard errors; queries of one origin are no independent witnesses."""
        gain = ours - theirs
        _, group = self.origins.unique(return_inverse=True)
        sums = torch.zeros_like(gain[: int(group.max()) + 1]).index_add_(0, group, gain - gain.mean())
        return float(gain.mean()) / max(1e-3, float(sums.square().sum().sqrt()) / len(gain))


class Jury:
    """Queries with known origins, cut into folds that share no origin, on which models are judged by retrieval."""

    def __init__(self, patterns: Tensor, queries: Tensor, origins: Tensor, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.patterns, self.queries, self.origins = patterns, queries, origins
        known, group = origins.unique(return_inverse=True)
        if len(known) < 2:
            raise ValueError(
                f"origins must be of at least two patterns to look for hidden causes, got {known.tolist()}"
            )
        folds = min(len(known), _FEW_FOLDS) if len(known) <= _FEW else _FOLDS
        fold = self._permutation(len(known)) % folds
        self.rivals = self._permutation(len(patterns))[:_RIVALS]
        judged = torch.zeros_like(origins, dtype=torch.bool)
        judged[self._permutation(len(origins))[:_JUDGED]] = True
        # Rows to learn from, and rows to judge on.
        self.parts = [
            ((fold[group] != index).nonzero().squeeze(1), ((fold[group] == index) & judged).nonzero().squeeze(1))
            for index in range(folds)
        ]

    def _permutation(self, count: int) -> Tensor:
        return torch.randperm(count, generator=self.generator).to(self.patterns.device)

    def judge(self, scores: list[Tensor]) -> Judgement:
        """``scores`` of each part's queries, as :meth:`score` gives them."""
        table = torch.cat(scores)
        logs, log_beta = tempered(table)
        right = table[:, 0] > table[:, 1:].amax(1)
        return Judgement(logs, torch.cat([self.origins[rows] for _, rows in self.parts]), log_beta, right)

    def score(self, similarity: Any, rows: Tensor) -> Tensor:
        """Scores of the true origin, first, and of the rivals; a rival equal to the origin counts for nothing."""
        like = next(similarity.parameters())
        patterns, queries = self.patterns.to(like), self.queries[rows].to(like)
        return beside_rivals(similarity, patterns, queries, self.origins[rows], self.rivals)

    def seen(self, view: Callable[[Tensor], Tensor]) -> Jury:
        """The same jury on patterns and queries that are looked at otherwise."""
        other = copy.copy(self)
        other.patterns, other.queries = view(self.patterns), view(self.queries)
        return other

    def each(self, fit: Callable[[Tensor], Any]) -> Judgement:
        """The judgement on a kind of model: ``fit`` gives one for the rows to learn from, anew for each fold."""
        return self.judge([self.score(fit(self.thinned(learn)), rows) for learn, rows in self.parts])

    def thinned(self, rows: Tensor) -> Tensor:
        """As many rows as tell how well a kind of model does."""
        most = max(_LEAST, _LESSONS // self.queries.shape[1])
        return rows if len(rows) <= most else rows[self._permutation(len(rows))[:most]]


def beside_rivals(similarity: Any, patterns: Tensor, queries: Tensor, origins: Tensor, rivals: Tensor) -> Tensor:
    """Scores of each query's own pattern, first, and of some rivals ``(R,)``, to ``(n, 1 + R)``."""
    own, against = patterns[origins], similarity(patterns[rivals], queries)
    # Each query against its own pattern alone, without a table of all pairs.
    mine = [similarity(own[i : i + 16], queries[i : i + 16]).diagonal() for i in range(0, len(queries), 16)]
    mine.append(against.new_empty(0))
    same = origins[:, None] == rivals
    return torch.cat([torch.cat(mine)[:, None], against.masked_fill(same, -torch.inf)], 1)


def tempered(scores: Tensor) -> tuple[Tensor, float]:
    """The log posterior of the first column, and the log inverse temperature under which that is largest, or nought if
    this gains no more than chance. It is concave, so that Newton's method finds it."""
    mine = scores[:, :1]
    gaps = (scores - mine).clamp_min(-1e30)
    present = torch.isfinite(scores)
    log_beta = 0.0
    for _ in range(40):
        posterior = torch.softmax((math.exp(log_beta) * gaps).masked_fill(~present, -torch.inf), 1)
        safe = gaps.masked_fill(~present, 0.0)
        mean = (posterior * safe).sum(1)
        slope = -float(mean.mean()) * math.exp(log_beta)
        bend = float(((posterior * safe.square()).sum(1) - mean.square()).mean()) * math.exp(2 * log_beta)
        step = slope / (bend + abs(slope) + 1e-12)
        log_beta = min(max(log_beta + step, -12.0), 3.0)
        if abs(step) < 1e-3:
            break

    def at(log_beta: float) -> Tensor:
        return torch.log_softmax((math.exp(log_beta) * gaps).masked_fill(~present, -torch.inf), 1)[:, 0]

    logs, plain = at(log_beta), at(0.0)
    gain = logs - plain
    # A likelihood that is about right needs none.
    if abs(log_beta) < _ABOUT and float(gain.mean()) <= 2 * float(gain.std()) / math.sqrt(len(gain)):
        return plain, 0.0
    return logs, log_beta
