"""What a kind of model has to show to be chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.learning.corruption.held_out import Judgement
from ahop.learning.corruption.views import View
from ahop.learning.report import Trial

_OF_THEIR_OWN = 1_000_003


class Contestant(NamedTuple):
    """A kind of model: fitted to all queries, judged if origins are known, and how to fit it to some of them.

    ``log_beta`` is the log of an inverse temperature that learning it has found by the way.
    """

    name: str
    model: Any
    judgement: Judgement | None
    refit: Callable[[Tensor], Any] | None
    log_beta: float | None = None

    @property
    def trial(self) -> Trial:
        """What a report says of it."""
        if self.judgement is None:
            return Trial(self.name)
        return Trial(self.name, self.judgement.accuracy, float(self.judgement.log_posterior.mean()))

    def seen(self, view: View) -> Contestant:
        """A kind of model of rows that are looked at in some way, for rows as they are."""
        refit = self.refit
        again = None if refit is None else lambda rows: view.wrap(refit(rows))
        return self._replace(name=view.named(self.name), model=view.wrap(self.model), refit=again)


class Outcome(NamedTuple):
    """What was chosen, what was tried, how the last steps went, and how often the first choice should be right where
    the choice among many was made allowance for."""

    chosen: Contestant
    tried: list[Trial]
    converged: bool = True
    iterations: int = 1
    expected: float = math.nan


def halves(count: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Two halves of so many queries, by chance."""
    # Not by the draw that decides which queries a model learns from where there are many: one half would have none.
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed + _OF_THEIR_OWN)).to(device)
    return order[: count // 2], order[count // 2 :]
