"""Choose a kind of model where origins are not known, or a few: what the queries themselves can tell."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._progress import Bar
from ahop.learning.corruption import (
    alignment,
    completed,
    correlated,
    floor,
    independent,
    moved,
    richer,
    trust,
    with_labels,
)
from ahop.learning.corruption.contest import Contestant, Outcome, halves
from ahop.learning.corruption.held_out import Jury
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.report import Trial

# Queries x patterns that hidden causes are learned from, and that their number is found on; and steps from there.
_TABLE, _LADDER, _POLISH = 2**23, 2**21, 6
_ENOUGH = 384
# Halves of the queries veto hidden causes if they agree on so many fewer origins than those of a simpler model.
_BY = 0.03
# Fewer queries have no halves to compare models on.
_FEWEST = 8
# A moved space is looked for when queries tell less than this share of what there is to know of their origins.
_TOLD = 0.5
# It takes so many queries and patterns, or pairs, and dimensions.
_MANY_ITEMS, _FEW_PAIRS, _FEW_DIMENSIONS = 1500, 8, 8


def choose(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> Outcome:
    """The kind of model that the queries ask for, as far as they can tell; the simpler one where they cannot."""
    if here.queries.shape[1] != here.patterns.shape[1]:
        bar.advance("a moved space")
        outcome = _found_moved(here, families, seed)
        mapped = _moved_by_pairs(here, families, outcome.chosen, seed)
        if mapped is not None:
            return Outcome(mapped, [mapped.trial])
        if not outcome.converged:
            warnings.warn(
                f"no map from the patterns to the {len(here.queries)} queries was found that is better than chance, so "
                f"that answers mean nothing; it takes about {_MANY_ITEMS:,} queries and patterns and a map that is "
                f"nearly linear, or at least {_enough(here)} queries whose origins are known",
                UserWarning,
                stacklevel=6,
            )
        return outcome
    if families.nearest is not None and not causes and len(here.queries) < _FEWEST:
        one = _distance(here, families)
        return Outcome(one, [one.trial])
    if families.floor is not None and causes is None and floor.has_floor(here):
        bar.advance("a floor")
        return _found_floor(here, families.floor, seed)
    if causes:
        one = causes_of(here, families.correlated, causes, seed, bar)
        return Outcome(one, [one.trial])
    tried: list[Trial] = []
    if causes is None and families.moved is not None and _may_be_moved(here, families):
        bar.advance("a moved space")
        outcome = _found_moved(here, families, seed)
        if outcome.converged:
            return outcome
        tried += outcome.tried
    plainest = _plainest(here, families, causes, seed, bar)
    structured = _structured(here, families, causes, seed, bar)
    best, report = structured.chosen, structured.fit.report()
    tried += structured.tried
    if plainest is not None:
        tried.append(plainest.contestant.trial)
        if not _tells_more(here, structured, plainest, seed):
            best = plainest.contestant
    mapped = _moved_by_pairs(here, families, best, seed) if causes is None else None
    if mapped is not None:
        best = mapped
        tried = [*(one for one in tried if one.name != best.name), best.trial]
    converged = report.converged or best.name != "single dimensions"
    return Outcome(best, tried, converged, report.iterations)


def _distance(here: Lessons, families: Families) -> Contestant:
    """The nearest pattern by plain distance, which fewer queries than have halves cannot improve on."""
    nearest = torch.cdist(here.queries, here.patterns).argmin(1)
    origins = nearest if here.origins is None else torch.where(here.origins < 0, nearest, here.origins)
    return with_labels.plain_distance(replace(here, origins=origins), families)


class Structured(NamedTuple):
    """A likelihood with parts to learn, what was tried on the way, and the fit of single dimensions it began with."""

    chosen: Contestant
    tried: list[Trial]
    fit: independent.Fit


def _structured(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> Structured:
    """Single dimensions, or hidden causes if the queries ask for them."""
    problem = independent.Problem(here, families, seed)
    fit, runner_up = independent.from_queries(problem, lambda: bar.advance("single dimensions"))
    tried, best = [Trial("single dimensions")], None
    if causes is None and families.correlated is not None and here.observed is None and fit.leaves_causes(seed):
        bar.advance("hidden causes")
        one = causes_of(here, families.correlated, None, seed, bar)
        tried.append(one.trial)
        if _explains_better(here, one.model, fit):
            best = _that_halves_agree_on(here, one, fit, seed)
            tried += [best.trial] if best is not None and best.name != one.name else []
    if best is None:
        bar.advance("single dimensions")
        fit = richer.of_either_start(richer.refined(fit), runner_up)
        best = Contestant("single dimensions", fit.similarity(), None, fit.relearned)
    return Structured(best, tried, fit)


def _plainest(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> completed.Plain | None:
    """The best of the metrics that anyone would try first; None where only something else is wanted."""
    if families.nearest is None or causes is not None or here.observed is not None or len(here.queries) < _FEWEST:
        return None
    bar.advance("plain metrics")
    return completed.best_plain(here, families, seed)


def _tells_more(here: Lessons, structured: Structured, plainest: completed.Plain, seed: int) -> bool:
    """Whether a likelihood with more to learn finds more of the known origins, if enough are known, or else explains
    held-out queries and their origins better than a plain metric."""
    one, other = structured.chosen, plainest.contestant
    assert one.refit is not None and other.refit is not None
    told, rival = (_told(here, refit, seed) for refit in (one.refit, other.refit))
    if told is not None and rival is not None and abs(told - rival) > _BY:
        return told > rival
    blurry = completed.blurred(here, seed)
    refit = one.refit
    if blurry is not here:
        refit = (
            structured.fit.on(blurry).relearned if one.name == "single dimensions" else _causes_refit(blurry, one.model)
        )
    return completed.completed(blurry, refit, seed).beats(plainest.completed)


def _told(here: Lessons, refit: Callable[[Tensor], Any], seed: int) -> float | None:
    """The share of known origins that a model finds which was learned from the other half; None where few are known."""
    if here.origins is None:
        return None
    one, other = halves(len(here.queries), seed, here.queries.device)
    return trust.by_labels([(refit(one), other), (refit(other), one)], here, 0.5)


def _moved_by_pairs(here: Lessons, families: Families, best: Contestant, seed: int) -> Contestant | None:
    """A moved space as the known pairs alone show it, if it retrieves them better when they are left out than the
    best so far does, which has learned from them."""
    if families.moved is None or here.origins is None or here.observed is not None:
        return None
    rows = (here.origins >= 0).nonzero().squeeze(1)
    if len(rows) < _enough(here) or len(here.origins[rows].unique()) < 2:
        return None
    jury = Jury(here.patterns, here.queries[rows], here.origins[rows], seed)
    one = with_labels.moved_space(families.moved, jury, seed)
    assert one.judgement is not None
    own = jury.judge([jury.score(best.model, rows) for _, rows in jury.parts])
    return one._replace(refit=None) if one.judgement.worth > own.worth else None


def _enough(here: Lessons) -> int:
    """Known pairs that a map can be learned from."""
    return max(_FEW_PAIRS, (here.patterns.shape[1] + 1) // 2)


def causes_of(here: Lessons, kind: Any, rank: int | None, seed: int, bar: Bar) -> Contestant:
    """Hidden causes, as many as tell most of the origins or as ``rank`` says."""
    stored, every = here.patterns.double(), torch.arange(len(here.queries), device=here.queries.device)
    order = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed)).to(every.device)
    # How many there are is found on some of the queries, and what they are learned from more of them.
    few, most = _some(here), max(_some(here), _TABLE // len(stored))
    rows = every if len(every) <= few else order[:few]
    known = None if here.origins is None else here.origins[rows]
    ranks = correlated.ladder(len(rows), stored.shape[1]) if rank is None else [rank]
    asked = here.queries[rows].double()
    model = correlated.by_information(kind, stored, asked, known, ranks, lambda: bar.advance("hidden causes"))
    if len(every) > few:
        rows = order[:most]
        known = None if here.origins is None else here.origins[rows]
        form = correlated.Form.of(model)
        model = correlated.fit_queries(stored, here.queries[rows].double(), form, _POLISH, model, known)
    model = model.to(here.patterns)
    return Contestant("hidden causes", model, None, _causes_refit(here, model))


def _some(here: Lessons) -> int:
    """Queries that are enough to compare models on."""
    return max(_ENOUGH, _LADDER // len(here.patterns))


def _causes_refit(here: Lessons, model: Any) -> Callable[[Tensor], Any]:
    """Fits the form of a model to some of the queries."""
    stored, form = here.patterns.double(), correlated.Form.of(model)
    most = _some(here)

    def refit(rows: Tensor) -> Any:
        # From where all queries led to: what is there by chance does not stay in every half of them.
        rows, start = rows[:most], copy.deepcopy(model).double()
        known = None if here.origins is None else here.origins[rows]
        return correlated.fit_queries(stored, here.queries[rows].double(), form, 8, start, known).to(here.patterns)

    return refit


def _explains_better(here: Lessons, model: Any, fit: independent.Fit) -> bool:
    """Whether hidden causes explain the queries better than single dimensions, by more than chance."""
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    gain = (model(here.patterns, fit.evidence.queries) + prior).logsumexp(1) - fit.log_evidence()
    return float(gain.mean()) > float(gain.std()) / math.sqrt(len(gain))


def _that_halves_agree_on(here: Lessons, causes: Contestant, fit: independent.Fit, seed: int) -> Contestant | None:
    """Hidden causes, if two halves of the queries agree on the origins as much as under a simpler model; else that one:
    a noise of each dimension's own or one that all share, with heavy tails, or None for single dimensions.

    Where some origins are known, what counts is how many of them each half finds without having learned from them."""
    one, other = halves(len(here.queries), seed, here.queries.device)

    def agreed(refit: Callable[[Tensor], Any] | None) -> float:
        assert refit is not None
        models = [(refit(one), other), (refit(other), one)]
        share = trust.agreement(models[0][0], models[1][0], here.patterns, here.queries)
        told = trust.by_labels(models, here, share)
        return share if told is None else told

    simpler = [_plain_noise(here, type(causes.model), shared) for shared in (False, True)]
    shares = [agreed(refit) for refit in (*(plain.refit for plain in simpler), fit.relearned)]
    own, rival = agreed(causes.refit), max(shares)
    if own >= rival - _BY:
        return causes
    warnings.warn(
        f"{len(here.queries)} queries are too few to be sure of hidden causes: learned from two halves of them, they "
        f"hold for {own:.0%} of the origins, a simpler model for {rival:.0%}; the simpler one is taken, and more "
        "queries, or more known origins, would tell",
        UserWarning,
        stacklevel=7,
    )
    return [*simpler, None][shares.index(rival)]


def _plain_noise(here: Lessons, kind: Any, shared: bool) -> Contestant:
    form = correlated.Form(kind, 0, shared_noise=shared)
    most = _some(here)

    def refit(rows: Tensor) -> Any:
        rows = rows[:most]
        known = None if here.origins is None else here.origins[rows]
        asked = here.queries[rows].double()
        return correlated.fit_queries(here.patterns.double(), asked, form, 15, None, known).to(here.patterns)

    every = torch.arange(len(here.queries), device=here.queries.device)
    return Contestant("one noise for all" if shared else "a noise for each", refit(every), None, refit)


def _may_be_moved(here: Lessons, families: Families) -> bool:
    """Whether there is enough to find a moved space by, and queries tell little of their origins without one."""
    known = 0 if here.origins is None else int((here.origins >= 0).sum())
    if here.observed is not None or min(here.queries.shape[1], len(here.patterns), len(here.queries)) < _FEW_DIMENSIONS:
        return False
    many = min(len(here.patterns), len(here.queries)) >= _MANY_ITEMS
    if known < _FEW_PAIRS and not many:
        return False
    # However sure a model is: many queries that lie no nearer to one pattern than by chance tell little.
    return (many and not alignment.lands(here.patterns, here.queries)) or _tell_little(here, families)


def _tell_little(here: Lessons, families: Families) -> bool:
    """Whether a rough model of values as they are is not sure of the origins."""
    asked = here.queries[:: max(1, len(here.queries) // 256)]
    stored, form = here.patterns.double(), correlated.Form(families.correlated, 0)
    rough = correlated.fit_queries(stored, asked.double(), form, 10, None)
    told = correlated.mutual_information(rough(stored, asked.double()))
    return told < _TOLD * math.log(min(len(asked), len(stored)))


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

    some = torch.arange(len(here.queries), device=here.queries.device)[:: max(1, len(here.queries) // 256)]
    seen = None if here.observed is None else here.observed[some]
    scores = model.by_regime(here.patterns, here.queries[some], seen) + model.log_rho
    log_beta = math.log(floor.trust(model, cells, some, scores, torch.Generator().manual_seed(seed)))
    one = Contestant("a floor", model, None, refit, log_beta)
    return Outcome(one, [one.trial], report.converged, report.iterations)


def _found_moved(here: Lessons, families: Families, seed: int) -> Outcome:
    model, report = moved.learn(here, families.moved, seed)
    one = Contestant("a moved space", model.to(here.patterns), None, None)
    return Outcome(one, [one.trial], report.converged, report.iterations)
