r"""How familiar queries are: the log of how much likelier each is from a stored pattern than from one that is not.

Three kinds of queries are judged by models that have not learned from them: those at hand, the same as if their pattern
were not stored, and, where some origins are known, those whose origin is not. The first two tell what to refuse as a
stranger. The third is a mixture of the other two, and so tells how many strangers there are (adjusted count: Rogan and
Gladen, 1978). With U, the share of the strange that are less familiar, which is a half for strangers on average,

.. math:: \pi = \frac{E_\mathrm{genuine}[U] - E_\mathrm{unknown}[U]}{E_\mathrm{genuine}[U] - 1/2}
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.density import Density
from ahop.similarity.families import stand_ins
from ahop.similarity.families.training import TrainingData

# Queries that are kept to tell strangers by, or how far sets must reach, at most; the fewest of which some can be held
# out; and the fewest whose origin is known, or unknown, that tell anything of strangers.
KEPT, MIN_QUERIES, _MIN_QUERIES_OF_EITHER = 512, 4, 10
# By how much more often than not genuine queries must look familiar beside strange ones to be told from them; standard
# errors by which there must be strangers, and the largest share of them.
_MIN_LEAD, _MIN_STANDARD_ERRORS, _MAX_SHARE = 0.25, 3.0, 0.99

# Models that have each not learned from some rows.
Halves = list[tuple[Density, Tensor]]


def genuine_and_strange(data: TrainingData, model: Density, halved: Halves, beta: float) -> Tensor:
    """How familiar queries are, and how familiar they were if their pattern were not stored, ``(2, m)``.

    Args:
        data: What the model has learned from.
        model: The model, which judges where it could not be learned again.
        halved: Models of each half of the queries, and the rows of the other half.
        beta: The inverse temperature that the model will have.
    """
    if len(data.queries) < MIN_QUERIES:
        return data.queries.new_empty(2, 0)
    if not halved:
        return _familiarity(model, data.part(data.rows[:KEPT]), beta)
    return torch.cat([_familiarity(half, data.part(rows[: KEPT // 2]), beta) for half, rows in halved], 1)


def share_of_strangers(every: TrainingData, data: TrainingData, halved: Halves, beta: float) -> float:
    """The share of all queries that come from no stored pattern, those of unknown origin counted; nought where that
    cannot be told from chance, or there are too few whose origin is known or unknown.

    Args:
        every: All queries.
        data: Those that were learned from: all, or the ones of known origin.
        halved, beta: As in :func:`genuine_and_strange`.
    """
    nobody = (every.all_origins < 0).nonzero().squeeze(1)
    if not halved or min(len(nobody), len(every.queries) - len(nobody)) < _MIN_QUERIES_OF_EITHER:
        return 0.0
    genuine, strange, unknown = [data.queries.new_empty(0)], [data.queries.new_empty(0)], [data.queries.new_empty(0)]
    for place, (model, rows) in enumerate(halved):
        known = data.all_origins[rows] >= 0
        others = data.part(rows[~known]) if data is every else every.part(nobody[place::2])
        for some, found in ((data.part(rows[known]), genuine), (others, unknown)):
            if len(some.queries):
                as_they_are, without = _familiarity(model, some.part(some.rows[: KEPT // 2]), beta)
                found.append(as_they_are)
                strange.append(without)
    # Further queries are like all of these, and none whose origin is known is a stranger.
    return adjusted_count(torch.cat(genuine), torch.cat(strange), torch.cat(unknown)) * len(nobody) / len(every.queries)


def adjusted_count(genuine: Tensor, strange: Tensor, unknown: Tensor) -> float:
    """The share of strangers among queries of which nobody knows whether they are genuine.

    Args:
        genuine, strange: How familiar queries are that are known to be either, ``(g,)`` and ``(s,)``.
        unknown: How familiar the others are, ``(u,)``.

    Example:
        >>> strange = torch.linspace(0, 1, 100)
        >>> unknown = torch.cat([strange[::5], torch.full((60,), 2.0)])
        >>> round(adjusted_count(torch.full((20,), 2.0), strange, unknown), 2)
        0.26
        >>> adjusted_count(torch.full((20,), 2.0), strange, torch.full((60,), 2.0))
        0.0
    """
    known, others = _ranks(genuine, strange), _ranks(unknown, strange)
    apart = float(known.mean()) - 0.5
    if apart < _MIN_LEAD:
        return 0.0
    share = float(known.mean() - others.mean()) / apart
    # As if of one genuine query more, which looks like a stranger: that none does is no proof.
    smoothed = torch.cat([known, known.new_full((1,), 0.5)])
    errors = (float(others.std()) / math.sqrt(len(others)), (1 - share) * float(smoothed.std()) / math.sqrt(len(known)))
    return min(share, _MAX_SHARE) if share * apart > _MIN_STANDARD_ERRORS * math.hypot(*errors) else 0.0


def _ranks(values: Tensor, among: Tensor) -> Tensor:
    """The share of others that each is above, half of those that it is level with."""
    ordered = among.sort().values.contiguous()
    below, up_to = (torch.searchsorted(ordered, values.contiguous(), right=right) for right in (False, True))
    return (below + up_to).double() / (2 * len(ordered))


def _familiarity(model: Density, data: TrainingData, beta: float) -> Tensor:
    """The log of how much likelier queries are from stored patterns than from others that are like them; from all of
    them, and from all but their own, which is the likeliest one where nobody knows, ``(2, m)``."""
    some, _, counts = stand_ins.of(data, model)
    found = [data.queries.new_empty(2, 0)]
    for part in split(len(some.queries), 2 * len(some.patterns) * some.queries.element_size()):
        few = some.part(part)
        scores = beta * model(few.patterns, few.queries, few.observed) + few.log_priors
        likeliest, own = (scores - counts.log()).argmax(1), few.all_origins
        without = scores.scatter(1, torch.where(own < 0, likeliest, own)[:, None], -math.inf)
        found.append(torch.stack([scores.logsumexp(-1), without.logsumexp(-1)]))
    likely = torch.cat(found, 1)
    return likely - beta * model.stranger(stand_ins.like_all(data.patterns), some.queries, some.observed)
