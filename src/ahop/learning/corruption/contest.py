"""What a kind of model has to show to be chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.learning.corruption.held_out import Judgement
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


class Outcome(NamedTuple):
    """What was chosen, what was tried, and how the last steps went."""

    chosen: Contestant
    tried: list[Trial]
    converged: bool = True
    iterations: int = 1


def halves(count: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Two halves of so many queries, by chance."""
    # Not by the draw that decides which queries a model learns from where there are many: one half would have none.
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed + _OF_THEIR_OWN)).to(device)
    return order[: count // 2], order[count // 2 :]
