"""Learn what happens to queries, whether or not their origins are known: the decisions, in order.

1. Everything is measured in the patterns' own units, so that nothing depends on those of the data.
2. *With labels* (:mod:`.with_labels`) what anyone would try first (plain metrics, whitening, ridge regression:
   :mod:`.plain`) is screened on rows seen in every way worth a try (:mod:`.views`: other scales, slopes of columns that
   have an order). The best of it and every richer kind that the pairs ask for (:mod:`.residuals`) then run before one
   jury: retrieval of origins that were left out (:mod:`.held_out`). The kinds: single dimensions
   (:mod:`.independent`), values at a floor (:mod:`.floor`), hidden causes (:mod:`.correlated`), a moved space
   (:mod:`.moved`). The one that is right most often, and surest of it, is taken.
3. *Without labels, or with a few* (:mod:`.without_labels`) origins are shared out among the likeliest patterns. A
   floor is a fact and not a choice. A moved space is looked for first if there are enough queries and they tell little
   of their origins as they are. Hidden causes are looked for if residuals are more correlated than shuffled ones, and
   taken if they explain the queries better and two halves of the queries agree on them. Any of that has to explain
   held-out queries and their origins better than a plain metric does (:mod:`.completed`).
4. The model is made as sure as it is right: by a temperature and a doubt from the jury, or without labels by a
   temperature from :mod:`.trust`. What
   genuine queries look like to a model that has not seen them tells later which ones are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from ahop._precision import Units
from ahop._progress import Bar, progress
from ahop.learning.corruption import correlated, independent, trust, with_labels, without_labels
from ahop.learning.corruption.contest import Contestant, halves
from ahop.learning.corruption.held_out import Jury, doubted
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.report import FitReport

__all__ = ["Families", "Learned", "Lessons", "follow", "learn", "learn_correlated"]

# Genuine queries that are kept to tell strangers by, at most; and the fewest of which some can be held out.
GENUINE, FEWEST = 512, 4


@dataclass(frozen=True)
class Learned:
    """A model, how the fit went, its log inverse temperature, the share of queries that tell nothing, and how familiar
    genuine queries are to such a model that has not learned from them ``(m,)``."""

    model: Any
    report: FitReport
    log_beta: float = 0.0
    doubt: float = 0.0
    familiarity: Tensor = field(default_factory=lambda: torch.empty(0))


def learn(
    lessons: Lessons, families: Families, hidden_causes: int | None = None, seed: int = 0, show: bool = True
) -> Learned:
    """The likelihood that explains the queries, and how the fit went.

    Args:
        lessons: What there is to learn from.
        families: The kinds to choose from.
        hidden_causes: How many; 0 for single dimensions alone, None to find out what there is.
        seed: For what is held out.
        show: Whether to show a progress bar.
    """
    if lessons.queries.shape[1] != lessons.patterns.shape[1]:
        _require_a_map(lessons, families, hidden_causes)
    units = Units.of(lessons.patterns, lessons.queries)
    here = lessons.measured(units)
    with progress("learning a corruption", show=show) as bar:
        choose = with_labels.choose if here.labelled else without_labels.choose
        chosen, tried, converged, iterations, expected = choose(here, families, hidden_causes, seed, bar)
        bar.advance("how sure to be")
        learned = _trusted(here, chosen, seed)
    # Where no map to another space was found, nobody knows how often answers are right.
    lost = not converged and chosen.name == "a moved space"
    report = FitReport(
        "em",
        learned.report.loss + lessons.log_density_of(units),
        iterations,
        converged,
        tuple(tried),
        chosen.name,
        math.nan if lost else learned.report.accuracy if math.isnan(expected) else expected,
        learned.report.confidence,
    )
    return replace(learned, model=units.leave(learned.model), report=report)


def _require_a_map(lessons: Lessons, families: Families, hidden_causes: int | None) -> None:
    """Refuse queries of another width than patterns where no map between the two can be learned."""
    width, asked = lessons.patterns.shape[1], lessons.queries.shape[1]
    if families.moved is None or hidden_causes is not None:
        raise ValueError(f"queries must have {width} values each, like the patterns, to learn this; got {asked}")
    if lessons.observed is not None:
        raise ValueError(f"observed must be None: queries of {asked} values for patterns of {width} must be whole")
    if lessons.origins is not None and lessons.labelled and len(lessons.origins.unique()) < 2:
        raise ValueError(f"origins must be of at least two patterns to learn a map from {width} values to {asked}")


# --- how sure to be --------------------------------------------------------------------------------------------------


def _trusted(here: Lessons, chosen: Contestant, seed: int) -> Learned:
    """The model with a temperature, and what it expects of itself."""
    model, prior = chosen.model, here.log_prior
    log_beta, doubt, right = 0.0, 0.0, math.nan
    halved = _halved(here, chosen, seed)
    if chosen.judgement is not None:
        (log_beta, doubt), right = doubted(chosen.judgement.scores), chosen.judgement.accuracy
    elif here.observed is None and len(here.queries) >= 8:
        log_beta, right = trust.log_beta(model, here.patterns, here.queries, seed)
        log_beta = log_beta if chosen.log_beta is None else chosen.log_beta
        if halved:
            (one, _), (other, _) = halved
            share = math.sqrt(trust.agreement(one, other, here.patterns, here.queries))
            right = share if math.isnan(right) else min(right, share)
            told = trust.by_labels(halved, here, right)
            if told is not None:
                # Labels are believed, be it more or less than a bootstrap.
                share, right, log_beta = told, told, 0.0
            log_beta = trust.no_surer_than(share, model, here.patterns, here.queries, log_beta, prior)
    loss, sure = _evidence(here, model, math.exp(log_beta))
    confidence = (1 - doubt) * sure + doubt / len(here.patterns)
    report = FitReport("em", loss, 1, converged=True, accuracy=right, confidence=confidence)
    return Learned(model, report, log_beta, doubt, _genuine(here, chosen, halved, math.exp(log_beta)))


def _evidence(here: Lessons, model: Any, beta: float) -> tuple[float, float]:
    """The mean of minus the log evidence, and the mean confidence, of some queries."""
    some = slice(None, None, max(1, len(here.queries) // 512))
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    seen = None if here.observed is None else here.observed[some]
    scores = model(here.patterns, here.queries[some], seen)
    confidence = torch.softmax(beta * scores + prior, -1).amax(-1).mean()
    return -float((scores + prior).logsumexp(-1).mean()), float(confidence)


def _halved(here: Lessons, chosen: Contestant, seed: int) -> list[tuple[Any, Tensor]]:
    """A model of each half of the queries, and the rows of the other half; with labels, halves that share no origin,
    unless most queries have the same one.

    Nothing where the model cannot be fitted again, or there is too little.
    """
    if chosen.refit is None or len(here.queries) < FEWEST:
        return []
    one, other = halves(len(here.queries), seed, here.queries.device)
    if here.origins is not None and here.labelled:
        _, group = here.origins.unique(return_inverse=True)
        side = torch.rand(int(group.max()) + 1, generator=torch.Generator().manual_seed(seed)).to(group.device)[group]
        first = side < side.median()
        if bool(first.any()):
            one, other = first.nonzero().squeeze(1), (~first).nonzero().squeeze(1)
    return [(chosen.refit(one), other), (chosen.refit(other), one)]


def _genuine(here: Lessons, chosen: Contestant, halved: list[tuple[Any, Tensor]], beta: float) -> Tensor:
    """How familiar queries are to a model that has not learned from them, at the temperature that it will have."""
    if len(here.queries) < FEWEST:
        return here.queries.new_empty(0)
    if chosen.refit is None:
        every = torch.arange(len(here.queries), device=here.queries.device)
        return _familiarity(chosen.model, here, every[:GENUINE], beta)
    found = [_familiarity(model, here, rows[: GENUINE // 2], beta) for model, rows in halved]
    return torch.cat([here.queries.new_empty(0), *found])


def _familiarity(model: Any, here: Lessons, rows: Tensor, beta: float) -> Tensor:
    """The log of how much likelier these queries are from stored patterns than from others that are like them."""
    some = here.part(rows)
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    evidence = (beta * model(some.patterns, some.queries, some.observed) + prior).logsumexp(-1)
    return evidence - beta * model.stranger(some.patterns, some.queries, some.observed)


# --- one kind alone, and a stream --------------------------------------------------------------------------------


def learn_correlated(lessons: Lessons, kind: Any, rank: int, seed: int = 0) -> tuple[Any, FitReport]:
    """Hidden causes alone, as many as are asked for; with labels, at the temperature that the jury finds."""
    if lessons.observed is not None:
        raise ValueError("observed must be None: hidden causes are learned from whole queries")
    units = Units.of(lessons.patterns, lessons.queries)
    here = lessons.measured(units)
    if here.labelled:
        assert here.origins is not None
        one = with_labels.causes_of(here, kind, rank, Jury(here.patterns, here.queries, here.origins, seed), seed)
        assert one.judgement is not None
        one.model.log_beta.fill_(one.judgement.log_beta)
    else:
        one = without_labels.causes_of(here, kind, rank, seed, Bar("", None, show=False))
    loss, _ = _evidence(here, one.model, 1.0)
    return units.leave(one.model), FitReport("em", loss + lessons.log_density_of(units), 1, converged=True)


def follow(model: Any, lessons: Lessons, families: Families) -> tuple[Any, FitReport]:
    """A few steps from what is known to what the last queries of a stream say."""
    units = Units.of(lessons.patterns, lessons.queries)
    here, model = lessons.measured(units), units.enter(model)
    if families.correlated is not None and isinstance(model, families.correlated):
        if lessons.observed is not None:
            raise ValueError("observed must be None: this memory has hidden causes, and learns from whole queries")
        new = correlated.follow(model, here.patterns.double(), here.queries.double(), here.origins)
        found = new.to(here.patterns)
        report = FitReport("em", _evidence(here, found, 1.0)[0], 1, converged=True)
    else:
        fit = independent.followed(independent.Problem(here, families, 0), model)
        found, report = fit.similarity(), fit.report()
    return units.leave(found), replace(report, loss=report.loss + lessons.log_density_of(units))
