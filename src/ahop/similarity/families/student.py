"""Student's distribution, whose tails are heavy: normal in the limit."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_density(squares: Tensor, tails: float, dim: Tensor | int) -> Tensor:
    r"""The log density at a squared whitened distance, in coordinates of unit scale:

    .. math:: \log \Gamma(\tfrac{\nu + d}{2}) - \log \Gamma(\tfrac{\nu}{2}) - \tfrac d2 \log \pi\nu
              - \tfrac{\nu + d}{2} \log(1 + r^2 / \nu)

    Args:
        squares: :math:`r^2`, any shape.
        tails: The degrees of freedom :math:`\nu`; infinite for a normal density.
        dim: The number of dimensions d, one for all or one for each.

    Example:
        >>> round(float(log_density(torch.zeros(()), float("inf"), 2)), 3)
        -1.838
    """
    if math.isinf(tails):
        return -(squares + dim * math.log(2 * math.pi)) / 2
    half = torch.as_tensor((tails + dim) / 2, dtype=squares.dtype, device=squares.device)
    level = torch.lgamma(half) - math.lgamma(tails / 2) - dim / 2 * math.log(tails * math.pi)
    return level - half * torch.log1p(squares / tails)


def weight(squares: Tensor, tails: float, dim: int) -> Tensor:
    """How much a value counts in the M-step: one far off says little, which is what heavy tails mean.

    Args:
        squares: Squared whitened distances.
        tails: The degrees of freedom; infinite for a normal distribution.
        dim: In how many dimensions the distances are taken.
    """
    return torch.ones_like(squares) if math.isinf(tails) else (tails + dim) / (tails + squares)
