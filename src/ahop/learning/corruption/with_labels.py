"""Choose a kind of model where origins are known: every kind is fitted, and one jury compares what they retrieve."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ahop._progress import Bar
from ahop.learning.corruption import correlated, floor, independent, moved, richer
from ahop.learning.corruption.contest import Contestant, Outcome
from ahop.learning.corruption.held_out import Judgement, Jury
from ahop.learning.corruption.lessons import Families, Lessons

# The log odds of what does not happen.
_NEVER = -14.0


def choose(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> Outcome:
    """The kind of model that retrieves best, judged by one jury; a richer one has to be better by more than chance."""
    assert here.origins is not None
    several = len(here.origins.unique()) > 1
    whole, same_width = here.observed is None, here.queries.shape[1] == here.patterns.shape[1]
    jury = Jury(here.patterns, here.queries, here.origins, seed) if whole and (several or causes) else None
    contestants: list[Contestant] = []
    converged, iterations = True, 1
    if same_width and not causes:
        bar.advance("single dimensions")
        fit = richer.refined(independent.from_pairs(independent.Problem(here, families, seed)))
        judgement = None if jury is None else jury.each(fit.relearned)
        contestants.append(Contestant("single dimensions", fit.similarity(), judgement, fit.relearned))
        if jury is not None and judgement is not None:
            plain = _plain_noise(families.independent, jury)
            assert plain.judgement is not None
            # First is what the others have to beat.
            contestants.insert(0 if plain.judgement.surer_than(judgement) else 1, plain)
        converged, iterations = fit.report().converged, fit.report().iterations
        # What single dimensions leave unexplained says where to look.
        if jury is not None and causes is None:
            if not fit.leaves_causes(seed):
                families = replace(families, correlated=None, transformed=None)
            if not fit.leaves_a_map(seed):
                families = replace(families, moved=None)
    if jury is not None and causes != 0:
        contestants += _richer(here, families, causes, jury, seed, bar)
    best = contestants[0]
    for one in contestants[1:]:
        if best.judgement is None or (one.judgement is not None and one.judgement.beats(best.judgement)):
            best = one
    tried = [one.trial for one in contestants if one.judgement is not None]
    return Outcome(best, tried, converged or best is not contestants[0], iterations)


def _plain_noise(kind: Any, jury: Jury) -> Contestant:
    """A shift of each dimension, one width of noise, and nothing lost: what the nearest pattern goes by.

    It has few ways to be wrong, where more is learned than the kinds of models can say.
    """

    def refit(rows: Tensor) -> Any:
        gaps = jury.queries[rows] - jury.patterns[jury.origins[rows]]
        model = kind(gaps.shape[1]).to(gaps)
        model.bias.copy_(gaps.mean(0))
        model.log_sigma.fill_(math.log(max(1e-3, float((gaps - model.bias).square().mean().sqrt()))))
        model.mask_logits.fill_(_NEVER)
        return model

    return Contestant("plain noise", refit(torch.arange(len(jury.queries))), jury.each(refit), refit)


def _richer(here: Lessons, families: Families, causes: int | None, jury: Jury, seed: int, bar: Bar) -> list[Contestant]:
    """Kinds of models beyond single dimensions, each judged."""
    same_width = here.queries.shape[1] == here.patterns.shape[1]
    if causes:
        return [causes_of(here, families.correlated, causes, jury)]
    if families.floor is not None and same_width and floor.has_floor(here):
        bar.advance("a floor")
        # One value that comes again and again has no density: what follows would be mistaken.
        return [_floored(families.floor, jury)]
    found: list[Contestant] = []
    if families.correlated is not None and same_width:
        bar.advance("hidden causes")
        found.append(causes_of(here, families.correlated, None, jury))
    # Fewer pairs than that say nothing of a map between so many dimensions.
    if families.moved is not None and (not same_width or 2 * len(here.queries) >= here.patterns.shape[1] > 1):
        bar.advance("a moved space")
        found.append(moved_space(families.moved, jury, seed))
    if families.transformed is not None and families.correlated is not None and same_width:
        bar.advance("other scales")
        found += _other_scales(here, families, jury, found, seed)
    return found


def causes_of(here: Lessons, kind: Any, rank: int | None, jury: Jury) -> Contestant:
    """Hidden causes, as many as retrieve best or as ``rank`` says."""
    form, judgement = correlated.by_retrieval(jury, kind, rank)

    def refit(rows: Tensor) -> Any:
        return correlated.fit_rows(jury, rows, form).to(here.patterns)

    return Contestant("hidden causes", refit(torch.arange(len(jury.queries))), judgement, refit)


def _floored(kind: Any, jury: Jury) -> Contestant:
    model, judgement = floor.by_retrieval(jury, kind)
    cells = floor.Cells(floor.begin(kind, jury.patterns, jury.queries), jury.patterns, jury.queries, None)
    regimes = len(model.log_rho)
    return Contestant(
        "a floor", model, judgement, lambda rows: floor.fit_pairs(cells, rows, jury.origins[rows], regimes)
    )


def moved_space(kind: Any, jury: Jury, seed: int) -> Contestant:
    """A map to another space, by what was chosen in a hurry or by plain regression, as the jury likes."""
    every = torch.arange(len(jury.queries), device=jury.queries.device)

    def judged(choice: moved.Choice) -> Contestant:
        def refit(rows: Tensor) -> Any:
            return moved.fit_pairs(jury.patterns, jury.queries[rows], jury.origins[rows], kind, seed, choice)

        return Contestant("a moved space", refit(every), jury.each(refit), refit)

    # The second is better where pairs are many.
    choices = {moved.choose(jury.patterns, jury.queries, jury.origins, seed), moved.Choice("nothing", 0.1)}
    tried = [judged(choice) for choice in sorted(choices)]
    return max(tried, key=lambda one: float(one.judgement.log_posterior.mean()) if one.judgement else 0.0)


def _other_scales(
    here: Lessons, families: Families, jury: Jury, found: list[Contestant], seed: int
) -> list[Contestant]:
    """Models of values in the scale that promises most, if it promises more than values as they are."""
    lowest = min(float(rows.min()) for rows in (here.patterns, here.queries))
    form = correlated.Form(families.correlated, found[0].model.rank)
    best: tuple[Any, Judgement] | None = None
    plain = families.independent(here.patterns.shape[1])
    for scale in ("as it is", "logarithm", "square root", "rank"):
        for own_scale in (False, True):
            if scale == "as it is" and not own_scale:
                continue
            seen = families.transformed(plain, scale, own_scale, low=lowest)
            other = jury.seen(seen.view)
            judgement = correlated.judged(other, form)
            if best is None or judgement.log_posterior.mean() > best[1].log_posterior.mean():
                best = seen, judgement
    assert best is not None and found[0].judgement is not None
    if not best[1].beats(found[0].judgement):
        return []
    seen, other = best[0], jury.seen(best[0].view)
    there = replace(here, patterns=other.patterns, queries=other.queries)
    fit = richer.refined(independent.from_pairs(independent.Problem(there, families, seed)))
    plain = Contestant("single dimensions", fit.similarity(), other.each(fit.relearned), fit.relearned)
    return [
        _wrapped(one, families.transformed, seen) for one in (plain, causes_of(there, families.correlated, None, other))
    ]


def _wrapped(one: Contestant, kind: Any, seen: Any) -> Contestant:
    """A kind of model of values in another scale."""
    refit = one.refit
    assert refit is not None

    def wrap(model: Any) -> Any:
        return kind(model, seen.scale, seen.own_scale, seen.low, seen.unit)

    name = f"{one.name}, {seen.scale}{', own scale' * seen.own_scale}"
    return Contestant(name, wrap(one.model), one.judgement, lambda rows: wrap(refit(rows)))
