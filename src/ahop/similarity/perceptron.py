"""The baseline without a memory: a perceptron from queries to the indices of patterns."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ahop._checks import integer
from ahop._queries import Queries
from ahop.learning.gradient import adam, retrieval_loss
from ahop.learning.report import FitReport
from ahop.similarity.base import Similarity


class Perceptron(Similarity):
    """Four layers from a query to one score per pattern; it never looks at the patterns.

    Args:
        dim: Number of dimensions d.
        patterns: How many patterns there are.
        hidden: Width of the layers in between.
        seed: For the start.
    """

    def __init__(self, dim: int, patterns: int, hidden: int = 512, seed: int = 0) -> None:
        super().__init__()
        self.dim, self.patterns, self.hidden, self.seed = dim, patterns, hidden, integer(seed, "seed", 0)
        layers: list[nn.Module] = []
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            for width, following in pairwise([dim, hidden, hidden, hidden, patterns]):
                layers += [nn.Linear(width, following), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        scores: Tensor = self.layers(Queries(queries, observed).masked(queries))
        return scores

    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
        steps: int = 200,
        rate: float = 1e-3,
    ) -> FitReport:
        """Take steps of Adam on the retrieval loss of queries whose origins are known."""
        if origins is None:
            raise ValueError("origins must be given: a perceptron learns from labelled pairs")

        def backward() -> Tensor:
            loss = retrieval_loss(self(patterns, queries, observed), origins)
            loss.backward()
            return loss.detach()

        return adam(self.parameters(), backward, steps=steps, rate=rate)
