"""A validation: how well a model retrieves origins that it was not fitted to."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.learning.chance import independent, more_than_chance
from ahop.learning.holdout import folds_by_origin
from ahop.similarity.density import Density
from ahop.similarity.families import em, stand_ins
from ahop.similarity.families.training import TrainingData

# Few origins are left out a few at a time, many by the eighth: a model of few is worth what each of them tells.
_FEW_ORIGINS, _FEW_FOLDS = 64, 12
_FOLDS = 8
# Enough queries and rivals to tell two models apart; more would only take longer.
_JUDGED = 2048
# What a nat of log posterior is worth beside an origin found, and below what it counts no more.
_NAT_WORTH, _LEAST_LOG_POSTERIOR = 0.5, -8.0
# Standard errors by which a temperature has to explain more than none, and doubt more than a temperature alone.
_MIN_STANDARD_ERRORS = 2.0
# Rounds in which a temperature and a doubt take turns, and rows that they are found on.
_TURNS, _CALIBRATION_ROWS = 50, 1024
# Logarithms of temperatures that chance alone may bring about.
_LOG_BETA_NOISE = 0.4
_RIVALS = 1024
# Values that a model is learned from to be judged, and rows it has at least.
_TRAINING_VALUES, _TRAINING_ROWS = 2**18, 256
# The size of a validation that screens many candidates: folds, queries, rivals, and rows to learn from.
_SCREENED_FOLDS, _SCREENED_ROWS = 4, 256
# Scores of all patterns that the last validation may look at, and queries it has at least.
_FINAL_SCORES, _FINAL_QUERIES = 2**23, 256
# A candidate is given up when it is behind by so many standard errors, in both, on so many queries.
_BEHIND_ERRORS, _BEHIND_QUERIES = 2.5, 24
# The least standard error of a gain: that all are alike is no proof.
_LEAST_ERROR = 1e-3


@dataclass
class HeldOut:
    """Held-out log posteriors ``(n,)`` of the origins, at their best inverse temperature; the group of each query
    ``(n,)``, none of which is in two folds; how often the origin was the first choice ``(n,)``, 0 or 1 unless
    others are level; and the scores ``(n, 1 + R)`` that say so, as :meth:`CrossValidation.score` gives them."""

    log_posterior: Tensor
    groups: Tensor
    log_beta: float
    right: Tensor
    scores: Tensor

    @property
    def accuracy(self) -> float:
        return float(self.right.mean())

    @property
    def witnesses(self) -> int:
        """As many independent queries as these are worth (:func:`independent`)."""
        return independent(self.right, self.groups)

    @property
    def utility(self) -> float:
        """What a choice goes by: how often it is right, and how sure of what is right."""
        return self.accuracy + _NAT_WORTH * float(self.log_posterior.clamp_min(_LEAST_LOG_POSTERIOR).mean())

    @property
    def error(self) -> float:
        """The standard error of the worth, as if of one query at least that went the other way."""
        each = self.right + _NAT_WORTH * self.log_posterior.clamp_min(_LEAST_LOG_POSTERIOR)
        return max(float(each.std(unbiased=False)), 1 / math.sqrt(len(each))) / math.sqrt(len(each))

    def surer_than(self, other: HeldOut) -> bool:
        """By more than chance, in the log posterior: for one kind of model in two forms."""
        return self._above(self.log_posterior - other.log_posterior)

    def hopeless(self, other: HeldOut) -> bool:
        """Whether it is clearly behind, on the first queries of the other that it was judged on, in both."""
        lost = other.log_posterior[: len(self.right)] - self.log_posterior
        return other.ahead_of(self.right) and self._above(lost, _BEHIND_ERRORS)

    def ahead_of(self, right: Tensor) -> bool:
        """Whether this is clearly more often right than another on the first queries ``(m,)``, if those are enough."""
        count = len(right)
        if count < min(_BEHIND_QUERIES, len(self.right)):
            return False
        return self._above(self.right[:count].double() - right, _BEHIND_ERRORS)

    def _above(self, gains: Tensor, errors: float = 1.0) -> bool:
        """Whether gains on the first queries are no chance; those of one group are no independent witnesses."""
        return more_than_chance(gains, errors, groups=self.groups[: len(gains)], least=_LEAST_ERROR)


class Completed(NamedTuple):
    """The completed log-likelihood of each query that was held out, ``(n,)``."""

    values: Tensor

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def beats(self, other: Completed, errors: float = 1.0) -> bool:
        """By so many standard errors."""
        return more_than_chance(self.values - other.values, errors)


class CrossValidation:
    """Queries with known origins, cut into folds on which models are judged by retrieval.

    Folds share no origin, for what will be asked may come from patterns that no label was of. Where every pattern has
    labels, two at least, there are none such, and what a model knows of each pattern is its own to use: then folds are
    of queries.

    Args:
        data: What there is to learn from; all origins are known.
        seed: Seed of the folds and of the rivals.
        screening: Take few folds, queries and rivals, to compare many candidates.
    """

    def __init__(self, data: TrainingData, seed: int, *, screening: bool = False) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        # A model is judged by its likelihood alone.
        self.data, origins = replace(data, log_prior=None), data.all_origins
        known = origins.unique()
        if len(known) < 2:
            raise ValueError(
                f"origins must include at least two patterns, for one to be held out; got {known.tolist()}"
            )
        every = origins.bincount(minlength=len(data.patterns)).min() >= 2
        self.groups = data.rows if bool(every) else origins
        several = _FEW_FOLDS if len(known) <= _FEW_ORIGINS else _FOLDS
        fold = folds_by_origin(self.groups, _SCREENED_FOLDS if screening else several, self.generator)
        self.rivals = self._permutation(len(data.patterns))[: _SCREENED_ROWS if screening else _RIVALS]
        self.most = _SCREENED_ROWS if screening else max(_TRAINING_ROWS, _TRAINING_VALUES // data.queries.shape[1])
        judged = torch.zeros_like(origins, dtype=torch.bool)
        judged[self._permutation(len(origins))[: _SCREENED_ROWS if screening else _JUDGED]] = True
        # Rows to learn from, the same for all candidates and as many as tell how well each does; rows to judge on.
        self.parts = [
            (
                self._thinned((fold != index).nonzero().squeeze(1)),
                ((fold == index) & judged).nonzero().squeeze(1),
            )
            for index in range(int(fold.max()) + 1)
        ]

    def _permutation(self, count: int) -> Tensor:
        return torch.randperm(count, generator=self.generator).to(self.data.patterns.device)

    def result(self, scores: list[Tensor]) -> HeldOut:
        """``scores`` of each part's queries, as :meth:`score` gives them."""
        table = torch.cat(scores)
        logs, log_beta = fit_temperature(table)
        right = _first(table)
        groups = torch.cat([self.groups[rows] for _, rows in self.parts[: len(scores)]])
        return HeldOut(logs, groups, log_beta, right, table)

    def score(self, similarity: Density, rows: Tensor) -> Tensor:
        """Scores of the true origin, first, and of the rivals; a rival equal to the origin counts for nothing."""
        like, data = next(similarity.parameters()), self.data.part(rows)
        data = replace(data, patterns=data.patterns.to(like), queries=data.queries.to(like))
        if len(self.rivals) > stand_ins.MANY:
            return beside_likeliest(similarity, data)
        return beside_rivals(similarity, data, self.rivals)

    def through(self, show: Callable[[TrainingData], TrainingData]) -> CrossValidation:
        """The same validation on patterns and queries that are looked at otherwise."""
        other = copy.copy(self)
        other.data = show(self.data)
        return other

    def evaluate(self, fit: Callable[[Tensor], Density], against: HeldOut | None = None) -> HeldOut:
        """The held-out results of a kind of model: ``fit`` gives one for the rows to learn from, anew for each fold.

        A race (Maron and Moore, 1994): it ends early, with results of the first folds alone, where that is
        hopelessly behind another.
        """
        scores: list[Tensor] = []
        for learn, rows in self.parts:
            scores.append(self.score(fit(learn), rows))
            # How sure it is takes long to find, and matters only where it is behind in what it finds.
            if against is not None and against.ahead_of(_first(torch.cat(scores))):
                found = self.result(scores)
                if found.hopeless(against):
                    return found
        return self.result(scores)

    def _thinned(self, rows: Tensor) -> Tensor:
        return rows if len(rows) <= self.most else rows[self._permutation(len(rows))[: self.most]]

    def against_all(self) -> CrossValidation:
        """The same validation with every pattern as a rival, for a last word on the model that was chosen."""
        other = copy.copy(self)
        other.rivals = torch.arange(len(self.data.patterns), device=self.data.patterns.device)
        most = max(_FINAL_QUERIES, _FINAL_SCORES // len(self.data.patterns))
        share = min(1.0, most / sum(len(rows) for _, rows in self.parts))
        other.parts = [(learn, rows[: math.ceil(share * len(rows))]) for learn, rows in self.parts]
        return other


def _first(scores: Tensor) -> Tensor:
    """How often the origin, in the first column, is the first choice: 0, 1, or its share where others are level."""
    own = scores[:, :1]
    return (own[:, 0] >= scores.amax(1)) / (scores == own).sum(1).double()


def beside_rivals(similarity: Density, data: TrainingData, rivals: Tensor) -> Tensor:
    """Scores of each query's own pattern and of some others.

    Args:
        similarity: What scores.
        data: The queries, their origins and the patterns.
        rivals: Indices of the other patterns, ``(R,)``.

    Returns:
        Scores ``(n, 1 + R)``, the own pattern first; minus infinity where a rival is that pattern.
    """
    origins = data.all_origins
    some, places = torch.cat([rivals, origins]).unique(return_inverse=True)
    table = similarity(data.patterns[some], data.queries, data.observed)
    own, against = table.gather(1, places[len(rivals) :, None]), table[:, places[: len(rivals)]]
    return torch.cat([own, against.masked_fill(origins[:, None] == rivals, -torch.inf)], 1)


def beside_likeliest(similarity: Density, data: TrainingData) -> Tensor:
    """Scores of each query's own pattern, first, and of its likeliest rivals among very many, to ``(n, 1 + R)``; one
    that stands for several counts for all of them."""
    some, places, counts = stand_ins.of(data, similarity)
    every = torch.arange(len(places), device=places.device)
    scores = beside_rivals(similarity, some, every)
    return torch.cat([scores[:, :1], (scores[:, 1:] + counts.log()).topk(_RIVALS, 1).values], 1)


def fit_temperature(scores: Tensor) -> tuple[Tensor, float]:
    """The log posterior of the first column, and the log inverse temperature under which that is largest, or nought if
    this gains no more than chance. It is concave, so that Newton's method finds it."""
    gaps, even, log_beta = _gaps(scores), torch.ones_like(scores[:, 0]), 0.0
    finite = _finite(gaps)
    for _ in range(40):
        before = log_beta
        log_beta = _stepped(finite, _posterior(gaps, log_beta), log_beta, even)
        if abs(log_beta - before) < 1e-3:
            break
    logs, plain = (torch.log_softmax(math.exp(at) * gaps, 1)[:, 0] for at in (log_beta, 0.0))
    # A likelihood that is about right needs none.
    if abs(log_beta) < _LOG_BETA_NOISE and not more_than_chance(logs - plain, _MIN_STANDARD_ERRORS):
        return plain, 0.0
    return logs, log_beta


def fit_doubt(scores: Tensor, plain: float | None = None) -> tuple[float, float]:
    r"""The log inverse temperature, and the share of queries that tell nothing of their origin, under which the first
    column is likeliest:

    .. math:: p = (1 - \varepsilon) \, \mathrm{softmax}(\beta s)_0 + \varepsilon / n

    A temperature alone would pay for queries that are beyond hope with doubt of all the others. It is found by
    expectation maximisation; no doubt is taken if it gains no more than chance.

    Args:
        scores: Of each origin, first, and of its rivals, ``(n, 1 + R)``.
        plain: What :func:`fit_temperature` has found on them, if it was asked before.
    """
    plain = fit_temperature(scores)[1] if plain is None else plain
    gaps = _gaps(scores[:: 1 + len(scores) // _CALIBRATION_ROWS])
    alone = _posterior(gaps, plain)[:, 0]
    found = _Doubtful(gaps, plain)
    em.iterate(found, _TURNS)
    gain = found.log_likely - alone.clamp_min(torch.finfo(alone.dtype).tiny).log()
    return (found.log_beta, found.doubt) if more_than_chance(gain, _MIN_STANDARD_ERRORS) else (plain, 0.0)


@dataclass
class _Doubtful:
    """An inverse temperature and a doubt, from how far rivals are above the first column, ``(n, 1 + R)``."""

    gaps: Tensor
    log_beta: float
    doubt: float = 0.1
    log_likely: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.finite, self.by_chance = _finite(self.gaps), 1 / torch.isfinite(self.gaps).sum(1)

    def expect(self) -> tuple[float, tuple[Tensor, Tensor]]:
        """The log-likelihood of the first column; the posterior, and how surely each query tells of it ``(n,)``."""
        posterior = _posterior(self.gaps, self.log_beta)
        own = (1 - self.doubt) * posterior[:, 0]
        likely = own + self.doubt * self.by_chance
        self.log_likely = likely.log()
        return float(self.log_likely.mean()), (posterior, own / likely)

    def maximise(self, shares: tuple[Tensor, Tensor]) -> None:
        posterior, tells = shares
        self.doubt = 1 - float(tells.mean())
        self.log_beta = _stepped(self.finite, posterior, self.log_beta, tells)


def _gaps(scores: Tensor) -> Tensor:
    """How far each is above the first; minus infinity where there is none."""
    scores = scores.double()
    return (scores - scores[:, :1]).clamp_min(-1e30).masked_fill(~torch.isfinite(scores), -torch.inf)


def _finite(gaps: Tensor) -> Tensor:
    """The gaps, nought where there is none: a posterior of nought times minus infinity would be no number."""
    return gaps.masked_fill(gaps.isinf(), 0.0)


def _posterior(gaps: Tensor, log_beta: float) -> Tensor:
    return torch.softmax(math.exp(log_beta) * gaps, 1)


def _stepped(finite: Tensor, posterior: Tensor, log_beta: float, weights: Tensor) -> float:
    """A step of Newton's method towards the largest sum of weighted log posteriors of the first column."""
    shares = posterior * finite
    mean = shares.sum(1)
    slope = -float((weights * mean).mean()) * math.exp(log_beta)
    spread = shares.mul_(finite).sum(1) - mean.square()
    bend = float((weights * spread).mean()) * math.exp(2 * log_beta)
    return min(max(log_beta + slope / (bend + abs(slope) + 1e-12), -12.0), 3.0)


def corrected(results: list[HeldOut], seed: int, draws: int = 200) -> float:
    """The accuracy of the best candidate, corrected for the luck of having been chosen.

    Bootstrap bias corrected cross-validation (Tsamardinos, Greasidou and Borboudakis, 2018): the choice is made again
    on origins drawn with replacement, and counted on those that were not drawn.

    Args:
        results: Those of all candidates, on the same queries.
        seed: Seed of the bootstrap.
        draws: The number of bootstrap samples.
    """
    right = torch.stack([one.right for one in results])
    worth = right + _NAT_WORTH * torch.stack(
        [one.log_posterior.double().clamp_min(_LEAST_LOG_POSTERIOR) for one in results]
    )
    known, group = results[0].groups.unique(return_inverse=True)
    generator, total, count = torch.Generator().manual_seed(seed), 0.0, 0.0
    for _ in range(draws):
        drawn = torch.randint(len(known), (len(known),), generator=generator).bincount(minlength=len(known))
        weight = drawn.to(right)[group]
        out = weight == 0
        if bool(out.any()):
            best = int((worth @ weight).argmax())
            total, count = total + float(right[best, out].sum()), count + float(out.sum())
    return total / count if count else results[0].accuracy
