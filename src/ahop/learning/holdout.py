"""A fifth of what there is to learn from, held out to decide what is worth learning."""

from __future__ import annotations

import torch
from torch import Tensor


def holdout_split(count: int, seed: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """A random hold-out split, of one row in five.

    Args:
        count: The number of rows.
        seed: Seed of the draw.
        device: Where the indices are needed.

    Returns:
        Indices of the rows to learn from, and of those to judge by.

    Example:
        >>> learn, judge = holdout_split(10, seed=0)
        >>> len(learn), len(judge), sorted(torch.cat([learn, judge]).tolist()) == list(range(10))
        (8, 2, True)
    """
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).to(device)
    return order[count // 5 :], order[: count // 5]
