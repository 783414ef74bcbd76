"""Screen what anyone would try first: plain metrics, whitening and ridge, of rows seen in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.learning.corruption import plain
from ahop.learning.corruption.contest import Contestant
from ahop.learning.corruption.held_out import Judgement, Jury
from ahop.learning.corruption.lessons import Families, Lessons
from ahop.learning.corruption.views import View

# How many of them, at most, are worth a judgement by the whole jury.
_FINALISTS = 4


class Candidate(NamedTuple):
    """A plain model of rows seen in one way, what the small jury says of it, and how it is fitted to some pairs."""

    name: str
    view: View
    judgement: Judgement
    fit: Callable[[plain.Pairs], Any]

    @property
    def promise(self) -> float:
        """The mean log posterior of origins left out."""
        return float(self.judgement.log_posterior.mean())

    def contestant(self, here: Lessons, jury: Jury, against: Judgement | None) -> Contestant:
        """The same before the whole jury."""
        seen = jury.seen(self.view.of)
        zero = _zero(here, self.view)

        def refit(rows: Tensor) -> Any:
            return self.fit(_pairs(seen, rows, zero)).to(here.patterns)

        every = torch.arange(len(jury.queries), device=jury.queries.device)
        return Contestant(self.name, refit(every), seen.each(refit, against), refit).seen(self.view)


def screened(here: Lessons, families: Families, views: list[View], seed: int) -> list[Candidate]:
    """All plain candidates, the most promising first; of those that are level, the simplest."""
    assert here.origins is not None
    small = Jury(here.patterns, here.queries, here.origins, seed, screening=True)
    found = [one for view in views for one in _of_view(here, families, small, view)]
    return sorted(found, key=lambda one: -round(one.promise, 2))


def finalists(candidates: list[Candidate]) -> list[Candidate]:
    """The most promising, and the most promising of rows as they are, which has the fewest ways to be lucky."""
    plainest = next(one for one in candidates if not one.view.name)
    return [plainest, *(one for one in candidates[:_FINALISTS] if one is not plainest)]


def _of_view(here: Lessons, families: Families, small: Jury, view: View) -> Iterator[Candidate]:
    seen, zero = small.seen(view.of), _zero(here, view)
    for fit in _fits(here, families, view):
        scores: dict[str, list[Tensor]] = {}
        for learn, rows in seen.parts:
            for name, model in fit(_pairs(seen, learn, zero)).items():
                scores.setdefault(name, []).append(seen.score(model, rows))
        for name, table in scores.items():

            def one(pairs: plain.Pairs, name: str = name, fit: Callable[..., dict[str, Any]] = fit) -> Any:
                return fit(pairs)[name]

            yield Candidate(name, view, seen.judge(table), one)


def _fits(here: Lessons, families: Families, view: View) -> Iterator[Callable[[plain.Pairs], dict[str, Any]]]:
    same_width = here.queries.shape[1] == here.patterns.shape[1]
    if families.nearest is not None and same_width:
        for alignment, metric in plain.RECIPES:
            yield partial(plain.metric, families.nearest, alignment, metric)
    if families.correlated is not None and same_width:
        yield partial(plain.whitening, families.correlated)
    if families.nearest is not None and not view.name:
        yield partial(plain.ridges, families.nearest)


def _pairs(jury: Jury, rows: Tensor, zero: float) -> plain.Pairs:
    return plain.Pairs(jury.queries[rows], jury.patterns[jury.origins[rows]], zero)


def _zero(here: Lessons, view: View) -> float:
    """Where values of nought lie, as far as they still lie anywhere."""
    return 0.0 if view.name else here.zero


def promising_views(candidates: list[Candidate]) -> list[View]:
    """Rows as they are, and the way to look at them in which the plain candidates do best, if clearly better there."""
    best = candidates[0]
    plainest = next(one for one in candidates if not one.view.name)
    return [plainest.view, best.view] if best.judgement.surer_than(plainest.judgement) else [plainest.view]
