r"""Choose between models where no origins are known, by the completed likelihood of queries that were held out.

Evidence alone, :math:`\log \tfrac1N \sum_k p(x \mid \xi_k)`, prefers models that explain the patterns away: a
background that fits all queries and tells nothing of their origins. The integrated completed likelihood (Biernacki,
Celeux and Govaert, 2000) takes from it the entropy of the posterior, so that a model also has to say where queries come
from.

Plain metrics are densities too, once they have a temperature: normal for the squared distance, Laplace's for L1, and
for the cosine that of von Mises and Fisher for the direction and a log-normal one for the length. So they can be
compared with what was learned, and are taken where that is no better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop.learning.corruption import plain
from ahop.learning.corruption.contest import Contestant, halves
from ahop.learning.corruption.lessons import Families, Lessons

# Queries that are asked of each half, and entries (queries x patterns) that they may have at most.
_ASKED, _TABLE = 256, 2**20
_STEPS = 30
# Values that come again and again have no density: they are blurred by so much before densities are compared.
_REPEATED, _BLUR = 0.1, 0.1
# Standard errors by which the cosine must explain queries better than the distances do.
_CLEARLY = 3.0
# Fewer dimensions have no directions worth comparing without lengths.
_DIRECTIONS = 4


class Completed(NamedTuple):
    """The completed log-likelihood of each query that was held out, ``(n,)``."""

    values: Tensor

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    def beats(self, other: Completed, errors: float = 1.0) -> bool:
        """By so many standard errors."""
        gain = self.values - other.values
        return float(gain.mean()) > errors * float(gain.std(unbiased=False)) / math.sqrt(len(gain))


def blurred(here: Lessons, seed: int) -> Lessons:
    """The same with values that repeat blurred, as densities need it."""
    if 1 - len(here.queries.unique()) / here.queries.numel() < _REPEATED:
        return here
    noise = torch.randn(here.queries.shape, generator=torch.Generator().manual_seed(seed)).to(here.queries)
    return replace(here, queries=here.queries + _BLUR * noise)


def completed(
    here: Lessons, refit: Callable[[Tensor], Any], seed: int, density: Callable[[Any, Tensor], Tensor] | None = None
) -> Completed:
    """Of a kind of model, learned from either half of the queries and asked with the other.

    Args:
        here: What there is to learn from; known origins are not used.
        refit: Fits the model to some queries.
        seed: For the halves.
        density: What makes log densities of the scores of a model for some queries ``(n,)``, if anything does.
    """
    prior = -math.log(len(here.patterns)) if here.log_prior is None else here.log_prior
    values = []
    for learn, judge in both_ways(here, seed):
        model, asked = refit(learn), here.queries[judge]
        scores = (model(here.patterns, asked) + prior).double()
        evidence = scores.logsumexp(1) if density is None else scores.logsumexp(1) + density(model, asked)
        values.append(evidence - torch.special.entr(torch.softmax(scores, 1)).sum(1))
    return Completed(torch.cat(values))


def both_ways(here: Lessons, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A half of the queries to learn from and some of the other, twice."""
    one, other = halves(len(here.queries), seed, here.queries.device)
    most = max(16, min(_ASKED, _TABLE // len(here.patterns)))
    yield one, other[:most]
    yield other, one[:most]


# --- plain metrics ---------------------------------------------------------------------------------------------------


class Plain(NamedTuple):
    """The plain metric that explains held-out queries best, and how well it does."""

    contestant: Contestant
    completed: Completed


def best_plain(here: Lessons, families: Families, seed: int) -> Plain:
    """The best of the metrics of rows as they are, centred and standardised."""
    blurry = blurred(here, seed)
    found = {
        (alignment, metric): _judged(here, blurry, families.nearest, alignment, metric, seed)
        for alignment, metric in plain.RECIPES
        if metric != "cosine" or here.patterns.shape[1] >= _DIRECTIONS
    }
    distances, cosines = (
        [one for (_, metric), one in found.items() if (metric == "cosine") == cosine] for cosine in (False, True)
    )
    best = max(distances, key=lambda one: one.completed.mean)
    # The density of lengths may fit by itself, whatever directions say of the origins.
    other = max(cosines, key=lambda one: one.completed.mean, default=best)
    return other if other.completed.beats(best.completed, _CLEARLY) else best


def _judged(here: Lessons, blurry: Lessons, kind: Any, alignment: str, metric: str, seed: int) -> Plain:
    most = max(64, _TABLE // len(here.patterns))

    def fit(lessons: Lessons, rows: Tensor) -> Any:
        return plain.fit_queries(kind, lessons.part(rows[:most]), alignment, metric, _STEPS)

    every = torch.arange(len(here.queries), device=here.queries.device)
    refit = partial(fit, here)
    one = Contestant(plain.named(alignment, metric), refit(every), None, refit)
    return Plain(one, completed(blurry, partial(fit, blurry), seed, plain.log_volume))
