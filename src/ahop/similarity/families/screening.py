"""Screen what anyone would try first: plain metrics, whitening and ridge, of rows seen in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from torch import Tensor

from ahop.similarity.density import Density
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.nearest import learning as plain
from ahop.similarity.families.nearest.family import PlainMetrics
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation, HeldOut
from ahop.similarity.families.views import View, views_of

# How many of them, at most, are worth all folds.
_FINALISTS = 4
# Ridge regression gives way to a moved space that is level: that knows its noise, and adapts queries.
_MAPPED = 70


class Screened(NamedTuple):
    """A plain model of rows seen in one way, what a few folds say of it, and how it is fitted to some pairs."""

    name: str
    view: View
    held_out: HeldOut
    fit: Callable[[plain.Pairs], Density]

    @property
    def promise(self) -> float:
        """The mean log posterior of origins left out."""
        return float(self.held_out.log_posterior.mean())

    def candidate(self, data: TrainingData, validation: CrossValidation, against: HeldOut | None) -> Candidate:
        """The same before the whole validation."""
        zero = _zero(data, self.view)

        def again(data: TrainingData) -> Refit:
            def refit(rows: Tensor) -> Density:
                some = data.part(rows)
                pairs = plain.Pairs(some.queries, some.patterns[some.origins], zero, some.observed)
                return self.fit(pairs).to(data.patterns)

            return refit

        shown = self.view.show(data)
        refit = again(shown)
        model = refit(data.rows)
        mapped = isinstance(model, Nearest) and model.mapped
        held_out = validation.through(self.view.of).evaluate(refit, against)
        one = Candidate(
            self.name,
            model,
            shown,
            again,
            held_out,
            rests_on_map=mapped,
            complexity=_MAPPED if mapped else PlainMetrics.complexity,
        )
        return one.seen_through(self.view, data)


def screened(data: TrainingData, seed: int) -> list[Screened]:
    """All plain candidates, the most promising first; of those that are level, the simplest."""
    assert data.origins is not None
    small = CrossValidation(data.patterns, data.queries, data.origins, seed, observed=data.observed, screening=True)
    found = [one for view in views_of(data) for one in _of_view(data, small, view)]
    return sorted(found, key=lambda one: -round(one.promise, 2))


def finalists(candidates: list[Screened]) -> list[Screened]:
    """The most promising, and the most promising of rows as they are, which has the fewest ways to be lucky."""
    plainest = next(one for one in candidates if one.view.plain)
    return [plainest, *(one for one in candidates[:_FINALISTS] if one is not plainest)]


def _of_view(data: TrainingData, small: CrossValidation, view: View) -> Iterator[Screened]:
    viewed, zero = small.through(view.of), _zero(data, view)
    for fit in _fits(data, view):
        scores: dict[str, list[Tensor]] = {}
        for learn, rows in viewed.parts:
            for name, model in fit(_pairs(viewed, learn, zero)).items():
                scores.setdefault(name, []).append(viewed.score(model, rows))
        for name, table in scores.items():

            def one(pairs: plain.Pairs, name: str = name, fit: Callable[..., dict[str, Density]] = fit) -> Density:
                return fit(pairs)[name]

            yield Screened(name, view, viewed.result(table), one)


def _fits(data: TrainingData, view: View) -> Iterator[Callable[[plain.Pairs], dict[str, Density]]]:
    if data.same_width:
        for alignment, metric in plain.RECIPES:
            if data.observed is None or metric != "cosine":
                yield partial(plain.metric, alignment, metric)
    if data.observed is not None:
        # What follows takes whole rows.
        return
    if data.same_width:
        yield plain.whitening
    if view.plain:
        yield plain.ridges


def _pairs(validation: CrossValidation, rows: Tensor, zero: float) -> plain.Pairs:
    observed = None if validation.observed is None else validation.observed[rows]
    return plain.Pairs(validation.queries[rows], validation.patterns[validation.origins[rows]], zero, observed)


def _zero(data: TrainingData, view: View) -> float:
    """Where values of nought lie, as far as they still lie anywhere."""
    return data.zero if view.plain else 0.0


def promising_views(candidates: list[Screened]) -> list[View]:
    """Rows as they are, and the way to look at them in which the plain candidates do best, if clearly better there."""
    best = candidates[0]
    plainest = next(one for one in candidates if one.view.plain)
    return [plainest.view, best.view] if best.held_out.surer_than(plainest.held_out) else [plainest.view]
