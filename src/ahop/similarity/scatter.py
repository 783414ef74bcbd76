"""Patterns that scatter, as a similarity takes them: a mean followed by standard deviations."""

from __future__ import annotations

from torch import Tensor


def mean_and_variance(patterns: Tensor, dim: int) -> tuple[Tensor, Tensor | float]:
    """Means and variances, ``(..., d)`` each, of rows ``(..., 2d)``; rows ``(..., d)`` have no variance.

    Example:
        >>> mean_and_variance(torch.tensor([1.0, 3.0]), 1), mean_and_variance(torch.tensor([1.0]), 1)
        ((tensor([1.]), tensor([9.])), (tensor([1.]), 0.0))
    """
    return patterns[..., :dim], patterns[..., dim:].square() if patterns.shape[-1] > dim else 0.0
