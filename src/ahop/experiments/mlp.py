"""The paper's baseline without a memory: a perceptron from queries to the indices of patterns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ahop._checks import Observed
from ahop.fitting import adam, retrieval_loss
from ahop.memory import AssociativeMemory
from ahop.similarity import Similarity


class Perceptron(Similarity):
    """Four layers from a query to one score per pattern; it never looks at the patterns."""

    def __init__(self, dim: int, patterns: int, hidden: int = 512) -> None:
        super().__init__()
        self.dim, self.patterns, self.hidden = dim, patterns, hidden
        widths = [dim, hidden, hidden, hidden, patterns]
        layers: list[nn.Module] = []
        for width, following in pairwise(widths):
            layers += [nn.Linear(width, following), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        scores: Tensor = self.layers(queries if observed is None else queries * observed)
        return scores


class PerceptronMemory(AssociativeMemory):
    """Reads out stored patterns by the perceptron's word; fitted by 200 steps of Adam at 1e-3."""

    name = "mlp"

    def __init__(self, patterns: Any, *, seed: int = 0) -> None:
        count, dim = patterns.shape
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            perceptron = Perceptron(dim, count)
        super().__init__(patterns, perceptron, "softmax")
        self.seed = seed

    def fit(self, queries: Any = None, origins: Any = None, *, observed: Observed = None) -> PerceptronMemory:
        """Fit to queries whose origins are known."""
        queries, origins, _ = self._pairs(queries, origins, observed)

        def backward() -> Tensor:
            loss = retrieval_loss(self._scores(queries, None), origins)
            loss.backward()
            return loss.detach()

        return self._learned(adam(self.similarity.parameters(), backward, steps=200, rate=1e-3))
