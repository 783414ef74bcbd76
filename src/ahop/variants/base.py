"""Variants: corruptions that can be drawn and scored."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._checks import as_matrix, as_queries, integer
from ahop._component import Component
from ahop.variants.channel import Channel


class Samples(NamedTuple):
    """Corrupted ``queries`` ``(n, d)`` and the indices ``(n,)`` of the patterns they came from, ``origins``."""

    queries: Tensor
    origins: Tensor


class Variant(Component):
    """A corruption: draws queries from patterns, and says how likely each pattern was to give a query.

    A subclass gives :meth:`corrupt` and :meth:`pass_through`. Whatever a variant draws once for a whole world,
    like the signs of a bias, follows from its ``seed`` alone; what it draws for each query comes from a
    generator that starts from the same seed and moves on with every call.
    """

    seed: int

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.seed = integer(seed, "seed", 0)
        # Not the seed itself: the signs of a bias come from that, and would repeat here.
        self._generator = torch.Generator().manual_seed(self.seed + 7919)

    @abstractmethod
    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        """One corrupted copy of each row."""

    @abstractmethod
    def pass_through(self, channel: Channel) -> Channel:
        """What is known of a query before this corruption, turned into what is known after it."""

    def sample(self, patterns: Any, n: int, generator: torch.Generator | None = None) -> Samples:
        """Draw n queries, each from a pattern drawn uniformly.

        Args:
            patterns: ``(N, d)``.
            n: How many.
            generator: Where the draw comes from; None continues this variant's own.
        """
        patterns = as_matrix(patterns, "patterns")
        n = integer(n, "n", 0)
        generator = self._generator if generator is None else generator
        origins = torch.randint(len(patterns), (n,), generator=generator)
        return Samples(self.corrupt(patterns[origins], generator), origins)

    def log_likelihood(self, patterns: Any, queries: Any, *, spread: Any = None) -> Tensor:
        r"""How likely each pattern is to give each query, :math:`\log p(x \mid \xi)`.

        A corruption without noise leaves exact copies of a value; their point mass is scored as a Gaussian of
        standard deviation 1e-4, so that scores stay finite and exact matches outweigh everything else. See
        :class:`Masked` for masks of an exact count.

        Args:
            patterns: ``(N, d)``.
            queries: ``(n, d)``.
            spread: The standard deviation of a measurement of each pattern, ``(N, d)``: noise of its own, before all
                else. Not everything can be scored behind that: what acts on each value by itself, noise that values
                share, and rotations. None scatters nothing.

        Shape:
            to ``(n, N)``.
        """
        patterns = as_matrix(patterns, "patterns")
        rows = as_queries(queries, patterns, None).rows
        if rows.ndim != 2:
            raise ValueError(f"queries must be a matrix, one row each, got shape {tuple(rows.shape)}")
        if spread is None:
            return self._scores(patterns, rows)
        deviations = as_matrix(spread, "spread").to(patterns)
        if deviations.shape != patterns.shape:
            raise ValueError(f"spread must be {tuple(patterns.shape)}, like patterns; got {tuple(deviations.shape)}")
        return self._scattered_scores(patterns, deviations.square(), rows)

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        """Log likelihoods of what :meth:`log_likelihood` has checked."""
        return self.pass_through(Channel.clean(patterns.shape[1])).log_likelihood(patterns, queries)

    def _scattered_scores(self, patterns: Tensor, variance: Tensor, queries: Tensor) -> Tensor:
        """The same where measurements of patterns have a variance, ``(N, d)``."""
        return self.pass_through(Channel.clean(patterns.shape[1]).noised(variance)).log_likelihood(patterns, queries)
