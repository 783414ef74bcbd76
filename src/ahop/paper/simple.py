"""The comparisons that anyone would try first, made to say how sure they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ahop.learning.corruption.held_out import tempered
from ahop.metrics import calibration_gap
from ahop.paper import baselines
from ahop.paper.baselines import METRICS, Compared
from ahop.variants import Samples


def _as_they_are(patterns: Tensor, queries: Tensor, metric: str) -> Compared:
    return Compared(patterns.double(), lambda asked: asked, METRICS[metric])


# How patterns and queries to learn from, without origins, become a comparison by one of the metrics.
FORMS: dict[str, Callable[[Tensor, Tensor, str], Compared]] = {
    "": _as_they_are,
    "centred": baselines.centred,
    "z-scored": baselines.z_scored,
}
SIMPLE = {f"{form} {metric}".strip(): (form, metric) for form in FORMS for metric in METRICS}


class Simple(NamedTuple):
    """A comparison and the inverse temperature of the softmax over its scores."""

    compared: Compared
    beta: float

    @classmethod
    def fitted(cls, name: str, patterns: Tensor, seen: Samples) -> Simple:
        """By its name, with the temperature under which origins are likeliest: the one thing learned from labels."""
        form, metric = SIMPLE[name]
        compared = FORMS[form](patterns, seen.queries, metric)
        scores = _scores(compared, seen.queries)
        own = scores.gather(1, seen.origins.to(scores.device)[:, None])
        others = scores.scatter(1, seen.origins.to(scores.device)[:, None], -torch.inf)
        return cls(compared, math.exp(tempered(torch.cat([own, others], 1))[1]))

    def measured(self, test: Samples) -> dict[str, float]:
        """How often the first choice is right, and how far that is from how sure it is."""
        sure, first = torch.softmax(self.beta * _scores(self.compared, test.queries), 1).max(1)
        right = first == test.origins.to(first.device)
        return {"first_choice": float(right.double().mean()), "calibration_error": calibration_gap(sure, right)}


@torch.no_grad()
def _scores(compared: Compared, queries: Tensor) -> Tensor:
    return compared.score(compared.patterns, compared.move(queries.double()))
