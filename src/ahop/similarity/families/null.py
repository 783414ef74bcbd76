r"""What a fit without labels would say if there were nothing to find: the same fit to patterns that no query came from.

Queries that have nothing to do with the patterns are explained, too: by the patterns that happen to lie near. So the
evidence of held-out queries is compared with what it is under *surrogates* of the patterns, to which the same family is
fitted in the same way. A surrogate pattern is a stored one mixed with a neighbour, around the mean of their
neighbourhood,

.. math:: \xi' = m + \frac{(\xi_a - m) \pm (\xi_b - m)}{\sqrt 2},

which keeps means, covariances and clusters. In a second kind every column gets its own values back, in the order that
it has now, which keeps its distribution instead, be it ever so odd. Only who is stored is lost.

Sets of either kind are drawn until it is clear. The patterns must explain the queries better than every set does, by
more than sets of a kind differ (Student's t, with the set as the sample: how well a few patterns happen to cover the
queries is chance as well), which far beyond chance is judged without a bound. And first choices must stand out from
second ones more than they do in any set: a model that is as sure of patterns that nothing came from has no ground to be
sure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.learning.chance import few_more_than_chance, mean_by_group
from ahop.learning.holdout import halves
from ahop.learning.report import VERIFIED
from ahop.similarity.families import stand_ins
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.training import TrainingData

# Neighbours of a pattern, and patterns that they are looked for among.
_NEIGHBOURS, _NEIGHBOUR_CANDIDATES = 20, 4096
# Fewer patterns have no neighbourhoods, and fewer queries no halves.
_MIN_PATTERNS, _MIN_QUERIES = 8, 8
# Fewer queries are held out in more folds than two: half of a few tells nothing.
_MIN_TWO_FOLD_QUERIES, _FOLDS_OF_FEW_QUERIES = 32, 4
# Queries that a model learns from, and those held out that it explains, at most.
_MAX_TRAINING_QUERIES, _MAX_HELD_OUT_QUERIES = 500, 256
# Sets of each kind, at most.
_MAX_SETS = 6
# How much more evidence there must be than under any set, in nats a query, of which one counts for ten at most; and by
# how many standard errors, of sets of a kind and of the queries.
_MIN_GAIN, _MAX_QUERY_NATS, _MIN_SET_ERRORS, _MIN_QUERY_ERRORS = 0.15, 10.0, 3.0, 2.5
# How much more first choices stand out. Where a query tells so many nats more, surrogates explain none of them, and how
# sure a model is of what it does not explain says nothing.
_MIN_LEAD_RATIO, _UNRIVALLED_GAIN = 1.05, 7.0
# So much more evidence, with first choices that stand out so much, needs no further set after two of each; nor do so
# many standard errors after three.
_CLEAR_GAIN, _CLEAR_LEAD_RATIO, _CLEAR_SET_ERRORS = 1.0, 1.3, 12.0
_TINY = 1e-30


def can_tell(data: TrainingData) -> bool:
    """Whether there are patterns and queries enough to compare with surrogates."""
    return len(data.patterns) >= _MIN_PATTERNS and data.complete_count >= _MIN_QUERIES


@torch.no_grad()
def above_chance(data: TrainingData, chosen: Candidate, seed: int = 0) -> bool:
    """Whether the queries come from these patterns rather than from others like them, as far as a model can tell.

    Args:
        data: What the model was learned from; origins have no say.
        chosen: The model; one that cannot be learned again, or from too little, is believed.
        seed: For the surrogates.
    """
    if chosen.again is None or not can_tell(data):
        return True
    plain = replace(data, origins=None)
    generator = torch.Generator().manual_seed(seed)
    own = _held_out(plain, chosen.again(plain), seed)
    kinds = [_Kind(keep_values, [], []) for keep_values in (False, True)]
    surest = 0.0
    for count in range(1, _MAX_SETS + 1):
        for kind in kinds:
            other = plain.beside(surrogates(data.means, generator, kind.keep_values))
            by_chance = _held_out(other, chosen.again(other), seed)
            gain = own.evidence - by_chance.evidence
            kind.gains.append(gain.clamp(-_MAX_QUERY_NATS, _MAX_QUERY_NATS))
            kind.medians.append(gain.median())
            surest = max(surest, float(by_chance.lead.mean()))
        means = [torch.stack(kind.gains).mean(1) for kind in kinds]
        least = min(float(some.min()) for some in means)
        lead_ratio = float(own.lead.mean()) / (surest + _TINY)
        if least <= _MIN_GAIN or (least <= _UNRIVALLED_GAIN and lead_ratio <= _MIN_LEAD_RATIO):
            return False
        if count < 2:
            continue
        compared = means if least <= _UNRIVALLED_GAIN else [torch.stack(kind.medians) for kind in kinds]
        errors = min(_set_errors(some) for some in compared)
        if count == 2 and least > _UNRIVALLED_GAIN and errors > _MIN_SET_ERRORS:
            break
        if count == 2 and least > _CLEAR_GAIN and lead_ratio > _CLEAR_LEAD_RATIO:
            break
        if count == 3 and errors > _CLEAR_SET_ERRORS:
            break
    else:
        if errors <= _MIN_SET_ERRORS:
            return False
    closest = min((gains for kind in kinds for gains in kind.gains), key=lambda gains: float(gains.mean()))
    return _clearly_more(closest, own.landed)


def warning(count: int, labels: int = 0) -> str:
    """What the user of a fit that found nothing should hear: of how many queries, of which so many labels judged."""
    if labels >= VERIFIED:
        return (
            f"no more of the {labels} known origins were found than by chance, when they were held out: probabilities "
            "are the prior. Do the queries come from these patterns, and are origins indices into them?"
        )
    return (
        f"the {count} queries fit these patterns no better than others like them, so answers may mean "
        "nothing: probabilities are the prior. More queries, or the origins of twenty of them, would settle it"
    )


def surrogates(patterns: Tensor, generator: torch.Generator, keep_values: bool) -> Tensor:
    """As many patterns ``(N, d)``, none of them stored, that are like the stored ones.

    Args:
        patterns: The stored ones, ``(N, d)``.
        generator: Draws the neighbours that patterns are mixed with.
        keep_values: Whether every column keeps its own values; without, means and covariances are alike.
    """
    count = len(patterns)
    mean, scale = patterns.mean(0), patterns.std(0)
    # Columns that do not vary have no say.
    rows = (patterns - mean) / scale.clamp_min(_TINY)
    among = torch.randperm(count, generator=generator)[:_NEIGHBOUR_CANDIDATES].to(patterns.device)
    near, mixed = min(_NEIGHBOURS, len(among) - 1), torch.empty_like(rows)
    for part in split(count, 4 * len(among) * rows.element_size()):
        here = rows[part]
        distances = torch.cdist(here, rows[among])
        # No pattern is its own neighbour.
        own = torch.arange(count, device=patterns.device)[part]
        around = among[distances.masked_fill_(own[:, None] == among, math.inf).topk(near, 1, largest=False).indices]
        middle = rows[around].mean(1)
        drawn, sign = (torch.randint(high, (len(here), 1), generator=generator).to(around) for high in (near, 2))
        other = rows[around.gather(1, drawn).squeeze(1)]
        mixed[part] = middle + (here - middle + (2 * sign - 1) * (other - middle)) / math.sqrt(2)
    if not keep_values:
        return mean + scale * mixed
    return torch.empty_like(patterns).scatter_(0, mixed.argsort(0), patterns.sort(0).values)


class _Kind(NamedTuple):
    """What the queries gained over each set of one kind of surrogates: ``(n,)`` for each set, and the median."""

    keep_values: bool
    gains: list[Tensor]
    # Without a bound: far beyond every set, they may still be within what sets differ by.
    medians: list[Tensor]


class _HeldOut(NamedTuple):
    """Of queries that a model has not learned from: the log evidence, the pattern that each lands on, and by how many
    nats that one leads, ten at most."""

    evidence: Tensor
    landed: Tensor
    lead: Tensor


def _held_out(data: TrainingData, refit: Refit, seed: int) -> _HeldOut:
    order = torch.cat(halves(len(data.queries), seed, data.queries.device))
    folds = order.tensor_split(_FOLDS_OF_FEW_QUERIES if len(order) < _MIN_TWO_FOLD_QUERIES else 2)
    parts = []
    for fold, judged in enumerate(folds):
        learned = torch.cat([*folds[:fold], *folds[fold + 1 :]])
        model, rows = refit(learned[:_MAX_TRAINING_QUERIES]), judged[:_MAX_HELD_OUT_QUERIES]
        asked, among, counts = stand_ins.of(data.part(rows), model)
        for part in split(len(rows), 4 * len(among) * data.queries.element_size()):
            some = asked.part(part)
            scores = model(some.patterns, some.queries, some.observed).double() + some.log_priors
            best, places = (scores - counts.log()).topk(2, 1)
            lead = (best[:, 0] - best[:, 1]).clamp(max=_MAX_QUERY_NATS)
            parts.append((scores.logsumexp(1), among[places[:, 0]], lead))
    return _HeldOut(*(torch.cat(column) for column in zip(*parts, strict=True)))


def _clearly_more(gains: Tensor, landed: Tensor) -> bool:
    """Whether gains are above zero by more than chance; a pattern counts once, however many queries land on it."""
    return few_more_than_chance(mean_by_group(gains, landed), _MIN_QUERY_ERRORS)


def _set_errors(gains: Tensor) -> float:
    """By how many standard errors the patterns explain more than a further set of a kind would."""
    return float(gains.mean() / (gains.std() * math.sqrt(1 / len(gains) + 1) + _TINY))
