"""What known origins say in an E-step: a query is shared out among all patterns, unless its origin is known."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def ruled_out(origins: Tensor, count: int) -> Tensor:
    """Which of so many patterns a query does not come from, as its origin is known to be another, ``(n, N)``.

    Args:
        origins: ``(n,)``, -1 where nobody knows.
        count: The number of patterns N.

    Example:
        >>> ruled_out(torch.tensor([1, -1]), 2)
        tensor([[ True, False],
                [False, False]])
    """
    own = origins[:, None]
    return (own >= 0) & (own != torch.arange(count, device=origins.device))


def assign_known(shares: Tensor, origins: Tensor) -> None:
    """Give queries of known origin to it alone, in place.

    Args:
        shares: The share of each pattern in each query, ``(n, N)``.
        origins: ``(n,)``, -1 where nobody knows.

    Example:
        >>> shares = torch.full((2, 2), 0.5)
        >>> assign_known(shares, torch.tensor([1, -1]))
        >>> shares
        tensor([[0.0000, 1.0000],
                [0.5000, 0.5000]])
    """
    known = (origins >= 0).nonzero().squeeze(1)
    shares[known] = nn.functional.one_hot(origins[known], shares.shape[1]).to(shares)
