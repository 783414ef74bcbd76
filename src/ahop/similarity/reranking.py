"""Scores in two stages: approximate ones of all patterns by dot products, and the best of each query re-ranked exactly.

For similarities with two methods. ``approximate(patterns, count)`` gives a function from queries to a table of scores
that are nearly right, or None where exact ones are as fast. ``exact(patterns, chosen, queries)`` scores some of the
patterns for each query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import torch
from torch import Tensor

from ahop._blocks import split

Table = Callable[[Tensor], Tensor]
# How many of the best are scored exactly, and how many more than are asked for.
_RERANKED_PATTERNS = 64


_exact_alone: ContextVar[bool] = ContextVar("exact_alone", default=False)


@contextmanager
def exact_alone() -> Iterator[None]:
    """Within the block, every score is exact."""
    before = _exact_alone.set(True)
    try:
        yield
    finally:
        _exact_alone.reset(before)


class TwoStage(Protocol):
    """A similarity that has both."""

    def approximate(self, patterns: Tensor, queries: int) -> Table | None: ...

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor) -> Tensor:
        """The exact scores of some patterns for each query.

        Args:
            patterns: ``(N, d)``.
            chosen: Their indices, ``(Q, k)``.
            queries: ``(Q, d)``.

        Returns:
            Scores, ``(Q, k)``.
        """


def table(similarity: TwoStage, patterns: Tensor, queries: Tensor) -> Tensor | None:
    """Score in two stages: all pairs approximately, then the best of each query exactly.

    Args:
        similarity: What can do both.
        patterns: ``(N, d)``.
        queries: ``(Q, d)``.

    Returns:
        Scores, ``(Q, N)``; None where the exact way is as fast, or gradients are wanted.
    """
    # Asked before gradients are off: what is computed here has none.
    if torch.is_grad_enabled() or patterns.ndim != 2 or _exact_alone.get():
        return None
    approximate = similarity.approximate(patterns, len(queries))
    if approximate is None:
        return None
    scores = approximate(queries)
    candidates = scores.topk(min(_RERANKED_PATTERNS, len(patterns)), sorted=False).indices
    return scores.scatter_(1, candidates, _exact(similarity, patterns, queries, candidates))


def _exact(similarity: TwoStage, patterns: Tensor, queries: Tensor, candidates: Tensor) -> Tensor:
    each = 8 * candidates.shape[1] * patterns.shape[1] * patterns.element_size()
    return torch.cat(
        [similarity.exact(patterns, candidates[part], queries[part]) for part in split(len(queries), each)]
    )
