"""A plain metric from few pairs or from none: how far queries lie from their patterns, as a temperature."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop._blocks import parts_of, split
from ahop._queries import Queries
from ahop.similarity.families import em, stand_ins
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.nearest.recipes import Metric, likeliest_log_beta
from ahop.similarity.families.recipe import Pairs
from ahop.similarity.families.shares import assign_known
from ahop.similarity.families.training import TrainingData

# What keeps a divisor or the argument of a logarithm from zero.
_TINY = 1e-12
# Values' worth of belief that noise is as wide as the patterns are spread.
_PRIOR_COUNT = 4.0
# Steps of expectation maximisation, at most, and by how much the log temperature still moves at the last one.
_MAX_STEPS = 30
_TOLERANCE = 1e-3


@torch.no_grad()
def distance(pairs: Pairs) -> Nearest:
    """The distance of rows as they are: all that one pair can teach is how far queries lie from their patterns.

    That is drawn to how far a memory expects them that has learned nothing, as if it knew a few values of it.
    """
    model = Nearest(pairs.origins.shape[1]).to(pairs.queries)
    squares = (pairs.queries - pairs.origins).square()
    seen = Queries(squares, pairs.observed).mask
    mean = (float((squares * seen).sum()) + _PRIOR_COUNT) / (float(seen.sum()) + _PRIOR_COUNT)
    model.log_beta.fill_(-math.log(2 * mean + _TINY))
    return model


class _Temperature:
    """That of an aligned metric, from queries whose origins are shared out among all patterns, but for those known."""

    def __init__(self, model: Nearest, data: TrainingData) -> None:
        self.model, self.data = model, data
        stored, asked = model.stored(data.patterns), Queries(model.asked(data.queries), data.observed)
        size = 3 * 8 * len(stored)

        def table(part: slice) -> Tensor:
            some = asked[part]
            return model.similarity(stored, some.rows, some.observed).double()

        self.parts = split(len(asked), size)
        self.tables = parts_of(table, len(asked), size)
        # A similarity of what was observed, for that of complete rows.
        self.completion = 1.0 if data.observed is None else 1 / max(_TINY, float(data.observed.double().mean()))
        # From the nearest patterns, which is too sure, to what explains the queries.
        nearest = float(torch.cat([similar.amax(1) for similar in self.tables()]).mean())
        self.log_beta = likeliest_log_beta(model, self.completion * nearest)
        model.log_beta.fill_(self.log_beta)

    def expect(self) -> tuple[float, float]:
        """The log evidence, and how similar queries are to the patterns that they are shared out among, on average."""
        data, evidence, means = self.data, [], []
        for part, similar in zip(self.parts, self.tables(), strict=True):
            logits = math.exp(self.log_beta) * similar + data.log_priors
            shares = torch.softmax(logits, 1)
            assign_known(shares, data.all_origins[part])
            evidence.append(logits.logsumexp(1))
            means.append((shares * similar).sum(1))
        level = self.model.level(data.observed)
        constant = (level.squeeze(-1) if level.ndim else level) + self.model.log_volume(data.queries)
        return float((torch.cat(evidence) + constant).mean()), self.completion * float(torch.cat(means).mean())

    def maximise(self, shares: float) -> bool:
        before, self.log_beta = self.log_beta, likeliest_log_beta(self.model, shares)
        self.model.log_beta.fill_(self.log_beta)
        return abs(self.log_beta - before) < _TOLERANCE


@torch.no_grad()
def fit_queries(data: TrainingData, metric: Metric) -> Nearest:
    """A plain metric at the temperature that explains the queries, whether or not their origins are known."""
    model = metric.aligned(data.patterns, data.queries, data.zero, data.observed)
    # Which are nearest is the same at any temperature: one look at all patterns is enough.
    em.iterate(_Temperature(model, stand_ins.of(data, model).data), _MAX_STEPS)
    return model
