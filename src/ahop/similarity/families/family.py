"""The contract of a family of corruptions, and the registry of all of them.

A family is a kind of likelihood together with how it is learned. One that registers itself takes part in every fit: it
is learned where it applies, compared with the others, saved and reported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

import torch

from ahop._blocks import split
from ahop._precision import Units
from ahop._registry import Registry
from ahop.learning.report import FitReport
from ahop.similarity.density import Density
from ahop.similarity.families import stand_ins
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.recipe import Recipe
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, CrossValidation, HeldOut
from ahop.similarity.families.views import View

Kind = TypeVar("Kind", bound="type[Family]")


class Family(ABC):
    """One kind of corruption that a fit can choose.

    A new one answers four questions: what it is called (``name``), which likelihoods it makes (``models``), whether it
    applies to the data at hand (:meth:`applies`), and how it is learned (:meth:`fit`). What queries of no stored
    pattern look like is a question to the likelihood (:meth:`ahop.similarity.Density.stranger`). The other methods
    have defaults, for a family that knows a shorter way.

    Attributes:
        name: What reports and progress call it.
        models: The classes of its likelihoods; their own ``fit`` is then that of the family.
        complexity: Families are tried from the simplest to the richest, and the simpler of two that are level is taken.
        plain: Whether it is what anyone would try first: with labels, its :meth:`recipes` are screened in every view.
        settles: Whether it is looked for first without labels; a :class:`Candidate` that settles then leaves no choice.
        maps: Whether queries may have another number of dimensions than patterns.
        slow: Whether it takes so long that it is tried last, without labels or of many values, to be given up where it
            is clearly behind.
        takes_missing: Whether values of queries may be missing.
        frugal: Whether pairs of one pattern teach it enough to be taken where nothing can be left out to choose by.
        steady_after: From how many queries on a stream goes on from its model (:meth:`follow`); one that has seen fewer
            is learned anew.
    """

    name: ClassVar[str]
    models: ClassVar[tuple[type[Density], ...]] = ()
    complexity: ClassVar[int] = 50
    plain: ClassVar[bool] = False
    settles: ClassVar[bool] = False
    maps: ClassVar[bool] = False
    slow: ClassVar[bool] = False
    takes_missing: ClassVar[bool] = False
    frugal: ClassVar[bool] = False
    steady_after: ClassVar[int] = 256

    @abstractmethod
    def applies(self, data: TrainingData, seed: int) -> bool:
        """Whether the data speak for it, by a test of its own; what that costs, every fit pays."""

    @abstractmethod
    def fit(self, data: TrainingData, seed: int) -> Density:
        """Learn from queries of which all, some or no origins are known."""

    @property
    def takes_spread(self) -> bool:
        """Whether patterns may scatter, as all of its likelihoods say."""
        return bool(self.models) and all(model.takes_spread for model in self.models)

    def of_causes(self, count: int) -> Family | None:
        """The same where it was said how many hidden causes there are, 0 for none; None where that rules it out."""
        return None

    def sees(self, view: View) -> bool:
        """Whether it may be learned from rows that are seen in this way; by default, from rows as they are alone."""
        return view.plain

    def recipes(self, data: TrainingData, view: View) -> Iterable[Recipe]:
        """Plain models to screen where all origins are known, of rows that are seen in this way, simplest first."""
        return ()

    def relearner(self, data: TrainingData, seed: int) -> Refit:
        """What learns again from some of the queries, for cross-validation."""
        return lambda rows: self.fit(data.part(rows), seed)

    def with_labels(
        self, data: TrainingData, validation: CrossValidation, leader: HeldOut | None, seed: int
    ) -> Candidate | None:
        """The best that it can do where all origins are known, cross-validated; None where it cannot after all.

        Args:
            data: What there is to learn from.
            validation: The folds, of the same data.
            leader: What is to be beaten: one that is clearly worse after a few folds is given up.
            seed: For what is drawn.
        """
        refit = self.relearner(data, seed)
        return Candidate(self.name, self.fit(data, seed), data, self._again(seed), validation.evaluate(refit, leader))

    def without_labels(
        self, data: TrainingData, seed: int, advance: Callable[[str], None], leader: Completed | None = None
    ) -> Candidate | None:
        """The best that it can do where few origins are known or none; None where it cannot after all.

        Args:
            data: What there is to learn from.
            seed: For what is drawn.
            advance: Shows progress, with what is being tried.
            leader: What is to be beaten; one that is clearly worse may be left unfinished.
        """
        return self.unvalidated(data, seed)

    def unvalidated(self, data: TrainingData, seed: int) -> Candidate:
        """What it learns from all queries, with nothing held out to compare it by."""
        return Candidate(self.name, self.fit(data, seed), data, self._again(seed))

    def from_known_pairs(self, data: TrainingData, seed: int) -> Candidate | None:
        """What the few known pairs alone show, cross-validated on them; None where it needs the other queries too."""
        return None

    def _again(self, seed: int) -> Callable[[TrainingData], Refit]:
        return lambda data: self.relearner(data, seed)

    def owns(self, model: Density) -> bool:
        """Whether a model is one of its own."""
        return isinstance(model, self.models)

    def follow(self, model: Density, data: TrainingData) -> Density | None:
        """A few steps from a model to what the last queries of a stream say; None where it has to be learned anew."""
        return None

    def anew(self) -> list[Family]:
        """The families to choose from where a stream that it was found in is learned anew; all, by default."""
        return known_families()

    def alone(self, model: Density, data: TrainingData, seed: int) -> tuple[Density, FitReport]:
        """Learn nothing but this family, of the size that ``model`` has: what ``model.fit`` does.

        Args:
            model: A likelihood of this family, of the size to fit.
            data: What to learn from.
            seed: Seed of what is drawn.

        Returns:
            The fitted likelihood, and a report of the fit.
        """
        units = Units.of(data.patterns, data.queries if data.same_width else None)
        measured = data.measured(units)
        found = self.fit(measured, seed)
        loss = evidence(measured, found) + data.log_density_of(units)
        return units.leave(found), FitReport("em", loss, 0, converged=True)


FAMILIES: Registry[Family] = Registry("family")


def known_families(causes: int | None = None) -> list[Family]:
    """The families to choose from, simplest first: all of them, or those that can be meant where it was said how many
    hidden causes there are."""
    known = sorted(FAMILIES.values(), key=lambda family: family.complexity)
    return known if causes is None else [one for family in known if (one := family.of_causes(causes)) is not None]


def family_of(model: Density) -> Family | None:
    """The family that a model is of; None where no family has made it."""
    return next((family for family in FAMILIES.values() if family.owns(model)), None)


def with_simplest(families: Sequence[Family]) -> list[Family]:
    """The same and the simplest family of all, for few queries: what they cannot tell must not make a memory worse."""
    simplest = min(FAMILIES.values(), key=lambda family: family.complexity)
    return list(families) if simplest in families else [simplest, *families]


def register(kind: Kind) -> Kind:
    """Let a family take part in every fit from now on."""
    if not isinstance(getattr(kind, "name", None), str):
        raise TypeError(f"family {kind.__name__} must have a name, as in name = 'a gain'")
    family = kind()
    FAMILIES.add(family.name, family, kind)
    for model in family.models:
        model.learner = family
    return kind


def evidence(data: TrainingData, model: Density) -> float:
    """The mean of minus the log evidence of some queries."""
    some = stand_ins.of(data.part(data.rows[:: max(1, len(data.queries) // 512)]), model).data
    values = []
    for part in split(len(some.queries), 2 * len(some.patterns) * some.queries.element_size()):
        few = some.part(part)
        values.append((model(few.patterns, few.queries, few.observed) + few.log_priors).logsumexp(-1))
    return -float(torch.cat(values).mean())
