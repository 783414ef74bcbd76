"""Choose a family where origins are known: every one that applies is learned, and cross-validation compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ahop._progress import Bar
from ahop.similarity.families import screening
from ahop.similarity.families.candidate import Candidate, Outcome
from ahop.similarity.families.family import Family
from ahop.similarity.families.nearest.family import plain_distance
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation, HeldOut, corrected
from ahop.similarity.families.views import View

# Utility that is too little to prefer a richer model for.
_UTILITY_TOLERANCE = 2e-3
# So few pairs can choose nothing, and so few hardly.
MIN_PAIRS, _FEW_PAIRS = 8, 20
# Of more values than this, what takes long is tried last: it is skipped where nothing can be better any more.
_MANY_VALUES = 2**17


def choose(data: TrainingData, families: Sequence[Family], seed: int, bar: Bar) -> Outcome:
    """The model that retrieves best: from what anyone would try first to the richest that the pairs ask for.

    Args:
        data: Queries and their origins.
        families: The families to choose from.
        seed: Seed of what is drawn.
        bar: Shows what is being learned.
    """
    if data.same_width and data.complete_count < MIN_PAIRS:
        one = plain_distance(data)
        return Outcome(one, [one.trial])
    if len(data.all_origins.unique()) < 2:
        # Nothing can be left out to choose by.
        one = _without_validation(data, families, seed, bar)
        return Outcome(one, [])
    comparison = Comparison(CrossValidation(data, seed))
    if data.same_width and comparison.few:
        # Nothing that few pairs say is to make it worse than a memory that has learned nothing.
        comparison.add(plain_distance(data, comparison.validation))
    views = _screen(comparison, data, families, seed, bar)
    ordered = sorted(families, key=lambda family: family.slow) if data.queries.numel() > _MANY_VALUES else families
    for view in views:
        shown, validation = view.show(data), comparison.validation.through(view.show)
        for family in ordered:
            if comparison.decided or family.plain or not family.sees(view):
                continue
            if data.observed is not None and not family.takes_missing:
                continue
            if (family.maps or data.same_width) and family.applies(shown, seed):
                bar.advance(view.named(family.name))
                learned = family.with_labels(shown, validation, comparison.leader, seed)
                if learned is not None:
                    comparison.add(replace(learned, complexity=family.complexity).seen_through(view, data))
    return comparison.outcome(seed)


def _without_validation(data: TrainingData, families: Sequence[Family], seed: int, bar: Bar) -> Candidate:
    """A family that learns from little; or the simplest that is asked for."""
    family = next((one for one in families if one.frugal), min(families, key=lambda one: one.complexity))
    bar.advance(family.name)
    return family.unvalidated(data, seed)


def _screen(comparison: Comparison, data: TrainingData, families: Sequence[Family], seed: int, bar: Bar) -> list[View]:
    """Enter the best of what anyone would try first, of rows seen in every way; the ways that richer ones may go."""
    if not any(family.plain for family in families):
        return [View()]
    bar.advance("plain metrics")
    screened = screening.screened(data, families, seed)
    for one in screening.finalists(screened):
        comparison.add(one.candidate(data, comparison.validation, comparison.leader))
    return screening.promising_views(screened)


class Comparison:
    """Candidates on the folds of one cross-validation."""

    def __init__(self, validation: CrossValidation) -> None:
        self.validation = validation
        self.candidates: list[Candidate] = []

    def add(self, one: Candidate) -> None:
        self.candidates.append(one)

    @property
    def leader(self) -> HeldOut | None:
        """The result to beat: one that is clearly behind it need not run to the end."""
        return self.best().held_out if self.candidates else None

    @property
    def few(self) -> bool:
        """Whether so few pairs are held out that a choice goes by chance."""
        return sum(len(rows) for _, rows in self.validation.parts) < _FEW_PAIRS

    @property
    def decided(self) -> bool:
        """Whether nothing can be better: all that was held out was found, and surely.

        Ridge regression alone decides nothing: it says that there is a map, which a moved space knows more of.
        """
        best = self.best() if self.candidates else None
        return best is not None and _utility(best) > 1 - _UTILITY_TOLERANCE and not best.rests_on_map

    def best(self) -> Candidate:
        """The one of most utility; the simplest of those that are level, as few pairs leave them sooner."""
        finished = sorted(self._finished(), key=lambda one: one.complexity)
        most = max(finished, key=_utility)
        assert most.held_out is not None
        level = max(_UTILITY_TOLERANCE, most.held_out.error) if self.few else _UTILITY_TOLERANCE
        return next(one for one in finished if _utility(one) >= _utility(most) - level)

    def _finished(self) -> list[Candidate]:
        """Those that were not given up."""
        length = max(_count(one) for one in self.candidates)
        return [one for one in self.candidates if _count(one) == length]

    def outcome(self, seed: int) -> Outcome:
        """The best, validated once more beside all patterns, and how often it should be right."""
        best, finished = self.best(), self._finished()
        assert best.held_out is not None and best.refit is not None
        lucky = best.held_out.accuracy - corrected([one.held_out for one in finished if one.held_out], seed)
        if best.beside_all is not None:
            best = replace(best, held_out=best.beside_all)
        elif best.refit is not None and len(self.validation.rivals) < len(self.validation.data.patterns):
            best = replace(best, held_out=self.validation.against_all().evaluate(best.refit))
        assert best.held_out is not None
        expected = min(1.0, max(0.0, best.held_out.accuracy - max(0.0, lucky)))
        return Outcome(best, [one.trial for one in self.candidates], expected)


def _utility(one: Candidate) -> float:
    assert one.held_out is not None
    return one.held_out.utility


def _count(one: Candidate) -> int:
    assert one.held_out is not None
    return len(one.held_out.right)
