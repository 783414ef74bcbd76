r"""What a fit without labels would say if there were nothing to find: the same fit to patterns that no query came from.

Queries that have nothing to do with the patterns are explained, too: by the patterns that happen to lie near. So the
evidence of held-out queries is compared with what it is under *surrogates* of the patterns, to which the same family is
fitted in the same way. A surrogate pattern is a stored one mixed with a neighbour, around the mean of their
neighbourhood,

.. math:: \xi' = m + \frac{(\xi_a - m) \pm (\xi_b - m)}{\sqrt 2},

which keeps means, covariances and clusters. In a second set every column gets its own values back, in the order that it
has now, which keeps its distribution instead, be it ever so odd. Only who is stored is lost. There are two sets of
either kind: the patterns must explain the queries better than the best of them, and by more than the sets differ.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.families.candidate import Candidate, Refit, halves
from ahop.similarity.families.training import TrainingData

# Neighbours of a pattern, and patterns that they are looked for among.
_NEIGHBOURS, _AMONG = 20, 4096
# Fewer patterns have no neighbourhoods, and fewer queries no halves.
_FEWEST_PATTERNS, _FEWEST_QUERIES = 8, 8
# Queries of each half that a model learns from, and that it explains, at most.
_LEARNED, _EXPLAINED = 500, 256
# How much more evidence, in nats a query, by how many standard errors, and by how many standard deviations of the sets.
# A query counts for ten nats at most.
_MORE, _ERRORS, _DEVIATIONS, _MOST = 0.3, 2.5, 4.0, 10.0
# As many deviations of two sets are enough.
_CLEAR = 10.0
_TINY = 1e-30


@torch.no_grad()
def above_chance(data: TrainingData, chosen: Candidate, seed: int = 0) -> bool:
    """Whether the queries come from these patterns rather than from others like them, as far as a model can tell.

    Args:
        data: What the model was learned from; origins have no say.
        chosen: The model; one that cannot be learned again, or from too little, is believed.
        seed: For the surrogates.
    """
    if chosen.again is None or len(data.patterns) < _FEWEST_PATTERNS or len(data.queries) < _FEWEST_QUERIES:
        return True
    plain = replace(data, origins=None)
    generator = torch.Generator().manual_seed(seed)
    evidence, landed = _held_out(plain, chosen.again(plain), seed)
    gains: list[Tensor] = []
    means = evidence[:0]
    for keep_values in (False, True, False, True):
        other = replace(plain, patterns=surrogates(data.patterns, generator, keep_values))
        by_chance, _ = _held_out(other, chosen.again(other), seed)
        gains.append((evidence - by_chance).clamp(-_MOST, _MOST))
        means = torch.stack(gains).mean(1)
        if float(means.min()) <= _MORE:
            return False
        if len(gains) == 2 and float(means.min()) > max(_CLEAR * float(means.std()), 1.0):
            # Nothing that two sets more could say would change that.
            break
    if float(means.mean()) <= _DEVIATIONS * float(means.std()):
        return False
    return _clearly_more(gains[int(means.argmin())], landed)


def surrogates(patterns: Tensor, generator: torch.Generator, keep_values: bool) -> Tensor:
    """As many patterns ``(N, d)`` that are like these in covariance or, with ``keep_values``, in every column."""
    count = len(patterns)
    mean, scale = patterns.mean(0), patterns.std(0)
    # Columns that do not vary have no say.
    rows = (patterns - mean) / scale.clamp_min(_TINY)
    among = torch.randperm(count, generator=generator)[:_AMONG].to(patterns.device)
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


def _held_out(data: TrainingData, refit: Refit, seed: int) -> tuple[Tensor, Tensor]:
    """The log evidence of queries under models of the other half, and the pattern that each lands on."""
    one, other = halves(len(data.queries), seed, data.queries.device)
    evidence, landed = [], []
    for learned, asked in ((one, other), (other, one)):
        model, rows = refit(learned[:_LEARNED]), asked[:_EXPLAINED]
        for part in split(len(rows), 4 * len(data.patterns) * data.queries.element_size()):
            some = data.part(rows[part])
            scores = model(some.patterns, some.queries, some.observed).double() + data.log_priors
            evidence.append(scores.logsumexp(1))
            landed.append(scores.argmax(1))
    return torch.cat(evidence), torch.cat(landed)


def _clearly_more(gains: Tensor, landed: Tensor) -> bool:
    """Whether gains are above zero by more than chance; a pattern counts once, however many queries land on it."""
    from scipy.stats import norm, t

    known, group, count = landed.unique(return_inverse=True, return_counts=True)
    each = torch.zeros(len(known)).to(gains).index_add_(0, group, gains) / count
    if len(known) < 2:
        return False
    errors = float(each.mean() / (each.std() / math.sqrt(len(known)) + _TINY))
    return errors > float(t.isf(norm.sf(_ERRORS), len(known) - 1))
