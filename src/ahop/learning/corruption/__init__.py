"""Learn what happens to queries, whether or not their origins are known: the decisions, in order.

1. Everything is measured in the patterns' own units, so that nothing depends on those of the data.
2. Terms for single dimensions are fitted by expectation maximisation (:mod:`.independent`, :mod:`.em`): on the pairs
   where origins are known; else from several starts, with the origins shared out among the likeliest patterns.
3. If residuals are more correlated than shuffled ones, hidden causes that move many dimensions at once are fitted too
   (:mod:`.correlated`). Their number is chosen by retrieval of origins that were left out (:mod:`.held_out`) or,
   without labels, by the information between query and origin. They are taken if they retrieve better by more than
   chance or, without labels, if they explain the queries better.
4. If not, terms for single dimensions are refined on a fifth of the queries, held out for that: may dimensions differ,
   are there more kinds of noise, are there several regimes?
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ahop._precision import Units
from ahop._progress import progress
from ahop.learning.corruption import correlated, held_out, independent
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.report import FitReport

__all__ = ["Families", "Lessons", "follow", "learn", "learn_correlated"]

# Queries x patterns that hidden causes are looked for in.
_TABLE = 2**24
# Hidden causes are looked for when residuals are so much more correlated than shuffled ones.
_CORRELATED = 1.5
# The share of one value among all that makes them no longer continuous.
_REPEATED = 0.25


def learn(
    lessons: Lessons, families: Families, hidden_causes: int | None = None, seed: int = 0
) -> tuple[Any, FitReport]:
    """The likelihood that explains the queries, and how the fit went.

    Args:
        lessons: What there is to learn from.
        families: The kinds to choose from.
        hidden_causes: How many; 0 for none, None to find out.
        seed: For what is held out.
    """
    units = Units.of(lessons.patterns, lessons.queries)
    here = lessons.measured(units)
    found, report = _learn(here, families, hidden_causes, seed)
    return units.leave(found), replace(report, loss=report.loss + lessons.log_density_of(units))


def _learn(here: Lessons, families: Families, hidden_causes: int | None, seed: int) -> tuple[Any, FitReport]:
    if hidden_causes:
        found, _ = _with_causes(here, families.correlated, hidden_causes, seed, against=None)
        return found, _report(found, here)
    problem, runner_up = independent.Problem(here, families, seed), None
    if here.origins is not None:
        fit = independent.from_pairs(problem)
    else:
        fit, runner_up = independent.from_queries(problem)
    wanted = hidden_causes is None and families.correlated is not None and here.observed is None
    several = here.origins is None or len(here.origins.unique()) > 1
    if wanted and several and _asks_for_causes(fit, seed):
        found, better = _with_causes(here, families.correlated, None, seed, against=fit)
        if better:
            return found, _report(found, here)
    fit = independent.refined(fit)
    if runner_up is not None:
        fit = independent.of_either_start(fit, runner_up)
    return fit.similarity(), fit.report()


def learn_correlated(lessons: Lessons, kind: Any, rank: int, seed: int = 0) -> tuple[Any, FitReport]:
    """Hidden causes alone, as many as are asked for."""
    if lessons.observed is not None:
        raise ValueError("observed must be None: hidden causes are learned from whole queries")
    units = Units.of(lessons.patterns, lessons.queries)
    here = lessons.measured(units)
    found, _ = _with_causes(here, kind, rank, seed, against=None)
    report = _report(found, here)
    return units.leave(found), replace(report, loss=report.loss + lessons.log_density_of(units))


def follow(model: Any, lessons: Lessons, families: Families) -> tuple[Any, FitReport]:
    """A few steps from what is known to what the last queries of a stream say."""
    units = Units.of(lessons.patterns, lessons.queries)
    here, model = lessons.measured(units), units.enter(model)
    if families.correlated is not None and isinstance(model, families.correlated):
        if lessons.observed is not None:
            raise ValueError("observed must be None: this memory has hidden causes, and learns from whole queries")
        new = correlated.follow(model, here.patterns.double(), here.queries.double(), here.origins)
        found = new.to(here.patterns)
        report = _report(found, here)
    else:
        fit = independent.followed(independent.Problem(here, families, 0), model)
        found, report = fit.similarity(), fit.report()
    return units.leave(found), replace(report, loss=report.loss + lessons.log_density_of(units))


def _report(found: Any, here: Lessons) -> FitReport:
    # Hidden causes are fitted in a fixed number of steps, many times over: one search, which always ends.
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    evidence = (found(here.patterns, here.queries) + prior).logsumexp(-1)
    return FitReport("em", -float(evidence.mean()), 1, converged=True)


def _asks_for_causes(fit: independent.Fit, seed: int) -> bool:
    """Whether residuals are more correlated than they would be if every dimension had been hit by itself."""
    gaps = fit.residuals()
    gaps = (gaps - gaps.mean(0)) / gaps.std(0, unbiased=False).clamp_min(1e-12)
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(gaps.shape, generator=generator).argsort(0).to(gaps.device)
    strength, by_chance = (torch.linalg.matrix_norm(m, 2).square() for m in (gaps, gaps.gather(0, order)))
    return len(gaps) >= 16 and bool(strength > _CORRELATED * by_chance)


def _with_causes(
    here: Lessons, kind: Any, rank: int | None, seed: int, against: independent.Fit | None
) -> tuple[Any, bool]:
    """A likelihood with hidden causes, and whether it does better than one without."""
    stored, asked = here.patterns.double(), here.queries.double()
    if here.origins is not None:
        jury = held_out.Jury(stored, asked, here.origins, seed)
        model, judgement = correlated.by_retrieval(jury, kind, rank)
        better = against is None or judgement.beats(_without_causes(jury, against))
        return model.to(here.patterns), better
    most = max(64, _TABLE // len(stored))
    if len(asked) > most:
        order = torch.randperm(len(asked), generator=torch.Generator().manual_seed(seed))
        asked = asked[order[:most].to(asked.device)]
    ranks = correlated.ladder(len(asked), stored.shape[1]) if rank is None else [rank]
    with progress("looking for hidden causes", 2 * len(ranks)) as bar:
        model = correlated.by_information(kind, stored, asked, ranks, bar.advance)
    better = True
    # One value that comes again and again has no density, and evidence that rests on it means nothing.
    if (
        against is not None
        and float((here.queries == here.queries.flatten().mode().values).double().mean()) < _REPEATED
    ):
        prior = -math.log(len(stored)) if here.log_prior is None else here.log_prior
        evidence = (model(stored, against.evidence.queries.double()) + prior).logsumexp(1)
        gain = evidence - against.log_evidence()
        better = float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain))
    return model.to(here.patterns), better


def _without_causes(jury: held_out.Jury, fit: independent.Fit) -> held_out.Judgement:
    """How well terms for single dimensions retrieve origins they were not fitted to."""
    scores: list[Tensor] = []
    for bundle in jury.bundles():
        judged = torch.cat([rows for _, rows in bundle])
        left = ~torch.isin(jury.origins, jury.origins[judged])
        plain = fit.relearned(left.nonzero().squeeze(1))
        scores += [jury.score(plain, rows, fit.problem.lessons.patterns, fit.evidence.queries) for _, rows in bundle]
    return jury.judge(scores)
