"""The family of plain metrics: what anyone would try first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor

from ahop.similarity.families import completed
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.family import Family, register
from ahop.similarity.families.nearest.learning import RECIPES, Pairs, distance, fit_queries, named
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation

# Fewer queries have no halves to compare metrics on; queries x patterns that one is learned from.
_FEWEST, _TABLE = 8, 2**20
# Standard errors by which the cosine must explain queries better than the distances do, and the fewest dimensions that
# have directions worth comparing without lengths.
_CLEARLY, _DIRECTIONS = 3.0, 4


def plain_distance(data: TrainingData, validation: CrossValidation | None = None) -> Candidate:
    """The nearest pattern by plain distance, at the temperature that labelled pairs ask for."""

    def again(data: TrainingData) -> Refit:
        def refit(rows: Tensor) -> Nearest:
            some = data.part(rows)
            pairs = Pairs(some.queries, some.means[some.origins], some.zero)
            return distance(pairs, some.observed).to(some.patterns)

        return refit

    refit = again(data)
    held_out = None if validation is None else validation.evaluate(refit)
    return Candidate(named("", "distance"), refit(data.rows), data, again, held_out, complexity=PlainMetrics.complexity)


@register
class PlainMetrics(Family):
    """Distance, L1 and cosine of rows as they are, centred and standardised: what anyone would try first."""

    name = "plain metrics"
    complexity = 10
    plain = True

    def applies(self, data: TrainingData, seed: int) -> bool:
        return data.same_width and len(data.queries) >= _FEWEST

    def fit(self, data: TrainingData, seed: int) -> Nearest:
        """The distance from pairs, or the best of all from queries."""
        one = plain_distance(data) if data.labelled else self.without_labels(data, seed, lambda _: None)
        model = one.model
        assert isinstance(model, Nearest)
        return model

    def without_labels(
        self, data: TrainingData, seed: int, advance: Callable[[str], None], leader: Completed | None = None
    ) -> Candidate:
        """The metric under which held-out queries and their origins are likeliest."""
        blurry = completed.blurred(data, seed)
        found = {}
        for alignment, metric in RECIPES:
            if metric != "cosine" or (data.observed is None and data.patterns.shape[1] >= _DIRECTIONS):
                again = partial(_of_queries, alignment, metric)
                found[alignment, metric] = again, completed.completed(blurry, again(blurry), seed)
        distances, cosines = (
            [one for one in found if (one[1] == "cosine") == directions] for directions in (False, True)
        )
        best = max(distances, key=lambda one: found[one][1].mean)
        # The density of lengths may fit by itself, whatever directions say of the origins.
        other = max(cosines, key=lambda one: found[one][1].mean, default=best)
        best = other if found[other][1].beats(found[best][1], _CLEARLY) else best
        again = found[best][0]
        return Candidate(named(*best), again(data)(data.rows), data, again, completed=found[best][1])


def _of_queries(alignment: str, metric: str, data: TrainingData) -> Refit:
    most = max(64, _TABLE // len(data.patterns))
    return lambda rows: fit_queries(data.part(rows[:most]), alignment, metric)
