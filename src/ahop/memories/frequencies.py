"""How often each stored pattern is asked for, from queries with or without their origins."""

from __future__ import annotations

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.memories.window import Window
from ahop.similarity import Similarity
from ahop.similarity.families import em

# Steps of expectation maximisation.
_STEPS = 30


def frequencies(similarity: Similarity, patterns: Tensor, window: Window) -> Tensor:
    r"""Counts by pattern ``(N,)``, with one more for each so that none is ruled out.

    .. math:: c_k = 1 + \sum_{n \text{ from } k} 1 + \sum_{n \text{ of unknown origin}} p(k \mid x_n), \qquad
        p(k \mid x) \propto c_k \, e^{s(\xi_k, x)}

    Args:
        similarity: A log-likelihood.
        patterns: ``(N, d)``.
        window: Queries, and their origins as far as they are known.
    """
    learner = _Counts(similarity, patterns, window)
    em.iterate(learner, _STEPS if len(learner.unknown) else 0)
    return learner.counts


class _Counts:
    """Counts, learned from queries of unknown origin; those of known origin are counted once and for all."""

    def __init__(self, similarity: Similarity, patterns: Tensor, window: Window) -> None:
        self.similarity, self.patterns = similarity, patterns
        self.known, self.unknown = torch.ones_like(patterns[:, 0]), window.queries
        if window.origins is not None:
            origins = window.origins[window.origins >= 0]
            self.known = self.known.index_add(0, origins, torch.ones_like(window.queries.rows[: len(origins), 0]))
            self.unknown = window.queries[window.origins < 0]
        self.counts = self.known

    def expect(self) -> tuple[float, Tensor]:
        """The log evidence, and what queries add up to for each pattern ``(N,)``, known ones included."""
        shares, bound = self.known.clone(), 0.0
        for part in split(len(self.unknown), 2 * len(self.patterns) * self.unknown.rows.element_size()):
            some = self.unknown[part]
            scores = self.similarity(self.patterns, some.rows, some.observed) + (self.counts / self.counts.sum()).log()
            shares += torch.softmax(scores, -1).sum(0)
            bound += float(scores.logsumexp(-1).sum())
        return bound / len(self.unknown), shares

    def maximise(self, shares: Tensor) -> None:
        self.counts = shares
