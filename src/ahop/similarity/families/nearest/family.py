"""The family of plain metrics: what anyone would try first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ahop.similarity.density import Density
from ahop.similarity.families import completed
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.family import Family, known_families, register
from ahop.similarity.families.nearest.learning import distance, fit_queries
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.nearest.recipes import DISTANCE, METRICS, RIDGES, Metric, Whitening
from ahop.similarity.families.recipe import Pairs, Recipe
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation
from ahop.similarity.families.views import View

# Fewer queries have no halves to compare metrics on; queries x patterns that one is learned from.
_MIN_QUERIES, _MAX_SCORES = 8, 2**20
# Standard errors by which the cosine must explain queries better than the distances do, and the fewest dimensions that
# have directions worth comparing without lengths.
_MIN_STANDARD_ERRORS, _MIN_DIMENSIONS = 3.0, 4


def plain_distance(data: TrainingData, validation: CrossValidation | None = None) -> Candidate:
    """The nearest pattern by plain distance, at the temperature that labelled pairs ask for."""

    def again(data: TrainingData) -> Refit:
        return lambda rows: distance(Pairs.of(data.part(rows))).to(data.patterns)

    refit = again(data)
    held_out = None if validation is None else validation.evaluate(refit)
    return Candidate(DISTANCE.name, refit(data.rows), data, again, held_out, complexity=PlainMetrics.complexity)


@register
class PlainMetrics(Family):
    """Distance, L1 and cosine of rows as they are, centred and standardised: what anyone would try first."""

    name = "plain metrics"
    complexity = 10
    plain = True

    def applies(self, data: TrainingData, seed: int) -> bool:
        return data.same_width and len(data.queries) >= _MIN_QUERIES

    def recipes(self, data: TrainingData, view: View) -> Iterator[Recipe]:
        if data.same_width:
            yield from (one for one in METRICS if data.observed is None or not one.directional)
        if data.observed is not None:
            # What follows takes complete rows.
            return
        if data.same_width:
            yield Whitening()
        if view.plain:
            yield from RIDGES

    def owns(self, model: Density) -> bool:
        # Which learns nothing by itself: nobody has said which metrics to choose from.
        return isinstance(model, Nearest)

    def anew(self) -> list[Family]:
        """Single dimensions, which few queries may teach: they were too few for more than a metric."""
        return known_families(causes=0)

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
        directions = data.observed is None and data.patterns.shape[1] >= _MIN_DIMENSIONS
        found = {
            one: completed.completed(blurry, _of_queries(one, blurry), seed)
            for one in METRICS
            if directions or not one.directional
        }
        best = max((one for one in found if not one.directional), key=lambda one: found[one].mean)
        # The density of lengths may fit by itself, whatever directions say of the origins.
        other = max((one for one in found if one.directional), key=lambda one: found[one].mean, default=best)
        best = other if found[other].beats(found[best], _MIN_STANDARD_ERRORS) else best
        again = partial(_of_queries, best)
        return Candidate(best.name, again(data)(data.rows), data, again, completed=found[best])


def _of_queries(metric: Metric, data: TrainingData) -> Refit:
    most = max(64, _MAX_SCORES // len(data.patterns))
    return lambda rows: fit_queries(data.part(rows[:most]), metric)
