"""The family of corruptions that hit every dimension by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ahop._precision import Units
from ahop.learning.report import FitReport
from ahop.similarity.density import Density
from ahop.similarity.families import completed, residuals
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.family import Family, known_families, register
from ahop.similarity.families.independent import learning, refinement
from ahop.similarity.families.independent.learning import Fit, Problem
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.families.independent.regimes import Regimes
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation, HeldOut
from ahop.similarity.families.views import View

# Values of queries from which on a refinement takes so long that it should have a chance.
_SLOW_REFINEMENT_VALUES = 2**15
# Standard errors by which one is so far behind without refinements that none will help.
_HOPELESS_STANDARD_ERRORS = 6.0


@register
class Independent(Family):
    """Single dimensions: values that are lost, scaled, shifted and noisy, in one way or, by ``regimes``, in several."""

    name = "single dimensions"
    models = (Likelihood, Regimes)
    complexity = 20
    takes_missing = True
    frugal = True
    slow = True

    def __init__(self, regimes: bool = True) -> None:
        self.regimes = regimes

    def applies(self, data: TrainingData, seed: int) -> bool:
        return data.same_width

    def sees(self, view: View) -> bool:
        """Not through derivatives, in which noise of single dimensions is of single dimensions no more."""
        return view.keeps_dimensions

    def fit(self, data: TrainingData, seed: int) -> Likelihood | Regimes:
        return self._fit(data, seed).similarity()

    def _fit(self, data: TrainingData, seed: int, advance: Callable[[str], None] = lambda _: None) -> Fit:
        problem = Problem(data, seed, self.regimes)
        if data.labelled:
            return refinement.refined(learning.from_pairs(problem))
        fit, runner_up = learning.from_queries(problem, lambda: advance(self.name))
        return refinement.of_either_start(refinement.refined(fit), runner_up)

    def _candidate(self, fit: Fit, data: TrainingData, held_out: HeldOut | None = None) -> Candidate:
        def again(other: TrainingData) -> Refit:
            return fit.relearned if other is data else fit.on(other).learned_anew

        report = fit.report()
        return Candidate(
            self.name,
            fit.similarity(),
            data,
            again,
            held_out,
            converged=report.converged,
            iterations=report.iterations,
        )

    def with_labels(
        self, data: TrainingData, validation: CrossValidation, leader: HeldOut | None, seed: int
    ) -> Candidate:
        """With all refinements, unless residuals are correlated and it is clearly behind with the first of them."""
        rough = learning.from_pairs(Problem(data, seed, self.regimes))
        slow = data.queries.numel() > _SLOW_REFINEMENT_VALUES
        if leader is not None and slow and residuals.are_correlated(data.gaps, seed):
            fit = refinement.refined(rough, first=True)
            held_out = validation.evaluate(fit.relearned, leader)
            if held_out.hopeless(leader):
                return self._candidate(fit, data, held_out)
        fit = refinement.refined(rough)
        return self._candidate(fit, data, validation.evaluate(fit.relearned, leader))

    def without_labels(
        self, data: TrainingData, seed: int, advance: Callable[[str], None], leader: Completed | None = None
    ) -> Candidate:
        """With all refinements, unless it is clearly behind without them."""
        fit, runner_up = learning.from_queries(Problem(data, seed, self.regimes), lambda: advance(self.name))
        if leader is not None:
            blurry = completed.blurred(data, seed)
            ours = completed.completed(blurry, fit.on(blurry).relearned, seed)
            if leader.beats(ours, _HOPELESS_STANDARD_ERRORS):
                return replace(self._candidate(fit, data), completed=ours)
        return self._candidate(refinement.of_either_start(refinement.refined(fit), runner_up), data)

    def unvalidated(self, data: TrainingData, seed: int) -> Candidate:
        return self._candidate(self._fit(data, seed), data)

    def of_causes(self, count: int) -> Independent | None:
        return None if count else self

    def anew(self) -> list[Family]:
        return known_families(causes=0)

    def follow(self, model: Density, data: TrainingData) -> Density:
        return learning.followed(Problem(data, 0, self.regimes), model).similarity()

    def alone(self, model: Density, data: TrainingData, seed: int) -> tuple[Density, FitReport]:
        units = Units.of(data.patterns, data.queries)
        several = isinstance(model, Regimes)
        fit = Independent(several)._fit(data.measured(units), seed)
        found, report = fit.similarity(), fit.report()
        if several and not isinstance(found, Regimes):
            found = Regimes([found]).to(found.bias)
        return units.leave(found), report.shifted(data.log_density_of(units))
