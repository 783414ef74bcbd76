"""A reach for every pattern: weights of those that a query is near to, and none for a stranger."""

from __future__ import annotations

import torch
from torch import Tensor

from ahop.separation.base import shares
from ahop.separation.tempered import Tempered


class Epanechnikov(Tempered):
    r"""Exact recall of what is near and of nothing else: out of its reach, a pattern has no part in an answer.

    .. math:: E(x) = -\tfrac1\beta \log \sum_i \mathrm{ReLU}\big(1 - \tfrac\beta2 \lVert x - \xi_i \rVert^2\big), \qquad
        \mathrm{sep}(s)_i \propto \big[\, 1 + \tfrac\beta2 s_i > 0 \,\big]

    The log-sum-ReLU energy of Hoover and others (Dense associative memory with Epanechnikov energy, 2025), with the
    similarity ``"distance"``. A pattern reaches as far as :math:`\sqrt{2 / \beta}`. Where the gradient of E is zero, a
    state is the mean of the patterns that reach it; the step to that mean never raises E, and comes to rest after
    finitely many. So a stored pattern is exactly a fixed point as long as it is out of the reach of all others, and
    the mean of some patterns is a new memory if it is in the reach of these and of no others.

    The probability of a pattern is its share of the density, :math:`\mathrm{ReLU}(1 + \tfrac\beta2 s_i)` of the sum.
    **Strangers** are queries that no pattern reaches: a recall refuses them, with -1 for every index and a probability
    of exactly 0, a state stays where it is, and ``values`` or a layer read out zero. Their energy is flat and finite:
    the paper's :math:`\epsilon`, added to the sum, is the least number of the type.

    A reach is a distance. Dot products, the default of layers, and cosines may be positive, as if a query were nearer
    to a pattern than the pattern itself: every pattern on the query's side then reaches it, and strangers have an
    answer.

    Weights are constant within a reach, so gradients pass through the energy and the probabilities, but not through
    the weights. There is no prior: it would change reaches.

    Args:
        beta: Inverse temperature, positive. Learned when ``learn=True``.

    Example:
        >>> memory = ahop.AssociativeMemory([[0.0, 0.0], [3.0, 0.0]], "distance", "epanechnikov")
        >>> memory.retrieve([0.9, 0.3])
        tensor([0., 0.])
        >>> memory.recall([[0.9, 0.3], [0.0, 9.0]]).indices.flatten()   # the second is a stranger
        tensor([ 0, -1])
    """

    bounded = True
    in_a_bowl = False

    @property
    def takes_prior(self) -> bool:
        return False

    def forward(self, scores: Tensor) -> Tensor:
        return shares((self._heights(scores) > 0).to(scores.dtype))

    def probabilities(self, scores: Tensor) -> Tensor:
        r"""The shares of the patterns in the density, which are all zero for a stranger."""
        heights = self._heights(scores)
        return shares(heights / heights.amax(-1, keepdim=True).clamp_min(torch.finfo(heights.dtype).tiny))

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The log density :math:`\tfrac1\beta \log \sum_i \mathrm{ReLU}(1 + \tfrac\beta2 s_i)`, which is not convex.

        Its gradient is that of the weights times :math:`n / (2 \sum_i \mathrm{ReLU}(1 + \tfrac\beta2 s_i))`, where n
        patterns reach the query.
        """
        density = self._heights(scores).sum(-1)
        return density.clamp_min(torch.finfo(density.dtype).tiny).log() / self.beta

    def _heights(self, scores: Tensor) -> Tensor:
        """Of the kernel around each pattern at the query."""
        return torch.relu(1 + self.beta / 2 * scores)
