"""The family of corruptions that move a whole space: another instrument, another embedding model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from ahop._precision import Units
from ahop._warnings import warn
from ahop.learning.report import FitReport
from ahop.similarity.density import Density
from ahop.similarity.families import calibration, residuals
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.correlated import learning as correlated
from ahop.similarity.families.family import Family, evidence, register
from ahop.similarity.families.floor.learning import has_floor
from ahop.similarity.families.moved import alignment, bending, learning, rounds
from ahop.similarity.families.moved.bent import Bent
from ahop.similarity.families.moved.learning import Choice, Target
from ahop.similarity.families.moved.model import Moved
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation, HeldOut

# It is looked for when queries tell less than this share of what there is to know of their origins.
_LOW_INFORMATION_SHARE = 0.5
# It takes so many queries and patterns, or pairs, and dimensions.
_MANY_ITEMS, _FEW_PAIRS, _FEW_DIMENSIONS = 1500, 8, 8
# What a map that was found expects of itself is worth so many labels, unless they refute it: on five pairs of models it
# was right to within .07, as some fifty labels would tell; a fifth of that, since five are few.
_PRIOR_LABELS = 10
# Regression that anyone would try.
_PLAIN = Choice(Target.NOTHING, 0.1)


@register
class MovedSpace(Family):
    """A map between two spaces, straight or bent, and correlated noise."""

    name = "a moved space"
    models = (Moved, Bent)
    complexity = 60
    settles = True
    maps = True

    def applies(self, data: TrainingData, seed: int) -> bool:
        if not data.same_width:
            return True
        if has_floor(data):
            return False
        return _speak_for_one(data, seed) if data.labelled else _may_be_found(data)

    def fit(self, data: TrainingData, seed: int) -> Density:
        if data.labelled:
            return _from_pairs(data, seed, None)
        return rounds.learn(data.patterns, data.queries, data.all_origins, seed).model

    def with_labels(
        self, data: TrainingData, validation: CrossValidation, leader: HeldOut | None, seed: int
    ) -> Candidate:
        """By plain regression or, unless that is hopeless, by what pairs held out like best, straight or bent.

        Between rows of unequal width it is never hopeless: there, only a map can be ahead of it.
        """
        assert data.origins is not None

        def tried(choice: Choice) -> Candidate:
            def again(other: TrainingData) -> Refit:
                return lambda rows: _from_pairs(other.part(rows), seed, choice)

            held_out = validation.evaluate(again(data), leader)
            return Candidate(self.name, again(data)(data.rows), data, again, held_out)

        straight = tried(_PLAIN)
        found = [straight]
        if leader is None or not data.same_width or not _held_out(straight).hopeless(leader):
            choice = learning.choose(data.patterns, data.queries, data.origins, seed)
            found.append(tried(choice))
            if len(data.origins.unique()) >= bending.FEWEST:
                found.append(_bent(data, validation, seed, choice))
        return max(found, key=lambda one: (len(_held_out(one).right), _held_out(one).utility))

    def without_labels(
        self, data: TrainingData, seed: int, advance: Callable[[str], None], leader: Completed | None = None
    ) -> Candidate:
        found = rounds.learn(data.patterns, data.queries, data.all_origins, seed)
        log_beta = 0.0
        if found.start.found and found.judged is not None:
            # What labels say of those that were left out bounds how sure to be; what they refute is worth nothing.
            believed = found.judged.beats_chance(len(data.patterns)) and found.judged.bears_out(found.expected)
            bound = found.judged.bound(found.expected, _PRIOR_LABELS if believed else 1)
            log_beta = calibration.no_surer_than(bound, found.model, data, 0.0)
        return Candidate(
            self.name,
            found.model,
            data,
            log_beta=log_beta,
            settles=found.start.found,
            found=found.start.found,
            expected=found.expected if found.judged is None else found.judged.accuracy,
            warning="" if found.start.found else _not_found(data),
        )

    def from_known_pairs(self, data: TrainingData, seed: int) -> Candidate | None:
        known = data.part(data.known)
        if len(known.queries) < _enough(data) or len(known.all_origins.unique()) < 2 or has_floor(data):
            return None
        folds = CrossValidation(known, seed)
        found = self.with_labels(known, folds, None, seed)
        beside_all = found.beside_all
        if beside_all is None and found.refit is not None and len(folds.rivals) < len(known.patterns):
            # Few pairs are told from all patterns, not from some.
            beside_all = folds.against_all().evaluate(found.refit)
        expected = math.nan if beside_all is None else beside_all.accuracy
        return replace(found, data=data, again=None, beside_all=beside_all, expected=expected)

    def alone(self, model: Density, data: TrainingData, seed: int) -> tuple[Density, FitReport]:
        """The map and its noise; one was found if queries land on patterns more closely than by chance.

        Without any origins, some 1,500 queries and as many patterns are needed; ten origins among them help a lot.
        """
        if data.observed is not None:
            raise ValueError("observed must be None: a moved space is learned from complete queries")
        units = Units.of(data.patterns, data.queries if data.same_width else None)
        measured, found = data.measured(units), True
        learned: Density
        if data.labelled and isinstance(model, Bent):
            if len(data.all_origins.unique()) < bending.FEWEST:
                raise ValueError(f"origins must include at least {bending.FEWEST} patterns to learn a bent map")
            learned = _bent(measured, CrossValidation(measured, seed), seed).model
        elif data.labelled:
            learned = _from_pairs(measured, seed, None)
        else:
            bent, start, *_ = rounds.learn(measured.patterns, measured.queries, measured.all_origins, seed)
            learned, found = bent if isinstance(model, Bent) else bent.straight, start.found
        if not found:
            warn(_not_found(data))
        loss = evidence(measured, learned) + data.log_density_of(units)
        return units.leave(learned), FitReport("em", loss, 0, converged=True, found=found)


def _not_found(data: TrainingData) -> str:
    return (
        f"no map from the patterns to the {len(data.queries)} queries was found that is better than chance, so "
        f"answers mean nothing; it takes about {_MANY_ITEMS:,} queries and patterns and a map that is nearly linear, "
        f"or at least {_enough(data)} queries whose origins are known"
    )


def _held_out(one: Candidate) -> HeldOut:
    assert one.held_out is not None
    return one.held_out


def _bent(data: TrainingData, validation: CrossValidation, seed: int, choice: Choice | None = None) -> Candidate:
    """A bent map, validated by maps and weights that have learned from all pairs of other folds."""
    patterns, queries, origins = data.patterns, data.queries, data.all_origins
    shape = bending.choose(patterns, queries, origins, seed)
    folds = [(queries[rows], origins[rows]) for _, rows in validation.parts]
    pairs = bending.Pairs.of(patterns, queries, origins, seed, shape)
    weighed = bending.weigh(pairs, folds, seed, validation.rivals)
    weights, scores = weighed.weights, weighed.apart()
    model = pairs.every(weights)
    model.straight = _from_pairs(data, seed, choice)

    def again(other: TrainingData) -> Refit:
        def refit(rows: Tensor) -> Density:
            known = other.all_origins[rows]
            return bending.Pairs.of(other.patterns, other.queries[rows], known, seed, shape).every(weights)

        return refit

    held_out, beside_all = (
        validation.result([table[:, columns] for table in scores])
        for columns in (slice(1 + len(validation.rivals)), slice(None))
    )
    return Candidate("a bent map", model, data, again, held_out, beside_all=beside_all)


def _from_pairs(data: TrainingData, seed: int, choice: Choice | None) -> Moved:
    assert data.origins is not None
    return learning.fit_pairs(data.patterns, data.queries, data.origins, seed, choice)


def _enough(data: TrainingData) -> int:
    """Known pairs that a map can be learned from."""
    return max(_FEW_PAIRS, (data.patterns.shape[1] + 1) // 2)


def _speak_for_one(data: TrainingData, seed: int) -> bool:
    """Whether pairs are enough to say anything of a map between so many dimensions, and what they leave goes with the
    pattern."""
    enough = 2 * len(data.queries) >= data.patterns.shape[1] > 1
    return enough and residuals.go_with(data.gaps, data.patterns[data.origins], seed)


def _may_be_found(data: TrainingData) -> bool:
    """Whether there is enough to find a moved space by, and queries tell little of their origins without one."""
    if min(data.queries.shape[1], len(data.patterns), len(data.queries)) < _FEW_DIMENSIONS:
        return False
    many = min(len(data.patterns), len(data.queries)) >= _MANY_ITEMS
    if len(data.known) < _FEW_PAIRS and not many:
        return False
    # However sure a model is: many queries that lie no nearer to one pattern than by chance tell little.
    return (many and not alignment.lands(data.patterns, data.queries)) or _tell_little(data)


def _tell_little(data: TrainingData) -> bool:
    """Whether a rough model of values as they are is not sure of the origins."""
    asked = data.queries[:: max(1, len(data.queries) // 256)].double()
    stored = data.patterns
    rough = correlated.fit_queries(stored, asked, correlated.Form(), 10, None)
    information = correlated.mutual_information(rough, stored, asked)
    return information < _LOW_INFORMATION_SHARE * math.log(min(len(asked), len(stored)))
