"""A model of the comparison on tables: how it is tuned, fitted, and made of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Settings = dict[str, Any]
Draw = np.random.RandomState
# Of models that vote: how many settings, and networks with the same ones. Settled on validation rows, settings ranked
# by one half and measured on the other: mean log-loss over five tables is .3536 with three settings, .3533 with six,
# .3538 with eight; accuracy .8395, .8404, .8409 with one, two, four networks each. a-hop has two, for time.
VOTES = 6
MEMBERS = {"a-hop-cases": 2, "ours": 4, "trees": 4}


@dataclass(frozen=True)
class Model:
    """A model of the comparison.

    Attributes:
        title: What tables call it.
        settings: A trial's settings; the first trial, with None for the draw, has usual ones.
        fit: A model from settings, rows to train with and, while tuning, rows to stop by.
        grown: What a tuned model tells about itself that the final one needs, which has no rows to stop by.
        votes: How many of the best settings the final model is made of, as ``{"vote": [settings, ...]}``; with one it
            is made of those alone.
        library: What it comes from, where that is an extra.
        tuned: Whether it has settings to choose from; one that has none takes a single trial.
        search: Whose trials it takes its settings from, where these are not its own.
        ours: Whether it is a memory, to be compared with the best of the others.
    """

    title: str
    settings: Callable[[Draw | None], Settings]
    fit: Callable[..., Any]
    grown: Callable[[Any], Settings] = lambda model: {}
    votes: int = 1
    library: str | None = None
    tuned: bool = True
    search: str | None = None
    ours: bool = False

    def chosen(self, ranked: list[Settings]) -> Settings:
        """What the final model is made of, from the settings of all trials, best first."""
        return {"vote": ranked[: self.votes]} if self.votes > 1 else ranked[0]


def log(draw: Draw, low: float, high: float) -> float:
    """A random number, each order of magnitude as likely as another.

    Args:
        draw: Where random numbers come from.
        low, high: The bounds.
    """
    return float(np.exp(draw.uniform(np.log(low), np.log(high))))


def one_of(draw: Draw, *choices: Any) -> Any:
    """One of these."""
    return choices[draw.randint(len(choices))]


def threads() -> int:
    """How many a fit may have: as many as PyTorch."""
    import torch

    return torch.get_num_threads()
