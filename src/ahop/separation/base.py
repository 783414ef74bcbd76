"""The contract of a separation: from scores to weights, and the energy that goes with them."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor

from ahop._component import Component


class Separation(Component):
    """Turns scores ``(..., N)`` into weights ``(..., N)`` that favour the best patterns.

    ``probabilistic`` tells whether the weights are probabilities of the patterns, which sum to ``total``. ``bounded``
    tells whether patterns have a reach, so that a query may lie out of all of it and get no weight. ``in_a_bowl`` tells
    whether an energy of it needs the similarity's bowl to fall.
    """

    probabilistic = True
    total = 1
    bounded = False
    in_a_bowl = False

    @abstractmethod
    def forward(self, scores: Tensor) -> Tensor: ...

    @property
    def inverse_temperature(self) -> Tensor | float:
        """What the scores are multiplied by; a log prior is divided by it to count once."""
        return 1.0

    @property
    def takes_prior(self) -> bool:
        """Whether a log prior may be added to the scores, of which a uniform one must change nothing."""
        return self.probabilistic

    @property
    def margin(self) -> float:
        r"""The lead at which weights become exact.

        Those of the best ``total`` patterns are 1 and all others 0 once :math:`\beta` times the worst of these scores
        is ahead of :math:`\beta` times every other by as much.

        Infinite where no lead is enough, as for softmax.
        """
        return math.inf

    def regulariser(self, weights: Tensor) -> Tensor:
        r"""The convex :math:`\Omega` of weights ``(..., N)`` that maximise :math:`p^\top s - \Omega(p)`, ``(...)``."""
        raise ValueError(f"{self.name} separation maximises no regularised score, so it has no regulariser")

    def conjugate(self, scores: Tensor) -> Tensor:
        """The function of the scores whose gradient the weights follow, ``(...)``; energies are made of it.

        Convex, but for :class:`~ahop.separation.Epanechnikov`.
        """
        raise ValueError(f"{self.name} separation has no convex conjugate, so no energy is made of it")

    def probabilities(self, scores: Tensor) -> Tensor:
        """The weights as a distribution: negative ones, if any, cut off."""
        weights = self(scores)
        return weights if self.probabilistic else shares(weights.clamp_min(0))


def shares(sizes: Tensor) -> Tensor:
    """Of their sum, along the last dimension; all zero where that is."""
    return sizes / sizes.sum(-1, keepdim=True).clamp_min(torch.finfo(sizes.dtype).tiny)
