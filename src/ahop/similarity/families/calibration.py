"""How far a model that was learned without labels is to be trusted: what nobody's labels can tell, its own data may.

Two things make such a model too sure of itself. *Chance*: it was fitted to few queries. Models fitted to two halves of
them then answer differently, and their agreement bounds how often either can be right (:func:`agreement`). *Form*: its
terms are taken for independent and are not. What really happened to a query can be transferred to another pattern
(:meth:`ahop.similarity.Density.transferred`), where the origin is known by construction: a bootstrap of residuals, on
which a temperature is fitted as on held-out labels (:func:`log_beta`). Neither shows a model that is wrong in the same
way for all queries. A few labels do (:func:`by_labels`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import parts_of, split
from ahop._queries import Queries
from ahop.learning.chance import independent
from ahop.learning.conformal import behind
from ahop.learning.report import FitReport, beats_chance, clopper_pearson
from ahop.similarity.density import Density
from ahop.similarity.families import stand_ins
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import HeldOut, beside_rivals, fit_doubt, fit_temperature

# Queries that are asked, and rivals that each is told from.
_MAX_QUERIES, _RIVALS = 256, 1024
# Labels that tell how sure to be, at least; and the level of the confidence interval up to whose lower end they prove a
# model right: one standard error, as too modest is wrong as well.
MIN_LABELS, _PROOF_LEVEL = 5, 0.68


def _some(count: int, most: int, generator: torch.Generator, device: torch.device) -> Tensor:
    return torch.randperm(count, generator=generator)[:most].to(device)


def first_choices(model: Density, data: TrainingData) -> Tensor:
    """The likeliest pattern of each query, ``(n,)``."""
    like = next(model.parameters())
    # Of a half, no origin may be known.
    if not len(data.queries):
        return data.rows
    some, places, _ = stand_ins.of(data, model)
    stored, found = some.patterns.to(like), []
    for part in split(len(data.queries), 2 * len(stored) * like.element_size()):
        few = some.part(part)
        found.append(model(stored, few.queries.to(like), few.observed).argmax(-1))
    return places[torch.cat(found)]


def agreement(one: Density, other: Density, data: TrainingData) -> float:
    """The share of queries for which two models have the same first choice.

    Args:
        one, other: The models.
        data: The queries; of many, a sample.
    """
    some = data.part(data.rows[:: max(1, len(data.queries) // _MAX_QUERIES)])
    return float((first_choices(one, some) == first_choices(other, some)).double().mean())


def log_beta(model: Density, data: TrainingData, seed: int) -> tuple[float, float]:
    """The temperature at which a model is as sure as it is right, judged without labels.

    Args:
        model: What was learned.
        data: The queries, whose corruption is moved to other patterns.
        seed: Seed of what is drawn.

    Returns:
        The log inverse temperature, never above nought, and how often the first choice is right on the moved queries;
        nought and NaN where the model cannot move them.
    """
    generator = torch.Generator().manual_seed(seed)
    like = next(model.parameters())
    some = data.part(_some(len(data.queries), _MAX_QUERIES, generator, data.queries.device))
    asked, stored = some.queries.to(like), data.patterns.to(like)
    own = stored[first_choices(model, some)]
    others = torch.randint(len(stored), (len(asked),), generator=generator).to(asked.device)
    transferred = model.transferred(asked, own, stored[others])
    if transferred is None:
        return 0.0, math.nan
    rivals = _some(len(stored), _RIVALS, generator, asked.device)
    scores = beside_rivals(model, TrainingData(stored, transferred, others, some.observed), rivals)
    right = float((scores[:, 0] > scores[:, 1:].amax(1)).double().mean())
    return min(0.0, fit_temperature(scores.double())[1]), right


class HeldOutLabels(NamedTuple):
    """How many of the known origins were found, of how many, by models that have not learned from them.

    Example:
        >>> HeldOutLabels(3, 4, 4).accuracy, HeldOutLabels(3, 4, 4).bound(0.5)
        (0.75, 0.7)
        >>> HeldOutLabels(3, 4, 4).bears_out(0.95), HeldOutLabels(0, 20, 20).bears_out(0.3)
        (True, False)
    """

    right: int
    labels: int
    witnesses: int

    @classmethod
    def by(cls, found: Tensor, origins: Tensor) -> HeldOutLabels | None:
        """From whether each was found, and its origin, ``(l,)``; None where they are too few to tell."""
        if len(found) < MIN_LABELS:
            return None
        return cls(int(found.sum()), len(found), independent(found, origins))

    @property
    def accuracy(self) -> float:
        """What a report says: labels alone have a say in it."""
        return self.right / self.labels

    def beats_chance(self, patterns: int) -> bool:
        """Whether more were found than by chance."""
        return beats_chance(self.right, self.labels, patterns)

    def on(self, report: FitReport) -> FitReport:
        """A report that rests on these labels."""
        return replace(report, accuracy=self.accuracy, labels=self.labels, witnesses=self.witnesses)

    def bears_out(self, expected: float) -> bool:
        """Whether as many as were expected may well be right: no more than the confidence interval reaches up to."""
        return expected <= clopper_pearson(round(self.accuracy * self.witnesses), self.witnesses)[1]

    def bound(self, expected: float, worth: int = 1) -> float:
        """How sure to be at most, where what was expected without labels is worth so many witnesses."""
        return (self.accuracy * self.witnesses + expected * worth) / (self.witnesses + worth)


def by_labels(models: list[tuple[Density, Tensor]], data: TrainingData) -> HeldOutLabels | None:
    """How many of the known origins are found, by models that each come with the rows they have not learned from."""
    if data.origins is None or not models:
        return None
    right, origins = [], []
    for model, rows in models:
        known = data.part(rows[data.origins[rows] >= 0])
        right.append(first_choices(model, known) == known.all_origins)
        origins.append(known.all_origins)
    return HeldOutLabels.by(torch.cat(right), torch.cat(origins))


def far_behind(models: list[tuple[Density, Tensor]], data: TrainingData) -> Tensor:
    """How far known origins are behind the first choices (:func:`ahop.learning.conformal.behind`), ``(l,)``, by models
    that each come with the rows they have not learned from."""
    found = [data.queries.new_empty(0)]
    for model, rows in models if data.origins is not None else ():
        some = stand_ins.of(data.part(rows[data.all_origins[rows] >= 0]), model).data
        for part in split(len(some.queries), 2 * len(some.patterns) * some.queries.element_size()):
            few = some.part(part)
            scores = model(few.patterns, few.queries, few.observed)
            found.append(behind(torch.cat([scores.gather(1, few.all_origins[:, None]), scores], 1)))
    return torch.cat(found)


def from_held_out(held_out: HeldOut, expected: float) -> tuple[float, float]:
    """The log inverse temperature and the doubt of a model that was chosen by cross-validation.

    The best of many candidates on a few labels is also the luckiest, and a temperature that is fitted to them believes
    its luck. So a model is never surer of queries that were held out than it should be right.

    Args:
        held_out: How it retrieves origins that were left out.
        expected: How often it should be right, the luck of the choice taken away; NaN where nobody knows.
    """
    log_beta, doubt = fit_doubt(held_out.scores, held_out.log_beta)
    share, count = held_out.accuracy if math.isnan(expected) else expected, held_out.witnesses
    least, _ = clopper_pearson(round(share * count), count, _PROOF_LEVEL)
    log_beta, doubt = _proved(held_out.scores, log_beta, doubt, least)
    return _no_surer(lambda at: (1 - doubt) * _sureness(held_out.scores, at), share, log_beta - 12.0, log_beta), doubt


def from_answers(scores: Tensor, found: bool = True) -> tuple[float, float]:
    """The log inverse temperature and the doubt that a few checked answers ask for.

    Args:
        scores: Of each origin, first, and of its rivals, ``(n, 1 + R)``.
        found: Whether the model could be told from chance. If not, answers alone vouch for it, and it is no surer than
            they found it right.
    """
    log_beta, doubt = fit_doubt(scores)
    right = scores[:, 0] >= scores[:, 1:].amax(1)
    if not found:
        share = float(right.double().mean())
        return _no_surer(lambda at: (1 - doubt) * _sureness(scores, at), share, log_beta - 12.0, log_beta), doubt
    least, _ = clopper_pearson(int(right.sum()), len(right), _PROOF_LEVEL)
    return _proved(scores, log_beta, doubt, least)


def _proved(scores: Tensor, log_beta: float, doubt: float, least: float) -> tuple[float, float]:
    """A log inverse temperature and a doubt as far as labels prove them.

    They may make a model less sure as far as they like, but surer only up to the lower end of the confidence interval
    of its accuracy: twenty answers of which all are right do not make it certain.
    """
    most = max(_sureness(scores, 0.0), least)
    if (1 - doubt) * _sureness(scores, log_beta) <= most:
        return log_beta, doubt
    return _no_surer(lambda at: _sureness(scores, at), most, 0.0, max(0.0, log_beta)), 0.0


def _sureness(scores: Tensor, log_beta: float) -> float:
    """The mean confidence in first choices, at a log inverse temperature."""
    return float(torch.softmax(math.exp(log_beta) * scores.double(), 1).amax(1).mean())


def no_surer_than(share: float, model: Density, data: TrainingData, log_beta: float) -> float:
    """The log inverse temperature at which the mean confidence is at most a given share.

    Args:
        share: The largest mean confidence allowed.
        model: What was learned.
        data: The queries.
        log_beta: The largest log inverse temperature allowed.
    """
    like = next(model.parameters())
    some, _, counts = stand_ins.of(data.part(data.rows[:: max(1, len(data.queries) // _MAX_QUERIES)]), model)
    prior = 0.0 if some.log_prior is None else some.log_prior.to(like)
    stored, asked = some.patterns.to(like), Queries(some.queries.to(like), some.observed)

    def scores(part: slice) -> Tensor:
        few = asked[part]
        found: Tensor = model(stored, few.rows, few.observed)
        return found

    # Once, whatever the temperature: among many patterns, scores take long.
    tables = parts_of(scores, len(asked), 2 * len(stored) * like.element_size())

    def confidence(log_beta: float) -> float:
        """How sure the model is of its first choices on average."""
        shares = (torch.softmax(math.exp(log_beta) * scores + prior, -1) for scores in tables())
        return float(torch.cat([(own / counts).amax(-1) for own in shares]).mean())

    return _no_surer(confidence, share, log_beta - 12.0, log_beta)


def _no_surer(confidence: Callable[[float], float], share: float, low: float, high: float) -> float:
    """The largest log inverse temperature between two at which a confidence that rises with it is at most a share."""
    if confidence(high) <= share:
        return high
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if confidence(middle) > share else (middle, high)
    return low
