"""Sets: the k patterns that belong to a query together."""

from __future__ import annotations

import entmax
import torch
from torch import Tensor

from ahop._checks import integer
from ahop.separation.tempered import Regularised


class KSubsets(Regularised):
    r"""The best k patterns together, where a query is made of several.

    .. math:: \mathrm{sep}(s) = \arg\max_p \; p^\top \beta s - \tfrac12 \lVert p \rVert^2
        \quad\text{where}\quad 0 \le p_i \le 1, \; \sum_i p_i = k

    That is the projection of :math:`\beta s` on the convex hull of all sets of k patterns: SparseMAP on k-subsets
    (Niculae and others, 2018; in Hopfield networks Santos and others, 2024). A weight is the probability of a pattern
    to be in the set, so that the weights, and the probabilities of a recall, sum to k. What is read out is the sum of
    the set. With ``k=1`` it is :class:`~ahop.separation.Sparsemax`.

    Once the k-th best pattern has a lead of 1 in :math:`\beta s`, its margin, the weights are exactly the best k.
    In one step, the best k are the same under any separation that keeps the order of scores. Here a state can also come
    to rest at a set, where softmax ends at one pattern or at a blur of many, and sets can be learned
    (:func:`~ahop.separation.fenchel_young_loss`).

    Not here are sets of at most k: how many they hold depends on where scores are zero, which means nothing for
    distances and likelihoods, while a prior, a loss and float32 rely on weights that stay as they are when all scores
    move alike. Nor are sets with a structure, such as sequences: these need scores of pairs of patterns.

    Args:
        k: How many patterns, at least 1 and at most as many as there are.
        beta: Inverse temperature, positive. Learned when ``learn=True``.

    Example:
        >>> KSubsets(k=2)(torch.tensor([3.0, 2.0, 0.5]))
        tensor([1., 1., 0.])
        >>> KSubsets(k=2)(torch.tensor([3.0, 2.0, 1.8]))
        tensor([1.0000, 0.6000, 0.4000])
    """

    def __init__(self, k: int = 2, beta: float = 1.0, *, learn: bool = False) -> None:
        super().__init__(beta, learn=learn)
        self.k = self.total = integer(k, "k", 1)

    def forward(self, scores: Tensor) -> Tensor:
        count = scores.shape[-1]
        if self.k > count:
            raise ValueError(f"k must be between 1 and {count}, the number of patterns; got {self.k}")
        last = scores.detach().topk(self.k, dim=-1).values[..., -1:]
        # From the last of the k on: what is a margin ahead of it has a weight of 1 anyway, and a margin behind it of 0.
        leads = (self.beta * (scores - last)).clamp(-1, 1)
        # As a matrix: with dimensions of size 1, the gradient of entmax 1.3 has another shape.
        rows = leads.reshape(-1, count)
        weights: Tensor = entmax.budget_bisect(rows, budget=self.k, dim=-1).reshape(leads.shape)
        # Bisection ends a hair beside the weights that the margin makes exact.
        exact = (leads > -1).sum(-1, keepdim=True) == self.k
        return torch.where(exact, (leads >= 0).to(weights.dtype), weights)

    def generator(self, weights: Tensor) -> Tensor:
        r"""Half of :math:`p^\top p - k`."""
        return (weights.square().sum(-1) - self.k) / 2

    @property
    def margin(self) -> float:
        return 1.0

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}"
