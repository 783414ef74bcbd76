r"""A few patterns that stand for very many of them while a corruption is learned.

A query is shared out among all N patterns, by sums over them. Of very many, the likeliest of each query are kept, a set
U, and a sample S of the others, each of which counts for as many as it stands for (stratified sampling):

.. math:: \sum_k f(\xi_k) \approx \sum_{k \in U} f(\xi_k) + \frac{N - |U|}{|S|} \sum_{k \in S} f(\xi_k)

So one look at all patterns is enough for many steps of learning. Which are the likeliest changes on the way: after some
steps, all patterns are looked at again. A look goes by dot products where the likelihood has codes: whether a pattern
is in U or may be drawn for S is not a question of digits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.codes import NoCodesError
from ahop.similarity.density import Density
from ahop.similarity.families.training import TrainingData

# Patterns up to which all of them have their say.
MANY = 2**16
# The likeliest patterns that each query keeps, and the sample of all others.
_LIKELIEST, _SAMPLE = 32, 2**13
# Steps of learning from one look to the next.
_STEPS = 5
# The error of a score that a look may make; patterns that its codes are made for; and which of their values are far
# out: one in so many, at either end.
_TOLERANCE, _CODED_PATTERNS, _OUTLIERS_ONE_IN = 1.0, 2**14, 500

Scores = Callable[[Tensor], Tensor]


class StandIns(NamedTuple):
    """Data with few patterns ``(K, d)``, their places among all ``(K,)``, and for how many each stands ``(K,)``."""

    data: TrainingData
    places: Tensor
    counts: Tensor


@torch.no_grad()
def of(data: TrainingData, model: Density) -> StandIns:
    """Those of the patterns that matter to these queries under a model; all, where they are not many.

    Example:
        >>> data = TrainingData(torch.eye(3), torch.ones(2, 3))
        >>> of(data, Density.of("gaussian", 3)).places
        tensor([0, 1, 2])
    """
    count = len(data.patterns)
    every = torch.arange(count, device=data.patterns.device)
    if count <= MANY:
        return StandIns(data, every, torch.ones_like(data.patterns[:, 0]))
    kept = torch.zeros_like(every, dtype=torch.bool)
    kept[data.all_origins[data.known]] = True
    for scores in _looks(data, model):
        kept[_likeliest(data, scores).flatten()] = True
    others = every[~kept]
    drawn = others[_drawn(len(others), _SAMPLE).to(others.device)]
    places = torch.cat([every[kept], drawn])
    counts = torch.ones_like(data.patterns[places, 0])
    counts[len(places) - len(drawn) :] = len(others) / max(1, len(drawn))
    prior = data.log_priors[places]
    place = torch.full_like(every, -1).index_copy(0, places, torch.arange(len(places), device=every.device))
    origins = None if data.origins is None else torch.where(data.origins < 0, -1, place[data.origins])
    few = replace(data, patterns=data.patterns[places], origins=origins, log_prior=prior + counts.log(), room=None)
    return StandIns(few, places, counts)


def rounds(data: TrainingData, model: Density, steps: int) -> Iterator[tuple[TrainingData, int]]:
    """What to learn from, and for how many steps, as the model changes on the way.

    Args:
        data: All queries and patterns.
        model: Asked each time which patterns may stand for the others.
        steps: The number of EM steps in all.

    Returns:
        For each round the data, and the number of steps.
    """
    if len(data.patterns) <= MANY:
        yield data, steps
        return
    for start in range(0, steps, _STEPS):
        yield of(data, model).data, min(_STEPS, steps - start)


def like_all(patterns: Tensor) -> Tensor:
    """As many of the patterns ``(N, d)`` as tell how values are spread; all, where they are not many."""
    return patterns if len(patterns) <= MANY else patterns[_drawn(len(patterns), _SAMPLE).to(patterns.device)]


def _drawn(count: int, most: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(0))[:most]


def _looks(data: TrainingData, model: Density) -> list[Scores]:
    """The scores of a block of patterns ``(n, B)``, for each likelihood that the model is a mixture of."""
    model = copy.deepcopy(model).to(data.patterns)
    some = data.patterns[_drawn(len(data.patterns), _CODED_PATTERNS).to(data.patterns.device)]
    # Values far out would cost the others digits: codes take them for the last ones within.
    ordered, queries = some.sort(0).values, data.queries.to(some)
    some = some.clamp(ordered[len(some) // _OUTLIERS_ONE_IN], ordered[-1 - len(some) // _OUTLIERS_ONE_IN])
    try:
        parts = [codes for _, codes in model.mixture(some, _TOLERANCE)]
        asked = [codes.ask(queries, data.observed) for codes in parts]
    except NoCodesError:
        return [lambda block: model(block, queries, data.observed)]

    def by_codes(part: int) -> Scores:
        one, codes = asked[part], parts[part]

        def scores(block: Tensor) -> Tensor:
            products = one.codes @ codes.encode_patterns(block).to(one.codes).mT
            # Without a prior, their order is all that counts.
            return products if data.log_prior is None else one.finish(products)

        return scores

    return [by_codes(part) for part in range(len(parts))]


def _likeliest(data: TrainingData, scores: Scores) -> Tensor:
    """The likeliest patterns of each query, ``(n, 32)``."""
    rows = len(data.queries)
    best = data.patterns.new_full((rows, _LIKELIEST), -torch.inf)
    places = torch.zeros(rows, _LIKELIEST, dtype=torch.long, device=best.device)
    for part in split(len(data.patterns), 4 * max(rows, data.patterns.shape[1]) * best.element_size()):
        table = scores(data.patterns[part]).to(best)
        if data.log_prior is not None:
            table = table + data.log_prior[part]
        here = table.topk(min(_LIKELIEST, table.shape[1]), 1)
        best, chosen = torch.cat([best, here.values], 1).topk(_LIKELIEST, 1)
        places = torch.cat([places, here.indices + part.start], 1).gather(1, chosen)
    return places
