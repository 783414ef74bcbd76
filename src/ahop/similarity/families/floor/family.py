"""The family of corruptions of values that are often at a floor."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ahop.learning.report import FitReport
from ahop.similarity.density import Density
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.family import Family, register
from ahop.similarity.families.floor import learning
from ahop.similarity.families.floor.learning import Cells
from ahop.similarity.families.floor.model import Floor
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation, HeldOut
from ahop.similarity.families.views import View

# Queries x patterns that a model is learned from again, and queries that tell how sure it is to be.
_MAX_SCORES, _CALIBRATION_QUERIES = 2**20, 256


@register
class AtFloor(Family):
    """Many values at a floor. Without labels that is a fact and no choice: one value has no density."""

    name = "a floor"
    models = (Floor,)
    complexity = 40
    settles = True
    takes_missing = True

    def applies(self, data: TrainingData, seed: int) -> bool:
        return data.same_width and learning.has_floor(data)

    def sees(self, view: View) -> bool:
        return True

    def fit(self, data: TrainingData, seed: int) -> Floor:
        return learning.learn(data, seed)[0]

    def with_labels(
        self, data: TrainingData, validation: CrossValidation, leader: HeldOut | None, seed: int
    ) -> Candidate:
        model, held_out = learning.by_retrieval(validation)

        def again(other: TrainingData) -> Refit:
            cells = _cells(other)
            return lambda rows: learning.fit_pairs(cells, rows, other.all_origins[rows], model.regimes)

        return Candidate(self.name, model, data, again, held_out)

    def without_labels(
        self, data: TrainingData, seed: int, advance: Callable[[str], None], leader: Completed | None = None
    ) -> Candidate:
        model, report = learning.learn(data, seed)

        def again(other: TrainingData) -> Refit:
            cells, most, priors = _cells(other), max(64, _MAX_SCORES // len(other.patterns)), other.log_priors

            def refit(rows: Tensor) -> Floor:
                rows = rows[:most]
                return learning.fit_queries(cells, rows, other.all_origins[rows], priors, model.regimes, seed)

            return refit

        some = data.rows[:: max(1, len(data.queries) // _CALIBRATION_QUERIES)]
        asked = data.part(some)
        scores = model.by_regime(asked.patterns, asked.queries, asked.observed) + model.log_rho
        trust = learning.trust(model, _cells(data), some, scores, torch.Generator().manual_seed(seed))
        return Candidate(
            self.name,
            model,
            data,
            again,
            log_beta=math.log(trust),
            settles=True,
            converged=report.converged,
            iterations=report.iterations,
        )

    def alone(self, model: Density, data: TrainingData, seed: int) -> tuple[Density, FitReport]:
        return learning.learn(data, seed)


def _cells(data: TrainingData) -> Cells:
    return Cells(learning.begin(data.patterns, data.queries, data.observed), data.patterns, data.queries, data.observed)
