"""What anyone would try first, from pairs: plain metrics, whitening and ridge regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import ClassVar

import torch
from torch import Tensor, nn

from ahop._queries import Queries
from ahop.similarity.families.correlated.model import Correlated
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.recipe import Pairs, Recipe

_IN_WORDS = {"distance": "distance", "manhattan": "L1", "cosine": "cosine"}
_TINY = 1e-12


class Alignment(Enum):
    """How each side's rows are counted: as they are, from their mean, or also in their standard deviations."""

    NONE = ""
    CENTRED = "centred"
    Z_SCORED = "z-scored"


@dataclass(frozen=True)
class Metric(Recipe):
    """A metric, of rows that are aligned first."""

    alignment: Alignment
    metric: str

    @property
    def name(self) -> str:
        return f"{self.alignment.value} {_IN_WORDS[self.metric]}".strip()

    @property
    def directional(self) -> bool:
        """Whether it compares directions alone, which only complete rows have."""
        return self.metric == "cosine"

    @torch.no_grad()
    def fit(self, pairs: Pairs) -> Nearest:
        return _tempered(self.aligned(pairs.origins, pairs.queries, pairs.zero, pairs.observed), pairs)

    @torch.no_grad()
    def aligned(self, patterns: Tensor, queries: Tensor, zero: float, observed: Tensor | None = None) -> Nearest:
        """Each side counted as the alignment says; at no temperature yet.

        Args:
            patterns: ``(N, d)``.
            queries: ``(n, d)``.
            zero: Where values of nought lie.
            observed: Which entries of the queries count, ``(n, d)``; None is all.
        """
        if observed is not None:
            # At the mean, which changes neither that nor, by much, the spread.
            mean = (queries * observed).sum(0) / observed.sum(0).clamp_min(1)
            queries = torch.where(observed, queries, mean)
        model = Nearest(patterns.shape[1], self.metric).to(queries)
        sides = (
            (patterns, model.pattern_centre, model.log_pattern_scale),
            (queries, model.query_centre, model.log_query_scale),
        )
        for rows, centre, log_scale in sides:
            centre.fill_(zero) if self.alignment is Alignment.NONE else centre.copy_(rows.mean(0))
            if self.alignment is Alignment.Z_SCORED:
                log_scale.copy_(_deviation(rows).log())
        return model


METRICS = [Metric(*one) for one in product(Alignment, ("distance", "manhattan", "cosine"))]
DISTANCE = Metric(Alignment.NONE, "distance")


def _deviation(rows: Tensor) -> Tensor:
    """The standard deviation of each column, and 1 for one that does not vary."""
    found = rows.std(0, unbiased=False)
    return torch.where(found > 1e-6 * found.max(), found, 1.0)


def _tempered(model: Nearest, pairs: Pairs) -> Nearest:
    """The same at the inverse temperature under which the pairs are likeliest."""
    stored, asked = model.stored(pairs.origins), model.asked(pairs.queries)
    if model.metric == "cosine":
        mean = float(nn.functional.cosine_similarity(stored, asked).mean())
    else:
        gaps = (stored - asked).square() if model.metric == "distance" else (stored - asked).abs()
        seen = Queries(gaps, pairs.observed).mask
        mean = -model.dim * float((gaps * seen).sum() / seen.sum().clamp_min(1))
    model.log_beta.fill_(likeliest_log_beta(model, mean))
    return model


def likeliest_log_beta(model: Nearest, mean: float) -> float:
    """The log inverse temperature under which pairs are likeliest whose similarity is ``mean`` on average."""
    if model.metric == "cosine":
        # The usual approximation for von Mises and Fisher's distribution (Banerjee and others, 2005).
        mean = min(max(mean, 0.01), 0.9999)
        return math.log(mean * max(1.0, model.dim - mean**2) / (1 - mean**2))
    return math.log(model.dim / (2 if model.metric == "distance" else 1) / (_TINY * model.dim - mean))


@dataclass(frozen=True)
class Ridge(Recipe):
    """Ridge regression of patterns on queries, drawn to zero by ``strength`` mean squares of the queries, compared by a
    metric.

    It gives way to a moved space that is level: that knows its noise, and adapts queries.
    """

    strength: float
    metric: str

    mapped: ClassVar[bool] = True
    complexity: ClassVar[int] = 70

    @property
    def name(self) -> str:
        return f"ridge {self.strength:g}, {_IN_WORDS[self.metric]}"

    @torch.no_grad()
    def fit(self, pairs: Pairs) -> Nearest:
        known = pairs.principal
        shrunk = (known.values / (known.values.square() + self.strength * known.square))[:, None] * known.directions
        dim, width = pairs.origins.shape[1], pairs.queries.shape[1]
        model = Nearest(dim, self.metric, width, mapped=True).to(pairs.queries)
        model.pattern_centre.copy_(known.pattern_mean)
        model.query_centre.copy_(known.query_mean)
        model.matrix.copy_(known.wanted.mT @ shrunk)
        return _tempered(model, pairs)


RIDGES = [Ridge(*one) for one in product((1e-4, 1e-2, 1e-1, 1.0), ("distance", "cosine"))]


@dataclass(frozen=True)
class Whitening(Recipe):
    """Distances after whitening by the shrunk covariance of residuals (Ledoit and Wolf, 2004).

    The covariance is a multiple of the identity and as many hidden causes as there are residuals, so that the model
    is a :class:`ahop.similarity.Correlated`, and nothing of ``d`` x ``d`` is made where pairs are few.
    """

    @property
    def name(self) -> str:
        return "whitening"

    @torch.no_grad()
    def fit(self, pairs: Pairs) -> Correlated:
        gaps = (pairs.queries - pairs.origins).double()
        bias = gaps.mean(0)
        gaps = gaps - bias
        count, dim = gaps.shape
        values, directions = _principal(gaps)
        mean = float(values.sum()) / dim
        # Both squared norms are per dimension, as in the paper.
        spread = float((values.square().sum() / dim) - mean**2)
        by_chance = float(gaps.square().sum(1).square().mean() / dim - values.square().sum() / dim) / count
        shrinkage = min(1.0, by_chance / spread) if spread > _TINY * mean**2 else 1.0
        model = Correlated(dim, len(values), tails=math.inf).to(gaps)
        model.bias.copy_(bias)
        model.loading.copy_(directions * ((1 - shrinkage) * values).clamp_min(0).sqrt())
        model.log_psi.fill_(math.log(max(shrinkage, 1e-6) * mean + _TINY))
        return model


def _principal(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The positive eigenvalues of the covariance of centred rows ``(k,)``, and their directions ``(d, k)``."""
    count, dim = rows.shape
    gram = rows @ rows.mT / count if count < dim else rows.mT @ rows / count
    values, vectors = torch.linalg.eigh(gram)
    sound = values > 1e-10 * values.amax().clamp_min(_TINY)
    values, vectors = values[sound], vectors[:, sound]
    if count < dim:
        vectors = rows.mT @ vectors / (count * values).sqrt()
    return values, vectors
