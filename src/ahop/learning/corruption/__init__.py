"""Learn what happens to queries, whether or not their origins are known: the decisions, in order.

1. Everything is measured in the patterns' own units, so that nothing depends on those of the data.
2. *With labels* (:func:`_with_labels`) every kind of model that the data allow is fitted, simplest first, and judged by
   one jury: retrieval of origins that were left out (:mod:`.held_out`). A richer kind takes the place of a simpler one
   if it retrieves better by more than chance. The kinds: single dimensions (:mod:`.independent`), values at a floor
   (:mod:`.floor`), hidden causes (:mod:`.correlated`), a moved space (:mod:`.moved`), and hidden causes of values in
   another scale.
3. *Without labels, or with a few* (:func:`_without_labels`) origins are shared out among the likeliest patterns. A floor
   is a fact and not a choice. Hidden causes are looked for if residuals are more correlated than shuffled ones, and
   taken if they explain the queries better and two halves of the queries agree on them; a moved space is looked for if
   what was found tells little of the origins.
4. The model is made as sure as it is right: by a temperature from the jury, or without labels from :mod:`.trust`. What
   genuine queries look like to a model that has not seen them tells later which ones are not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._precision import Units
from ahop._progress import Bar, progress
from ahop.learning.corruption import correlated, floor, held_out, independent, moved, trust
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.report import FitReport, Trial

__all__ = ["Families", "Learned", "Lessons", "follow", "learn", "learn_correlated"]

# Queries x patterns that hidden causes are looked for in.
_TABLE = 2**24
# Hidden causes are looked for when residuals are so much more correlated than shuffled ones.
_CORRELATED = 1.5
# Halves of the queries that agree on fewer origins than this, and than a simpler model's by so much, veto hidden causes.
_AGREED, _BY = 0.8, 0.1
# A moved space is looked for when what was found tells less than this share of what there is to know of the origins.
_TOLD = 0.5
# Genuine queries that are kept to tell strangers by.
_GENUINE = 512


@dataclass(frozen=True)
class Learned:
    """A model, how the fit went, its log inverse temperature, and how familiar genuine queries are to such a model that
    has not learned from them ``(m,)``."""

    model: Any
    report: FitReport
    log_beta: float = 0.0
    familiarity: Tensor = field(default_factory=lambda: torch.empty(0))


class Contestant(NamedTuple):
    """A kind of model: fitted to all queries, judged if origins are known, and how to fit it to some of them."""

    name: str
    model: Any
    judgement: held_out.Judgement | None
    refit: Callable[[Tensor], Any] | None


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
    units = Units.of(lessons.patterns, lessons.queries)
    here = lessons.measured(units)
    with progress("learning a corruption", show=show) as bar:
        way = _with_labels if here.labelled else _without_labels
        chosen, tried, converged, iterations = way(here, families, hidden_causes, seed, bar)
        bar.advance("how sure to be")
        learned = _trusted(here, chosen, seed)
    report = FitReport(
        "em",
        learned.report.loss + lessons.log_density_of(units),
        iterations,
        converged,
        tuple(tried),
        chosen.name,
        learned.report.accuracy,
        learned.report.confidence,
    )
    return replace(learned, model=units.leave(learned.model), report=report)


Outcome = tuple[Contestant, list[Trial], bool, int]


# --- with labels -------------------------------------------------------------------------------------------------


def _with_labels(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> Outcome:
    several = here.origins is not None and len(here.origins.unique()) > 1
    whole, same_width = here.observed is None, here.queries.shape[1] == here.patterns.shape[1]
    jury = held_out.Jury(here.patterns, here.queries, here.origins, seed) if whole and (several or causes) else None
    contestants: list[Contestant] = []
    converged, iterations = True, 1
    if same_width and not causes:
        bar.advance("single dimensions")
        fit = independent.refined(independent.from_pairs(independent.Problem(here, families, seed)))
        judgement = None if jury is None else jury.each(fit.relearned)
        contestants.append(Contestant("single dimensions", fit.similarity(), judgement, fit.relearned))
        converged, iterations = fit.report().converged, fit.report().iterations
    if jury is not None and causes != 0:
        contestants += _richer(here, families, causes, jury, seed, bar)
    best = contestants[0]
    for one in contestants[1:]:
        if best.judgement is None or (one.judgement is not None and one.judgement.beats(best.judgement)):
            best = one
    tried = [
        Trial(one.name, one.judgement.accuracy, float(one.judgement.log_posterior.mean()))
        for one in contestants
        if one.judgement is not None
    ]
    return best, tried, converged or best is not contestants[0], iterations


def _richer(
    here: Lessons, families: Families, causes: int | None, jury: held_out.Jury, seed: int, bar: Bar
) -> list[Contestant]:
    """Kinds of models beyond single dimensions, each judged."""
    same_width = here.queries.shape[1] == here.patterns.shape[1]
    if causes:
        return [_causes(here, families.correlated, causes, jury)]
    if families.floor is not None and same_width and floor.floor_of(here.queries) is not None:
        bar.advance("a floor")
        # One value that comes again and again has no density: what follows would be mistaken.
        return [_floored(families.floor, jury)]
    found: list[Contestant] = []
    if families.correlated is not None and same_width:
        bar.advance("hidden causes")
        found.append(_causes(here, families.correlated, None, jury))
    if families.moved is not None and len(here.queries) > 2:
        bar.advance("a moved space")
        found.append(_moved(families.moved, jury, seed))
    if families.transformed is not None and found and same_width:
        bar.advance("other scales")
        found += _other_scales(here, families, jury, found)
    return found


def _causes(here: Lessons, kind: Any, rank: int | None, jury: held_out.Jury) -> Contestant:
    form, judgement = correlated.by_retrieval(jury, kind, rank)

    def refit(rows: Tensor) -> Any:
        return correlated.fit_rows(jury, rows, form).to(here.patterns)

    return Contestant("hidden causes", refit(torch.arange(len(jury.queries))), judgement, refit)


def _floored(kind: Any, jury: held_out.Jury) -> Contestant:
    model, judgement = floor.by_retrieval(jury, kind)
    cells = floor.Cells(floor.begin(kind, jury.patterns, jury.queries), jury.patterns, jury.queries, None)
    regimes = len(model.log_rho)
    return Contestant(
        "a floor", model, judgement, lambda rows: floor.fit_pairs(cells, rows, jury.origins[rows], regimes)
    )


def _moved(kind: Any, jury: held_out.Jury, seed: int) -> Contestant:
    choice = moved.choose(jury.patterns, jury.queries, jury.origins, seed)

    def refit(rows: Tensor) -> Any:
        made = moved.fit_pairs(jury.patterns, jury.queries[rows], jury.origins[rows], kind, seed, choice)
        return made.to(jury.patterns)

    every = torch.arange(len(jury.queries), device=jury.queries.device)
    return Contestant("a moved space", refit(every), jury.each(refit), refit)


def _other_scales(here: Lessons, families: Families, jury: held_out.Jury, found: list[Contestant]) -> list[Contestant]:
    """Hidden causes of values in the scale that promises most, if it promises more than values as they are."""
    lowest = min(float(rows.min()) for rows in (here.patterns, here.queries))
    ranks = sorted({0, found[0].model.rank}) if hasattr(found[0].model, "rank") else [0]
    best: tuple[Any, held_out.Judgement] | None = None
    plain = families.independent(here.patterns.shape[1])
    for scale in ("as it is", "logarithm", "square root", "rank"):
        for own_scale in (False, True):
            if scale == "as it is" and not own_scale:
                continue
            seen = families.transformed(plain, scale, own_scale, low=lowest)
            other = jury.seen(seen.view)
            for rank in ranks:
                judgement = correlated.judged(other, correlated.Form(families.correlated, rank))
                if best is None or judgement.log_posterior.mean() > best[1].log_posterior.mean():
                    best = seen, judgement
    assert best is not None and found[0].judgement is not None
    if not best[1].beats(found[0].judgement):
        return []
    seen, other = best[0], jury.seen(best[0].view)
    inner = _causes(replace(here, patterns=other.patterns, queries=other.queries), families.correlated, None, other)
    assert inner.refit is not None

    def wrapped(model: Any) -> Any:
        return families.transformed(model, seen.scale, seen.own_scale, seen.low, seen.unit)

    name = f"hidden causes, {seen.scale}{', own scale' * seen.own_scale}"
    return [Contestant(name, wrapped(inner.model), inner.judgement, lambda rows: wrapped(inner.refit(rows)))]


# --- without labels, or with a few -------------------------------------------------------------------------------


def _without_labels(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> Outcome:
    if here.queries.shape[1] != here.patterns.shape[1]:
        bar.advance("a moved space")
        return _found_moved(here, families, seed, warn=True)
    if families.floor is not None and causes is None and floor.floor_of(here.queries, here.observed) is not None:
        bar.advance("a floor")
        return _found_floor(here, families.floor, seed)
    if causes:
        one = _unlabelled_causes(here, families.correlated, causes, seed, bar)
        return one, [Trial(one.name)], True, 1
    bar.advance("single dimensions")
    fit, runner_up = independent.from_queries(independent.Problem(here, families, seed))
    tried, best = [Trial("single dimensions")], None
    if causes is None and families.correlated is not None and here.observed is None and _asks_for_causes(fit, seed):
        bar.advance("hidden causes")
        one = _unlabelled_causes(here, families.correlated, None, seed, bar)
        tried.append(Trial(one.name))
        if _explains_better(here, one.model, fit):
            best = None if _vetoed(here, one, fit, seed) else one
    if best is None:
        bar.advance("single dimensions")
        fit = independent.of_either_start(independent.refined(fit), runner_up)
        best = Contestant("single dimensions", fit.similarity(), None, fit.relearned)
    report = fit.report()
    if causes is None and families.moved is not None and here.observed is None and _tells_little(here, best.model):
        bar.advance("a moved space")
        other, more, found, _ = _found_moved(here, families, seed, warn=False)
        tried += more
        if found:
            return other, tried, True, 1
    return best, tried, report.converged or best.name != "single dimensions", report.iterations


def _unlabelled_causes(here: Lessons, kind: Any, rank: int | None, seed: int, bar: Bar) -> Contestant:
    stored, asked, origins = here.patterns.double(), here.queries.double(), here.origins
    most = max(64, _TABLE // len(stored))
    if len(asked) > most:
        order = torch.randperm(len(asked), generator=torch.Generator().manual_seed(seed))[:most].to(asked.device)
        asked, origins = asked[order], None if origins is None else origins[order]
    ranks = correlated.ladder(len(asked), stored.shape[1]) if rank is None else [rank]
    model = correlated.by_information(kind, stored, asked, origins, ranks, lambda: bar.advance("hidden causes"))
    form = correlated.Form.of(model)

    def refit(rows: Tensor) -> Any:
        known = None if here.origins is None else here.origins[rows[:most]]
        return correlated.fit_queries(stored, here.queries[rows[:most]].double(), form, 15, None, known).to(
            here.patterns
        )

    return Contestant("hidden causes", model.to(here.patterns), None, refit)


def _explains_better(here: Lessons, model: Any, fit: independent.Fit) -> bool:
    """Whether hidden causes explain the queries better than single dimensions, by more than chance."""
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    gain = (model(here.patterns, fit.evidence.queries) + prior).logsumexp(1) - fit.log_evidence()
    return float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain))


def _vetoed(here: Lessons, causes: Contestant, fit: independent.Fit, seed: int) -> bool:
    """Whether hidden causes are chance: fits to two halves of the queries agree on few origins, and those of a simpler
    model on more."""
    one, other = _halves(len(here.queries), seed, here.queries.device)
    assert causes.refit is not None
    agreed = trust.agreement(causes.refit(one), causes.refit(other), here.patterns, here.queries)
    if agreed >= _AGREED:
        return False
    simple = correlated.Form(type(causes.model), 0, shared_noise=True)

    def plain(rows: Tensor) -> Any:
        return correlated.fit_queries(here.patterns.double(), here.queries[rows].double(), simple, 15, None)

    rival = max(
        trust.agreement(plain(one), plain(other), here.patterns, here.queries),
        trust.agreement(fit.relearned(one), fit.relearned(other), here.patterns, here.queries)
        if len(fit.evidence.queries) == len(here.queries)
        else 0.0,
    )
    if agreed >= rival - _BY:
        return False
    warnings.warn(
        f"the {len(here.queries)} queries are too few to be sure of hidden causes that move many dimensions at once: two "
        f"halves of them agree on {agreed:.0%} of the origins, those of a simpler model on {rival:.0%}, which is taken; "
        "more queries, or some origins, would tell",
        UserWarning,
        stacklevel=7,
    )
    return True


def _tells_little(here: Lessons, model: Any) -> bool:
    """Whether the queries tell little of their origins under a model: by the information between the two."""
    asked = here.queries[:: max(1, len(here.queries) // 512)]
    if len(asked) < 2 or len(here.patterns) < 2:
        return False
    told = correlated.mutual_information(model(here.patterns, asked))
    return told < _TOLD * math.log(min(len(asked), len(here.patterns)))


def _found_floor(here: Lessons, kind: Any, seed: int) -> Outcome:
    model, report = floor.learn(here, kind, seed)
    known = torch.full_like(here.queries[:, 0], -1, dtype=torch.long) if here.origins is None else here.origins
    prior = here.log_prior
    if prior is None:
        prior = here.patterns.new_full((len(here.patterns),), -math.log(len(here.patterns)))
    cells = floor.Cells(
        floor.begin(kind, here.patterns, here.queries, here.observed), here.patterns, here.queries, here.observed
    )
    most = max(64, 2**20 // len(here.patterns))

    def refit(rows: Tensor) -> Any:
        rows = rows[:most]
        return floor.fit_queries(cells, rows, known[rows], prior, len(model.log_rho), seed)

    return Contestant("a floor", model, None, refit), [Trial("a floor")], report.converged, report.iterations


def _found_moved(here: Lessons, families: Families, seed: int, warn: bool) -> Outcome:
    if families.moved is None:
        raise ValueError(
            f"queries must have {here.patterns.shape[1]} values each, like the patterns, got {here.queries.shape[1]}"
        )
    model, report = moved.learn(here, families.moved, seed)
    if warn and not report.converged:
        warnings.warn(
            f"no map from the patterns to the {len(here.queries)} queries was found that is better than chance: answers "
            "mean nothing; it takes about 5,000 queries without origins, or ten with them",
            UserWarning,
            stacklevel=7,
        )
    one = Contestant("a moved space", model.to(here.patterns), None, None)
    return one, [Trial(one.name)], report.converged, report.iterations


def _asks_for_causes(fit: independent.Fit, seed: int) -> bool:
    """Whether residuals are more correlated than they would be if every dimension had been hit by itself."""
    gaps = fit.residuals()
    gaps = (gaps - gaps.mean(0)) / gaps.std(0, unbiased=False).clamp_min(1e-12)
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(gaps.shape, generator=generator).argsort(0).to(gaps.device)
    strength, by_chance = (torch.linalg.matrix_norm(m, 2).square() for m in (gaps, gaps.gather(0, order)))
    return len(gaps) >= 16 and bool(strength > _CORRELATED * by_chance)


# --- how sure to be ----------------------------------------------------------------------------------------------


def _halves(count: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).to(device)
    return order[: count // 2], order[count // 2 :]


def _trusted(here: Lessons, chosen: Contestant, seed: int) -> Learned:
    """The model with a temperature, and what it expects of itself."""
    model, prior = chosen.model, here.log_prior
    log_beta, right = 0.0, math.nan
    if chosen.judgement is not None:
        log_beta, right = chosen.judgement.log_beta, chosen.judgement.accuracy
    elif here.observed is None and len(here.queries) >= 8:
        log_beta, right = trust.log_beta(model, here.patterns, here.queries, seed)
        if chosen.refit is not None:
            one, other = (chosen.refit(half) for half in _halves(len(here.queries), seed, here.queries.device))
            share = math.sqrt(trust.agreement(one, other, here.patterns, here.queries))
            log_beta = trust.no_surer_than(share, model, here.patterns, here.queries, log_beta, prior)
            right = min(right, share) if not math.isnan(right) else share
    loss, confidence = _evidence(here, model, math.exp(log_beta))
    report = FitReport("em", loss, 1, converged=True, accuracy=right, confidence=confidence)
    return Learned(model, report, log_beta, _genuine(here, chosen, math.exp(log_beta), seed))


def _evidence(here: Lessons, model: Any, beta: float) -> tuple[float, float]:
    """The mean of minus the log evidence, and the mean confidence, of some queries."""
    some = slice(None, None, max(1, len(here.queries) // 512))
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    seen = None if here.observed is None else here.observed[some]
    scores = model(here.patterns, here.queries[some], seen)
    confidence = torch.softmax(beta * scores + prior, -1).amax(-1).mean()
    return -float((scores + prior).logsumexp(-1).mean()), float(confidence)


def _genuine(here: Lessons, chosen: Contestant, beta: float, seed: int) -> Tensor:
    """How familiar queries are to a model that has not learned from them, at the temperature that it will have."""
    if here.observed is not None or len(here.queries) < 4:
        return here.queries.new_empty(0)
    if chosen.refit is None:
        return familiarity(chosen.model, here.patterns, here.queries[:_GENUINE], here.log_prior, beta)
    one, other = _halves(len(here.queries), seed, here.queries.device)
    if here.labelled:
        # Halves that share no origin.
        _, group = here.origins.unique(return_inverse=True)  # type: ignore[union-attr]
        side = torch.rand(int(group.max()) + 1, generator=torch.Generator().manual_seed(seed)).to(group.device)[group]
        one, other = (side < side.median()).nonzero().squeeze(1), (side >= side.median()).nonzero().squeeze(1)
        if not len(one):
            return here.queries.new_empty(0)
    found = []
    for learn, judge in ((one, other), (other, one)):
        judge = judge[: _GENUINE // 2]
        model = chosen.refit(learn)
        found.append(familiarity(model, here.patterns, here.queries[judge], here.log_prior, beta))
    return torch.cat(found)


def familiarity(
    model: Any, patterns: Tensor, queries: Tensor, log_prior: Tensor | None, beta: float, observed: Tensor | None = None
) -> Tensor:
    """The log of how much likelier queries are from stored patterns than from others that are like them, ``(Q,)``."""
    prior = -math.log(len(patterns)) if log_prior is None else log_prior
    evidence = (beta * model(patterns, queries, observed) + prior).logsumexp(-1)
    return evidence - beta * model.stranger(patterns, queries, observed)


# --- one kind alone, and a stream --------------------------------------------------------------------------------


def learn_correlated(lessons: Lessons, kind: Any, rank: int, seed: int = 0) -> tuple[Any, FitReport]:
    """Hidden causes alone, as many as are asked for; with labels, at the temperature that the jury finds."""
    if lessons.observed is not None:
        raise ValueError("observed must be None: hidden causes are learned from whole queries")
    units = Units.of(lessons.patterns, lessons.queries)
    here = lessons.measured(units)
    if here.labelled:
        one = _causes(here, kind, rank, held_out.Jury(here.patterns, here.queries, here.origins, seed))
        assert one.judgement is not None
        one.model.log_beta.fill_(one.judgement.log_beta)
    else:
        one = _unlabelled_causes(here, kind, rank, seed, Bar("", None, show=False))
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
