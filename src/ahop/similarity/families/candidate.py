"""A model that may be chosen, and what came of the choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from ahop.learning.report import Trial
from ahop.similarity.density import Density
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed, HeldOut
from ahop.similarity.families.views import View

# Learns from some of the queries ``(m,)``.
Refit = Callable[[Tensor], Density]


@dataclass(frozen=True)
class Candidate:
    """A likelihood that was learned from all queries, and how to learn it again from some of them.

    Attributes:
        name: What reports call it.
        model: The likelihood.
        data: What it was learned from.
        again: Makes of such data what learns from some of their queries; None where nothing can be left out.
        held_out: How well it retrieves origins that were left out, where all are known.
        beside_all: The same beside all patterns, where learning it has found that on the way.
        completed: How well it explains queries that were left out, where they are not.
        log_beta: The log of an inverse temperature that learning it has found on the way.
        settles: Whether nothing else need be tried: it is a fact of the data, not a choice.
        rests_on_map: Whether it is a map between spaces, which a richer one may know better.
        complexity: As that of its family.
        converged: Whether learning came to an end.
        found: Whether what was looked for is there; nobody knows how often answers are right if it is not.
        expected: How often its first choice should be right, where learning it has found that on the way.
        iterations: How many steps the last run of it took; 0 where nobody counted.
        warning: What its user should hear if it is chosen.
        anew: Learns its family from the beginning, from data of which more origins are known, where few are.
    """

    name: str
    model: Density
    data: TrainingData
    again: Callable[[TrainingData], Refit] | None = None
    held_out: HeldOut | None = None
    beside_all: HeldOut | None = None
    completed: Completed | None = None
    log_beta: float | None = None
    settles: bool = False
    rests_on_map: bool = False
    complexity: int = 50
    converged: bool = True
    found: bool = True
    expected: float = math.nan
    iterations: int = 0
    warning: str = ""
    anew: Callable[[TrainingData], Density] | None = None

    @property
    def refit(self) -> Refit | None:
        """Learns it again from some of its queries."""
        return None if self.again is None else self.again(self.data)

    @property
    def trial(self) -> Trial:
        """What a report says of it."""
        if self.held_out is None:
            return Trial(self.name)
        rivals = self.held_out.scores.shape[1] - 1
        among = rivals if rivals < len(self.data.patterns) else 0
        return Trial(self.name, self.held_out.accuracy, float(self.held_out.log_posterior.mean()), among)

    def seen_through(self, view: View, data: TrainingData) -> Candidate:
        """The same for rows as they are, where it was learned from rows as ``view`` shows them."""
        if view.plain:
            return replace(self, data=data)
        again = self.again

        def wrapped(other: TrainingData) -> Refit:
            assert again is not None
            refit = again(view.show(other))
            return lambda rows: view.wrap(refit(rows))

        name, model = view.named(self.name), view.wrap(self.model)
        return replace(self, name=name, model=model, data=data, again=None if again is None else wrapped)


class Outcome(NamedTuple):
    """What was chosen, what was tried, and how often the first choice should be right, the luck of the best of many
    taken away; not a number where nobody knows."""

    chosen: Candidate
    tried: list[Trial]
    expected: float = math.nan
