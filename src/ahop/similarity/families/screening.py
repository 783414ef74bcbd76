"""Screen what anyone would try first: plain metrics, whitening and ridge, of rows seen in every way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

from ahop.similarity.density import Density
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.family import Family
from ahop.similarity.families.recipe import Pairs, Recipe
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation, HeldOut
from ahop.similarity.families.views import View, views_of

# How many of them, at most, are worth all folds.
_FINALISTS = 4


class Screened(NamedTuple):
    """A plain model of rows seen in one way, and what a few folds say of it."""

    recipe: Recipe
    view: View
    held_out: HeldOut

    @property
    def promise(self) -> float:
        """The mean log posterior of origins left out."""
        return float(self.held_out.log_posterior.mean())

    def candidate(self, data: TrainingData, validation: CrossValidation, against: HeldOut | None) -> Candidate:
        """The candidate, cross-validated on all folds rather than on the few of the screening.

        Args:
            data: What to learn from.
            validation: The folds.
            against: Results of another model, to stop early where this one is clearly worse.
        """
        recipe = self.recipe

        def again(data: TrainingData) -> Refit:
            def refit(rows: Tensor) -> Density:
                return recipe.fit(Pairs.of(data.part(rows))).to(data.patterns)

            return refit

        shown = self.view.show(data)
        refit = again(shown)
        held_out = validation.through(self.view.show).evaluate(refit, against)
        one = Candidate(
            recipe.name,
            refit(data.rows),
            shown,
            again,
            held_out,
            rests_on_map=recipe.mapped,
            complexity=recipe.complexity,
        )
        return one.seen_through(self.view, data)


def screened(data: TrainingData, families: Sequence[Family], seed: int) -> list[Screened]:
    """All plain candidates, the most promising first; of equally promising ones, the simplest.

    Args:
        data: What to learn from.
        families: The families whose recipes are screened.
        seed: Seed of the folds.
    """
    small = CrossValidation(data, seed, screening=True)
    found = [one for view in views_of(data) for one in _of_view(small, families, view)]
    return sorted(found, key=_by_promise, reverse=True)


def _by_promise(one: Screened) -> float:
    """Promise, as far as it counts: of candidates that are level to two digits, the first is taken, the simplest."""
    return round(one.promise, 2)


def finalists(candidates: list[Screened]) -> list[Screened]:
    """The most promising, and the most promising of rows as they are, which has the fewest ways to be lucky."""
    plainest = next(one for one in candidates if one.view.plain)
    return [plainest, *(one for one in candidates[:_FINALISTS] if one is not plainest)]


def _of_view(small: CrossValidation, families: Sequence[Family], view: View) -> Iterator[Screened]:
    viewed = small.through(view.show)
    # Recipes share what they make of the same pairs.
    folds = [(Pairs.of(viewed.data.part(learn)), rows) for learn, rows in viewed.parts]
    for family in families:
        for recipe in family.recipes(viewed.data, view):
            scores = [viewed.score(recipe.fit(pairs), rows) for pairs, rows in folds]
            yield Screened(recipe, view, viewed.result(scores))


def promising_views(candidates: list[Screened]) -> list[View]:
    """Rows as they are, and the way to look at them in which the plain candidates do best, if clearly better there."""
    best = max(candidates, key=_by_promise)
    plainest = next(one for one in candidates if one.view.plain)
    return [plainest.view, best.view] if best.held_out.surer_than(plainest.held_out) else [plainest.view]
