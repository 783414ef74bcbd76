"""The family of corruptions in which a few hidden causes move many dimensions at once."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ahop._precision import Units
from ahop._warnings import warn
from ahop.learning.holdout import halves
from ahop.learning.report import FitReport
from ahop.similarity.density import Density
from ahop.similarity.families import calibration, residuals
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.correlated import learning
from ahop.similarity.families.correlated.learning import Form
from ahop.similarity.families.correlated.model import Correlated
from ahop.similarity.families.family import Family, evidence, known_families, register
from ahop.similarity.families.floor.learning import has_floor
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation, HeldOut
from ahop.similarity.families.views import View

# Queries x patterns that hidden causes are learned from, and that their number is found on; and steps from there.
_MAX_SCORES, _MAX_RANK_SCORES, _LAST_STEPS = 2**23, 2**21, 6
# Queries that their number is found on, at least.
_MIN_RANK_QUERIES = 384
# Steps of a model without hidden causes, and of one that is learned again from some queries.
_PLAIN_STEPS, _REFIT_STEPS = 15, 8
# Halves of the queries veto hidden causes if they agree on so many fewer origins than those of a simpler model.
_MAX_AGREEMENT_LOSS = 0.03


@register
class HiddenCauses(Family):
    """Hidden causes, as many as ``rank`` says or as retrieve best."""

    name = "hidden causes"
    models = (Correlated,)
    complexity = 50
    steady_after = 0

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank

    def applies(self, data: TrainingData, seed: int) -> bool:
        """Whether residuals are more correlated than they would be if every dimension had been hit by itself.

        One value that comes again and again has no density: with a floor, hidden causes would be mistaken.
        """
        if self.rank is not None:
            return True
        if not data.same_width or has_floor(data):
            return False
        return residuals.are_correlated(data.gaps if data.labelled else _likely_gaps(data), seed)

    def sees(self, view: View) -> bool:
        return True

    def fit(self, data: TrainingData, seed: int) -> Correlated:
        if not data.labelled:
            return self._learned(data, seed, lambda _: None)
        small = CrossValidation(data, seed, screening=True)
        return _pairs(data, data.rows, learning.by_retrieval(small, self.rank))

    def with_labels(
        self, data: TrainingData, validation: CrossValidation, leader: HeldOut | None, seed: int
    ) -> Candidate:
        """Their number and form are found on a few folds, and validated on all."""
        small = CrossValidation(data, seed, screening=True)
        form = learning.by_retrieval(small, self.rank)
        refit = _from_pairs(data, form)
        held_out = validation.evaluate(refit, leader)
        return Candidate(self.name, refit(data.rows), data, lambda other: _from_pairs(other, form), held_out)

    def without_labels(
        self, data: TrainingData, seed: int, advance: Callable[[str], None], leader: Completed | None = None
    ) -> Candidate:
        """As many as tell most of the origins; a model without any where two halves of the queries do not agree."""
        model = self._learned(data, seed, advance)

        def again(other: TrainingData) -> Refit:
            refit = _from_queries(other, model)
            # Beside other patterns it begins from what all queries say of those, as it did beside its own.
            return refit if other.patterns.equal(data.patterns) else _from_queries(other, refit(other.rows))

        one = Candidate(self.name, model, data, again)
        return one if self.rank is not None else _agreed(data, one, seed)

    def _learned(self, data: TrainingData, seed: int, advance: Callable[[str], None]) -> Correlated:
        order = torch.randperm(len(data.queries), generator=torch.Generator().manual_seed(seed)).to(data.rows.device)
        # How many there are is found on some of the queries, and what they are learned from more of them.
        few, most = _some(data), max(_some(data), _MAX_SCORES // len(data.patterns))
        some = data if len(order) <= few else data.part(order[:few])
        ranks = learning.ladder(*some.queries.shape) if self.rank is None else [self.rank]
        stored, asked, prior = data.patterns, some.queries.double(), data.log_prior
        model = learning.by_information(stored, asked, some.origins, prior, ranks, lambda: advance(self.name))
        if len(order) > few:
            more, form = data.part(order[:most]), Form.of(model)
            model = learning.fit_queries(stored, more.queries.double(), form, _LAST_STEPS, model, more.origins, prior)
        if data.scattered:
            # Where covariances differ, tails decide between patterns, and not only how sure to be.
            form = replace(Form.of(model), tails=math.inf)
            normal = learning.fit_queries(stored, asked, form, _PLAIN_STEPS, model, some.origins, prior)
            model = min(model, normal, key=lambda one: evidence(some, one))
        return model.to(data.patterns)

    def of_causes(self, count: int) -> HiddenCauses | None:
        return HiddenCauses(count) if count else None

    def anew(self) -> list[Family]:
        """Single dimensions alone, which is quick."""
        return known_families(causes=0)

    def follow(self, model: Density, data: TrainingData) -> Density:
        if data.observed is not None:
            raise ValueError("observed must be None: this memory has hidden causes, and learns from complete queries")
        assert isinstance(model, Correlated)
        found = learning.follow(model, data.patterns, data.queries.double(), data.origins)
        return found.to(data.patterns)

    def alone(self, model: Density, data: TrainingData, seed: int) -> tuple[Density, FitReport]:
        """As many hidden causes as the model has; with labels, at the temperature of cross-validation."""
        if data.observed is not None:
            raise ValueError("observed must be None: hidden causes are learned from complete queries")
        assert isinstance(model, Correlated)
        units = Units.of(data.patterns, data.queries)
        measured, family = data.measured(units), HiddenCauses(model.rank)
        if measured.labelled:
            one = family.with_labels(measured, CrossValidation(measured, seed), None, seed)
            assert one.held_out is not None and isinstance(one.model, Correlated)
            found = one.model
            found.log_beta.fill_(one.held_out.log_beta)
        else:
            found = family.fit(measured, seed)
        loss = evidence(measured, found) + data.log_density_of(units)
        return units.leave(found), FitReport("em", loss, 0, converged=True)


def _some(data: TrainingData) -> int:
    """Queries that are enough to compare models on."""
    return max(_MIN_RANK_QUERIES, _MAX_RANK_SCORES // len(data.patterns))


def _likely_gaps(data: TrainingData) -> Tensor:
    """What the likeliest patterns of some queries leave unexplained, ``(m, d)``."""
    some = data.part(data.rows[: _some(data)])
    model = _plain_noise(data, shared=False)(data.rows)
    nearest = calibration.first_choices(model, some)
    nearest = torch.where(some.all_origins < 0, nearest, some.all_origins)
    return some.queries - some.means[nearest]


def _from_pairs(data: TrainingData, form: Form) -> Refit:
    """Learns one form from labelled pairs."""

    return lambda rows: _pairs(data, rows, form)


def _pairs(data: TrainingData, rows: Tensor, form: Form) -> Correlated:
    some = data.part(rows)
    return learning.fit_pairs(some.queries.double(), some.patterns[some.origins].double(), form).to(data.patterns)


def _from_queries(data: TrainingData, model: Correlated) -> Callable[[Tensor], Correlated]:
    """Learns the form of a model from queries alone."""
    stored, form, most = data.patterns, Form.of(model), _some(data)

    def refit(rows: Tensor) -> Correlated:
        # From where all queries led to: what is there by chance does not stay in every half of them.
        some, start = data.part(rows[:most]), copy.deepcopy(model).double()
        asked = some.queries.double()
        found = learning.fit_queries(stored, asked, form, _REFIT_STEPS, start, some.origins, data.log_prior)
        return found.to(data.patterns)

    return refit


def _plain_noise(data: TrainingData, shared: bool) -> Refit:
    """Learns noise without hidden causes: of each dimension's own, or one that all share."""
    stored, form, most = data.patterns, Form(shared_noise=shared), _some(data)

    def refit(rows: Tensor) -> Correlated:
        some = data.part(rows[:most])
        asked = some.queries.double()
        found = learning.fit_queries(stored, asked, form, _PLAIN_STEPS, None, some.origins, data.log_prior)
        return found.to(data.patterns)

    return refit


