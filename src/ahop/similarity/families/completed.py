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

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.learning.holdout import halves
from ahop.similarity.families import stand_ins
from ahop.similarity.families.candidate import Refit
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import Completed

# Queries that are asked of each half, and entries (queries x patterns) that they may have at most.
_MAX_QUERIES, _MAX_SCORES = 256, 2**20
# Values that come again and again have no density: they are blurred by so much before densities are compared.
_REPEATED_SHARE, _BLUR = 0.1, 0.1


def blurred(data: TrainingData, seed: int) -> TrainingData:
    """The same with values that repeat blurred, as densities need it; not where some are missing."""
    if data.observed is not None or 1 - len(data.queries.unique()) / data.queries.numel() < _REPEATED_SHARE:
        return data
    noise = torch.randn(data.queries.shape, generator=torch.Generator().manual_seed(seed)).to(data.queries)
    return replace(data, queries=data.queries + _BLUR * noise)


def completed(data: TrainingData, refit: Refit, seed: int) -> Completed:
    """Of a kind of model, learned from either half of the queries and asked with the other.

    Args:
        data: What there is to learn from; known origins are not used.
        refit: Fits the model to some queries.
        seed: For the halves.
    """
    values = []
    for learn, judge in both_ways(data, seed):
        model, asked = refit(learn), data.part(judge)
        some, _, counts = stand_ins.of(asked, model)
        evidence, entropy = [], []
        for part in split(len(judge), 4 * 8 * len(some.patterns)):
            few = some.part(part)
            scores = (model(few.patterns, few.queries, few.observed) + few.log_priors).double()
            shares = torch.softmax(scores, 1)
            evidence.append(scores.logsumexp(1))
            # What a stand-in has is shared alike among those that it stands for.
            entropy.append(torch.special.entr(shares).sum(1) + shares @ counts.double().log())
        values.append(torch.cat(evidence) + model.log_volume(asked.queries) - torch.cat(entropy))
    return Completed(torch.cat(values))


def both_ways(data: TrainingData, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A half of the queries to learn from and some of the other, twice."""
    one, other = halves(len(data.queries), seed, data.queries.device)
    most = max(16, min(_MAX_QUERIES, _MAX_SCORES // len(data.patterns)))
    yield one, other[:most]
    yield other, one[:most]
