"""Scores by way of cheap ones: all by dot products, and the best of each query again, exactly.

For similarities with two methods. ``quick(patterns, count)`` gives a function from queries to a table of scores that
are nearly right, or None where exact ones are as fast. ``exact(candidates, queries)`` scores some patterns a query.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from ahop._blocks import split

Table = Callable[[Tensor], Tensor]
# How many of the best are scored exactly, and how many more than are asked for.
_EXACT = 64


class Quick(Protocol):
    """A similarity that has both."""

    def quick(self, patterns: Tensor, queries: int) -> Table | None: ...

    def exact(self, candidates: Tensor, queries: Tensor) -> Tensor: ...


def table(similarity: Quick, patterns: Tensor, queries: Tensor) -> Tensor | None:
    """Scores ``(Q, N)``, the best of each query exact; None where the exact way is as fast, or gradients are wanted."""
    # Asked before gradients are off: what is computed here has none.
    if torch.is_grad_enabled() or patterns.ndim != 2:
        return None
    rough = similarity.quick(patterns, len(queries))
    if rough is None:
        return None
    scores = rough(queries)
    candidates = scores.topk(min(_EXACT, len(patterns)), sorted=False).indices
    return scores.scatter_(1, candidates, _exact(similarity, patterns, queries, candidates))


@torch.no_grad()
def best(
    similarity: Quick, patterns: Tensor, queries: Tensor, k: int, beta: Tensor | float, log_prior: Tensor | None
) -> tuple[Tensor, Tensor] | None:
    """The k patterns that are best by their exact scores, and their probabilities; None as in :func:`table`."""
    rough = None if patterns.ndim != 2 else similarity.quick(patterns, len(queries))
    if rough is None:
        return None
    prior = patterns.new_zeros(len(patterns)) if log_prior is None else log_prior
    count = min(k + _EXACT, len(patterns))
    indices, probabilities = [], []
    for part in split(len(queries), 2 * len(patterns) * queries.element_size()):
        logits = beta * rough(queries[part]) + prior
        # In the order of the patterns, so that equal ones come in that order whatever their rough scores are.
        candidates = logits.topk(count, sorted=False).indices.sort(1).values
        own = beta * _exact(similarity, patterns, queries[part], candidates) + prior[candidates]
        logits.scatter_(1, candidates, own)
        first = own.sort(dim=1, descending=True, stable=True).indices[:, :k]
        indices.append(candidates.gather(1, first))
        probabilities.append((own.gather(1, first) - logits.logsumexp(1, keepdim=True)).exp())
    return torch.cat(indices), torch.cat(probabilities)


def _exact(similarity: Quick, patterns: Tensor, queries: Tensor, candidates: Tensor) -> Tensor:
    each = 8 * candidates.shape[1] * patterns.shape[1] * patterns.element_size()
    return torch.cat(
        [similarity.exact(patterns[candidates[part]], queries[part]) for part in split(len(queries), each)]
    )