def _agreed(data: TrainingData, causes: Candidate, seed: int) -> Candidate:
    """Hidden causes, if two halves of the queries agree on the origins as much as without them; else without.

    Where some origins are known, what counts is how many of them each half finds without having learned from them."""
    one, other = halves(len(data.queries), seed, data.queries.device)

    def agreement(candidate: Candidate) -> float:
        assert candidate.refit is not None
        of_one, of_other = candidate.refit(one), candidate.refit(other)
        share = calibration.agreement(of_one, of_other, data)
        judged = calibration.by_labels([(of_one, other), (of_other, one)], data)
        return share if judged is None else judged.bound(share)

    simpler = [
        Candidate(name, _plain_noise(data, shared)(data.rows), data, partial(_plain_noise, shared=shared))
        for name, shared in (("a noise for each", False), ("one noise for all", True))
    ]
    shares = [agreement(candidate) for candidate in simpler]
    own, rival = agreement(causes), max(shares)
    if own >= rival - _MAX_AGREEMENT_LOSS:
        return causes
    warn(
        f"{len(data.queries)} queries are too few to be sure of hidden causes: models of two halves of them agree on "
        f"{own:.0%} of the origins, simpler models on {rival:.0%}; the simpler one is taken. More queries, or "
        "more known origins, would settle it"
    )
    return simpler[shares.index(rival)]
