r"""What papers prove, as code that can be run: which similarity is the best for which corruption, and what fits.

A similarity is optimal for a corruption when it orders patterns as their likelihoods do, on every query. For
the three elementary corruptions there is a closed form (:func:`optimal_similarity`); noise and bias have one in
common, :class:`~ahop.similarity.Unified`, whose energy falls along :func:`ahop.energy.unified_step` and never
below :func:`energy_bound`. How long a sequence may be is :func:`sequence_capacity`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop._checks import integer
from ahop.memories.base import AssociativeMemory
from ahop.memories.oracle import Oracle
from ahop.similarity import Decomposable, Matches, Precision, Unified
from ahop.variants import Biased, Masked, Noisy, Variant


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

    Args:
        similarity: What is judged.
        oracle: The true likelihood and the patterns.
        queries: ``(n, d)``.
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


def sequence_capacity(dim: int, k: int | None = None) -> float:
    r"""How many transitions between random states of -1 and +1 a :class:`ahop.SequenceHopfield` knows by heart.

    .. math:: P_k = \frac{d^k}{2 \, (2k-1)!! \, \ln d}, \qquad
        P_{\exp} = \frac{1}{2 \ln d} \Big(\frac{e^2}{\cosh 2}\Big)^{d-1}

    (Chaudhry et al., 2023). A unit is driven by the right pattern with 1, and by each of the others with
    :math:`\pm f(m)`, f being scaled to :math:`f(1) = 1`. The sum of these has the variance
    :math:`\sigma^2 = P \, \mathrm{E} f(m)^2`, which is :math:`P \, (2k-1)!! / d^k` for powers and
    :math:`P \, (\cosh 2 / e^2)^{d-1}` for the exponential. Were it Gaussian, a unit would go wrong with a probability
    near :math:`e^{-1/2\sigma^2}`, and :math:`\sigma^2 = 1 / (2 \ln d)` would make that 1 in d. A transition is then
    right, in all its units, with probability :math:`e^{-1/\sqrt{4\pi \ln d}}`: .88 for 100 units.

    For powers that is what happens. The sum of exponentials is far from Gaussian: most of it comes from the few
    patterns nearest to the state, so that the share of right transitions falls slowly, and not in one place.

    Args:
        dim: Number of units d.
        k: The power; None is the exponential.

    Example:
        >>> [round(sequence_capacity(100, k)) for k in (1, 2, 3)], round(sequence_capacity(20))
        ([11, 362, 7238], 61983)
    """
    dim = integer(dim, "dim", 2)
    if k is None:
        return (math.exp(2) / math.cosh(2)) ** (dim - 1) / (2 * math.log(dim))
    odd = math.prod(range(1, 2 * integer(k, "k", 1), 2))
    return dim**k / (2 * odd * math.log(dim))
