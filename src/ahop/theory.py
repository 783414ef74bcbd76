r"""What the paper proves, as code that can be run: which similarity is the best for which corruption.

A similarity is optimal for a corruption when it orders patterns as their likelihoods do, on every query. For
the three elementary corruptions there is a closed form (:func:`optimal_similarity`); noise and bias have one in
common, :class:`~ahop.similarity.Unified`, whose energy falls along :func:`ahop.energy.unified_step` and never
below :func:`energy_bound`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop.memory import AssociativeMemory
from ahop.similarity import Decomposable, Unified
from ahop.variants import Biased, Masked, Noisy, Oracle, Variant


class Precision(Decomposable):
    r"""Distances weighed by how exact each dimension is, :math:`-\sum_i (\xi_i - x_i)^2 / \sigma_i^2`.

    Optimal for noise. The paper divides by what it calls :math:`\sigma_i`, which is a variance.

    Args:
        sigma: The standard deviation of each dimension, ``(d,)``.
    """

    dim: int
    sigma: Tensor

    def __init__(self, sigma: Tensor) -> None:
        super().__init__()
        self.register_buffer("sigma", sigma)
        self.dim = len(sigma)

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return -((patterns - queries) / self.sigma).square()


class Matches(Decomposable):
    r"""The number of dimensions that agree exactly, :math:`\sum_i [\xi_i = x_i]`.

    Optimal for masking, where a value is either kept as it was or drawn anew.

    Example:
        >>> Matches()(torch.eye(3), torch.tensor([[1.0, 0.0, 0.5]]))
        tensor([[2., 0., 1.]])
    """

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return (patterns == queries).to(queries.dtype)


def optimal_similarity(variant: Variant, dim: int) -> Decomposable:
    r"""The similarity that orders patterns as their likelihoods under an elementary corruption do.

    ==========================  ========================================================================
    noise                       :math:`-\sum_i (\xi_i - x_i)^2 / \sigma_i^2`, unsorted
    masking, uniform            :math:`\sum_i [\xi_i = x_i]`
    bias                        :math:`b^\top (x - \xi) - \lVert x - \xi\rVert^2`, with b twice the bias
    ==========================  ========================================================================

    Args:
        variant: :class:`Noisy`, :class:`Masked` or :class:`Biased`.
        dim: Number of dimensions d.

    Example:
        >>> optimal_similarity(ahop.variants.Masked(0.3), 8).name
        'matches'
    """
    if isinstance(variant, Noisy):
        return Precision(torch.as_tensor(variant.sigma, dtype=torch.get_default_dtype()).expand(dim).clone())
    if isinstance(variant, Masked) and (variant.fill == "uniform" or isinstance(variant.fill, tuple)):
        return Matches()
    if isinstance(variant, Biased):
        return Unified(2 * variant.shift(dim))
    kind = type(variant).__name__
    raise ValueError(
        f"variant must be Noisy, Masked with a uniform fill, or Biased; no closed form is known for {kind}"
    )


def agreement(similarity: Decomposable, oracle: Oracle, queries: Tensor) -> float:
    """The share of queries on which a similarity's first choice is as likely as the Oracle's.

    As likely, not the same: patterns can tie.
    """
    likelihood = oracle.scores(queries)
    chosen = likelihood.gather(1, similarity(oracle.patterns, queries).argmax(1, keepdim=True)).squeeze(1)
    best = likelihood.amax(1)
    return float((chosen >= best - 1e-4 * best.abs().clamp_min(1.0)).double().mean())


def energy_bound(memory: AssociativeMemory) -> float:
    r"""What the energy of a memory with :class:`~ahop.similarity.Unified` similarity never falls below.

    .. math:: E(x) \ge -\ln N - \lVert b \rVert^2 / 4

    Example:
        >>> energy_bound(ahop.AssociativeMemory(torch.eye(2), ahop.similarity.Unified(torch.zeros(2)), "softmax"))
        -0.6931471805599453
    """
    if not isinstance(memory.similarity, Unified):
        raise ValueError(f"energy_bound needs a memory with Unified similarity, got {memory.similarity.name!r}")
    return -math.log(len(memory)) - float(memory.similarity.b.square().sum()) / 4
