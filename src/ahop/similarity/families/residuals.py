"""What residuals say of the kinds of models that are worth a try, each beside what chance alone would make of them."""

from __future__ import annotations

import torch
from torch import Tensor

# Something else is looked for when residuals are so much more correlated than shuffled ones, and are so many.
_MIN_CORRELATION_RATIO, _MIN_RESIDUALS = 1.5, 16
# Steps of a power iteration: a few digits of the largest singular value are enough.
_STEPS = 30


def are_correlated(gaps: Tensor, seed: int) -> bool:
    """Whether residuals ``(n, d)`` are more correlated than they would be if every dimension had been hit by itself."""
    gaps = _standard(gaps)
    order = torch.rand(gaps.shape, generator=torch.Generator().manual_seed(seed)).argsort(0).to(gaps.device)
    return len(gaps) >= _MIN_RESIDUALS and strength(gaps) > _MIN_CORRELATION_RATIO * strength(gaps.gather(0, order))


def go_with(gaps: Tensor, stored: Tensor, seed: int) -> bool:
    """Whether residuals are correlated with other dimensions of their patterns, by more than chance.

    Args:
        gaps: The residuals, ``(n, d)``.
        stored: Their patterns, ``(n, d)``.
        seed: Seed of the permutation that chance is judged by.
    """
    gaps, stored = _standard(gaps), _standard(stored)
    order = torch.randperm(len(stored), generator=torch.Generator().manual_seed(seed)).to(stored.device)
    found, by_chance = (strength(_off_diagonal(gaps.mT @ rows)) for rows in (stored, stored[order]))
    return len(gaps) >= _MIN_RESIDUALS and found > _MIN_CORRELATION_RATIO * by_chance


def strength(matrix: Tensor) -> float:
    """The square of the largest singular value, by power iteration.

    Example:
        >>> round(strength(torch.tensor([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])), 3)
        16.0
    """
    # torch.svd_lowrank draws from the global generator, so that the same fit would differ from run to run, and is less
    # exact at this price; torch.linalg.svdvals takes three times as long.
    vector = torch.randn(matrix.shape[1], generator=torch.Generator().manual_seed(0)).to(matrix)
    size = 0.0
    for _ in range(_STEPS):
        vector = matrix.mT @ (matrix @ (vector / vector.norm().clamp_min(1e-30)))
        size = float(vector.norm())
    return size


def _standard(rows: Tensor) -> Tensor:
    return (rows - rows.mean(0)) / rows.std(0, unbiased=False).clamp_min(1e-12)


def _off_diagonal(matrix: Tensor) -> Tensor:
    return matrix - torch.diag(matrix.diagonal())
