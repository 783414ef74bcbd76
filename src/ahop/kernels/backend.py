r"""What computes footprints: the contract that the reference, the CPU's kernels and the GPU's fulfil.

A backend knows how to score pairs, how to differentiate scores, and how to list sorted terms. Readouts and rankings
follow from the scores, some queries at a time; a backend that makes them in one pass says so by its own method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._blocks import split


class Pairs(NamedTuple):
    """What is scored, in groups: the heads of a layer, say; a memory has one.

    Attributes:
        patterns, queries: ``(G, N, d)`` and ``(G, Q, d)``.
        weights: The u of B bases, ``(W, R, B, d)``: group g uses those of ``g % W``, and either all queries share them
            (R = 1) or each has its own (R = Q).
        observed: ``(G, Q, d)``, or None: the terms of unobserved dimensions are sorted to the end, where the caller's
            weights are zero.
        bases: Names of :data:`ahop.kernels.reference.TERMS`.
    """

    patterns: Tensor
    queries: Tensor
    weights: Tensor
    observed: Tensor | None
    bases: Sequence[str]

    @property
    def separate(self) -> bool:
        """Whether each query has weights of its own."""
        return self.weights.shape[1] > 1

    def some(self, part: slice) -> Pairs:
        """The same for some of the queries."""
        weights = self.weights[:, part] if self.separate else self.weights
        observed = None if self.observed is None else self.observed[:, part]
        return Pairs(self.patterns, self.queries[:, part], weights, observed, self.bases)


class Gradients(NamedTuple):
    """What the slopes of the scores mean for the inputs, each of its input's shape; None for what nobody needs."""

    patterns: Tensor | None
    queries: Tensor | None
    weights: Tensor | None


class Needs(NamedTuple):
    """Which inputs need a gradient."""

    patterns: bool
    queries: bool
    weights: bool

    def only(self, patterns: Tensor, queries: Tensor, weights: Tensor) -> Gradients:
        """Of all three gradients, those needed.

        Args:
            patterns, queries, weights: The gradient of each.
        """
        every = (patterns, queries, weights)
        return Gradients(*(gradient if needed else None for gradient, needed in zip(every, self, strict=True)))


class Readout(NamedTuple):
    """The softmax of the scores times the values, ``(G, Q, v)``, and the log-sum-exp of the scores, ``(G, Q)``."""

    blend: Tensor
    log_sums: Tensor


class Ranking(NamedTuple):
    """The best patterns of each query: ``scores`` and ``indices`` ``(..., Q, k)``, and ``log_sums`` ``(..., Q)``."""

    scores: Tensor
    indices: Tensor
    log_sums: Tensor


class Backend(ABC):
    """One way to compute footprints. Tensors come checked, on one device and of one type, and results are like them."""

    @abstractmethod
    def scores(self, pairs: Pairs) -> Tensor:
        """All scores, ``(G, Q, N)``."""

    @abstractmethod
    def gradients(self, pairs: Pairs, slopes: Tensor, needs: Needs) -> Gradients:
        """From ``slopes (G, Q, N)`` of the scores to those of the inputs.

        Nothing is kept from the forward pass: the terms are made and sorted again.

        Args:
            pairs: What was scored.
            slopes: The gradient of the loss with respect to each score, ``(G, Q, N)``.
            needs: Which inputs need a gradient.
        """

    @abstractmethod
    def sorted_terms(self, patterns: Tensor, queries: Tensor, bases: Sequence[str]) -> Tensor:
        """What the weights multiply, best first.

        Args:
            patterns, queries: ``(G, N, d)`` and ``(G, Q, d)``.
            bases: Names of the similarities whose terms are sorted.

        Returns:
            Terms, ``(G, Q, N, B, d)``.
        """

    def retrieve(self, pairs: Pairs, values: Tensor, bias: Tensor | None) -> Readout:
        """The softmax of scores plus ``bias (G, N)``, times ``values (G, N, v)``, and its log-sum-exp.

        A query for which the bias excludes every pattern (minus infinity) reads out zero.

        Args:
            pairs: What is scored.
            values: What to blend, ``(G, N, v)``.
            bias: Added to the scores, ``(G, N)``, or None.
        """
        queries = pairs.queries
        blend, log_sums = queries.new_empty(*queries.shape[:2], values.shape[-1]), queries.new_empty(queries.shape[:2])
        for part, table in self._tables(pairs, bias):
            log_sums[:, part] = table.logsumexp(-1)
            blend[:, part] = _chances(table) @ values
        return Readout(blend, log_sums)

    def retrieve_gradients(
        self, pairs: Pairs, values: Tensor, bias: Tensor | None, found: Readout, slopes: Readout, needs: Sequence[bool]
    ) -> list[Tensor | None]:
        """From the slopes of a readout to those of patterns, queries, weights, values and bias.

        The scores of some queries at a time are made again.

        Args:
            pairs, values, bias: As in :meth:`retrieve`.
            found: What that returned.
            slopes: The gradient of the loss with respect to it.
            needs: Which of patterns, queries, weights, values and bias need a gradient.

        Returns:
            The five gradients, None for those not needed.
        """
        inputs, of_pairs = (*pairs[:3], values, bias), Needs(*needs[:3])
        # What each query has of its own is written in its place, and the rest summed over the queries.
        per_query = (False, True, pairs.separate, False, False)
        totals = [
            torch.zeros_like(tensor) if tensor is not None and needed else None
            for tensor, needed in zip(inputs, needs, strict=True)
        ]
        for part, table in self._tables(pairs, bias):
            chances, pull = _chances(table), slopes.blend[:, part]
            # The softmax's own slope: what a score adds is weighed against what the blend already has.
            centre = (pull * found.blend[:, part]).sum(-1, keepdim=True) - slopes.log_sums[:, part, None]
            on_scores = chances * (pull @ values.mT - centre)
            through = (None, None, None) if not any(of_pairs) else self.gradients(pairs.some(part), on_scores, of_pairs)
            more = (*through, chances.mT @ pull if needs[3] else None, on_scores.sum(1) if needs[4] else None)
            for total, step, own in zip(totals, more, per_query, strict=True):
                if total is not None and step is not None:
                    (total[:, part] if own else total).add_(step)
        return totals

    def recall(self, pairs: Pairs, k: int, bias: Tensor | None) -> Ranking:
        """The k best scores plus ``bias (G, N)``, best first, their indices, and the log-sum-exp of all scores.

        Args:
            pairs: What is scored.
            k: How many to return.
            bias: Added to the scores, ``(G, N)``, or None.
        """
        queries = pairs.queries
        best = queries.new_empty(*queries.shape[:2], k)
        indices, log_sums = torch.empty_like(best, dtype=torch.long), queries.new_empty(queries.shape[:2])
        for part, table in self._tables(pairs, bias):
            best[:, part], indices[:, part] = table.topk(k, dim=-1)
            log_sums[:, part] = table.logsumexp(-1)
        return Ranking(best, indices, log_sums)

    def _tables(self, pairs: Pairs, bias: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
        """The scores with their bias, for as many queries at a time as the memory budget allows."""
        patterns = pairs.patterns
        for part in split(pairs.queries.shape[1], patterns.shape[0] * patterns.shape[1] * patterns.element_size()):
            table = self.scores(pairs.some(part))
            yield part, table if bias is None else table + bias[:, None]


def _chances(table: Tensor) -> Tensor:
    """The softmax; zero where every pattern is excluded."""
    # Not by way of the log-sum-exp: beside large scores, the log of how many share the best is lost in it.
    return torch.softmax(table, -1).masked_fill(table.amax(-1, keepdim=True) == -torch.inf, 0.0)
