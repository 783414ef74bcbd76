"""Choose a kind of model where origins are known: every kind is fitted, and one jury compares what they retrieve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ahop._progress import Bar
from ahop.learning.corruption import correlated, floor, independent, moved, plain, residuals, richer, screening
from ahop.learning.corruption.contest import Contestant, Outcome
from ahop.learning.corruption.held_out import Judgement, Jury, corrected
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.corruption.views import View, views_of

# Worth that is too little to prefer a richer model for.
_LEVEL = 2e-3
# Values of queries from which on a refinement takes so long that it should have a chance.
_LONG = 2**15
# So few pairs can choose nothing, and so few hardly.
FEWEST, _FEW = 8, 20


def choose(here: Lessons, families: Families, causes: int | None, seed: int, bar: Bar) -> Outcome:
    """The kind of model that retrieves best, judged by one jury: from what anyone would try first to the richest."""
    assert here.origins is not None
    several = len(here.origins.unique()) > 1
    same_width = here.queries.shape[1] == here.patterns.shape[1]
    if families.nearest is not None and same_width and not causes and len(here.queries) < FEWEST:
        one = plain_distance(here, families)
        return Outcome(one, [one.trial])
    if here.observed is not None or not (several or causes):
        # Nothing can be left out to choose by.
        bar.advance("single dimensions")
        fit = _refined(here, families, seed)
        one = Contestant("single dimensions", fit.similarity(), None, fit.relearned)
        return Outcome(one, [], fit.report().converged, fit.report().iterations)
    jury = Jury(here.patterns, here.queries, here.origins, seed)
    if causes:
        one = causes_of(here, families.correlated, causes, jury, seed)
        return Outcome(one, [one.trial])
    race = Race(jury)
    if families.nearest is not None and same_width and race.few:
        # Nothing that few pairs say is to make it worse than a memory that has learned nothing.
        race.enter(plain_distance(here, families, jury))
    views = _enter_plain(race, here, families, seed, bar) if causes is None else [View()]
    for view in views if same_width else []:
        if not race.decided:
            _enter_structured(race, here, families, causes, view, seed, bar)
    if causes is None and not race.decided and _may_be_moved(here, families, same_width, seed):
        bar.advance("a moved space")
        race.enter(moved_space(families.moved, jury, seed, race.ahead), first=True)
    return race.outcome(seed)


def _refined(here: Lessons, families: Families, seed: int) -> independent.Fit:
    return richer.refined(independent.from_pairs(independent.Problem(here, families, seed)))


class Race:
    """Kinds of models before one jury. The simpler they are, the earlier they stand."""

    def __init__(self, jury: Jury) -> None:
        self.jury = jury
        self.contestants: list[Contestant] = []

    def enter(self, one: Contestant, *, first: bool = False) -> None:
        self.contestants.insert(0 if first else len(self.contestants), one)

    @property
    def ahead(self) -> Judgement | None:
        """The judgement to beat: one that is hopelessly behind it need not run to the end."""
        return None if not self.contestants else self.best().judgement

    @property
    def few(self) -> bool:
        """Whether so few are judged that a choice goes by chance."""
        return sum(len(rows) for _, rows in self.jury.parts) < _FEW

    @property
    def decided(self) -> bool:
        """Whether nothing can be of more worth: all that was left out was found, and surely.

        Ridge regression alone decides nothing: it says that there is a map, which a moved space knows more of.
        """
        best = self.best() if self.contestants else None
        return best is not None and _worth(best) > 1 - _LEVEL and not getattr(best.model, "mapped", False)

    def best(self) -> Contestant:
        """The one of most worth; the simpler of two that are level, as few pairs leave them sooner."""
        runners = self._runners()
        most = max(runners, key=_worth)
        assert most.judgement is not None
        level = max(_LEVEL, most.judgement.error) if self.few else _LEVEL
        return next(one for one in runners if _worth(one) >= _worth(most) - level)

    def _runners(self) -> list[Contestant]:
        """Those that ran to the end."""
        length = max(_judged(one) for one in self.contestants)
        return [one for one in self.contestants if _judged(one) == length]

    def outcome(self, seed: int) -> Outcome:
        """The best, judged once more beside all patterns, and how often it should be right."""
        best, runners = self.best(), self._runners()
        assert best.judgement is not None and best.refit is not None
        lucky = best.judgement.accuracy - corrected([one.judgement for one in runners if one.judgement], seed)
        if len(self.jury.rivals) < len(self.jury.patterns):
            best = best._replace(judgement=self.jury.against_all().each(best.refit))
        assert best.judgement is not None
        expected = min(1.0, max(0.0, best.judgement.accuracy - max(0.0, lucky)))
        return Outcome(best, [one.trial for one in self.contestants], expected=expected)


def _worth(one: Contestant) -> float:
    assert one.judgement is not None
    return one.judgement.worth


def _judged(one: Contestant) -> int:
    assert one.judgement is not None
    return len(one.judgement.right)


def plain_distance(here: Lessons, families: Families, jury: Jury | None = None) -> Contestant:
    """The nearest pattern by plain distance, at the temperature that the pairs ask for."""

    def refit(rows: Tensor) -> Any:
        assert here.origins is not None
        pairs = plain.Pairs(here.queries[rows], here.patterns[here.origins[rows]], here.zero)
        seen = None if here.observed is None else here.observed[rows]
        return plain.distance(families.nearest, pairs, seen).to(here.patterns)

    every = torch.arange(len(here.queries), device=here.queries.device)
    return Contestant("distance", refit(every), None if jury is None else jury.each(refit), refit)


def _enter_plain(race: Race, here: Lessons, families: Families, seed: int, bar: Bar) -> list[View]:
    """What anyone would try first, of rows seen in every way worth a try; the ways that richer models may go."""
    if families.nearest is None:
        return [View()]
    bar.advance("plain metrics")
    candidates = screening.screened(here, families, views_of(here, families), seed)
    for one in screening.finalists(candidates):
        race.enter(one.contestant(here, race.jury, race.ahead))
    return screening.promising_views(candidates)


def _enter_structured(
    race: Race, here: Lessons, families: Families, causes: int | None, view: View, seed: int, bar: Bar
) -> None:
    """Likelihoods of single dimensions, of a floor, and of hidden causes, where the pairs ask for them."""
    jury = race.jury.seen(view.of)
    there = here.seen(view)
    if view.keeps_dimensions:
        bar.advance(view.named("single dimensions"))
        one = _single_dimensions(there, families, jury, race.ahead, seed)
        race.enter(one.seen(view), first=not view.name and not race.few)
    if causes is not None:
        return
    if families.floor is not None and floor.has_floor(there):
        bar.advance(view.named("a floor"))
        # One value that comes again and again has no density: hidden causes would be mistaken.
        race.enter(_floored(families.floor, jury).seen(view))
    elif families.correlated is not None and residuals.are_correlated(_gaps(there), seed):
        bar.advance(view.named("hidden causes"))
        race.enter(causes_of(there, families.correlated, None, jury, seed, race.ahead).seen(view))


def _single_dimensions(here: Lessons, families: Families, jury: Jury, ahead: Judgement | None, seed: int) -> Contestant:
    """With all refinements, unless residuals are correlated and it is hopeless with the first of them."""
    rough = independent.from_pairs(independent.Problem(here, families, seed))
    if ahead is not None and here.queries.numel() > _LONG and residuals.are_correlated(_gaps(here), seed):
        fit = richer.refined(rough, first=True)
        judgement = jury.each(fit.relearned, ahead)
        if judgement.hopeless(ahead):
            return Contestant("single dimensions", fit.similarity(), judgement, fit.relearned)
    fit = richer.refined(rough)
    return Contestant("single dimensions", fit.similarity(), jury.each(fit.relearned, ahead), fit.relearned)


def _gaps(here: Lessons) -> Tensor:
    """What the pairs leave unexplained, ``(n, d)``."""
    return here.queries - here.patterns[here.origins]


def _may_be_moved(here: Lessons, families: Families, same_width: bool, seed: int) -> bool:
    """Whether pairs are enough to say anything of a map between so many dimensions, and speak for one."""
    if families.moved is None or not same_width:
        return families.moved is not None
    if families.floor is not None and floor.has_floor(here):
        return False
    return 2 * len(here.queries) >= here.patterns.shape[1] > 1 and residuals.go_with(
        _gaps(here), here.patterns[here.origins], seed
    )


def causes_of(
    here: Lessons, kind: Any, rank: int | None, jury: Jury, seed: int, against: Judgement | None = None
) -> Contestant:
    """Hidden causes, as many as retrieve best or as ``rank`` says."""
    assert here.origins is not None
    small = Jury(here.patterns, here.queries, here.origins, seed, screening=True)
    form = correlated.by_retrieval(small, kind, rank)

    def refit(rows: Tensor) -> Any:
        return correlated.fit_rows(jury, rows, form).to(here.patterns)

    every = torch.arange(len(jury.queries), device=jury.queries.device)
    return Contestant("hidden causes", refit(every), correlated.judged(jury, form, against), refit)


def _floored(kind: Any, jury: Jury) -> Contestant:
    model, judgement = floor.by_retrieval(jury, kind)
    cells = floor.Cells(floor.begin(kind, jury.patterns, jury.queries), jury.patterns, jury.queries, None)
    regimes = len(model.log_rho)
    return Contestant(
        "a floor", model, judgement, lambda rows: floor.fit_pairs(cells, rows, jury.origins[rows], regimes)
    )


def moved_space(kind: Any, jury: Jury, seed: int, against: Judgement | None = None) -> Contestant:
    """A map to another space: by plain regression or, unless that is hopeless, by what pairs left out like best."""
    every = torch.arange(len(jury.queries), device=jury.queries.device)

    def judged(choice: moved.Choice) -> tuple[Judgement, Callable[[Tensor], Any]]:
        def refit(rows: Tensor) -> Any:
            return moved.fit_pairs(jury.patterns, jury.queries[rows], jury.origins[rows], kind, seed, choice)

        return jury.each(refit, against), refit

    tried = [judged(moved.Choice("nothing", 0.1))]
    if against is None or not tried[0][0].hopeless(against):
        tried.append(judged(moved.choose(jury.patterns, jury.queries, jury.origins, seed)))
    judgement, refit = max(tried, key=lambda one: (len(one[0].right), one[0].worth))
    return Contestant("a moved space", refit(every), judgement, refit)
