r"""How far measurements of each item scatter, from few of each.

Variances of few measurements are rough, but all together they tell how unlike items are. Empirical Bayes (Smyth, 2004)
takes an item's variance to be drawn around :math:`s_0^2`, as if from :math:`d_0` degrees of freedom more, so that

.. math:: \tilde s_k^2 = \frac{d_0 s_0^2 + d_k s_k^2}{d_0 + d_k}

with :math:`d_k` the measurements less one. The mean and the variance of :math:`\log s_k^2` give both numbers: items
that scatter alike share one variance, and items that do not keep their own.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

# A variance of nought is one that rounding has hidden: at least so much of the common one.
_LEAST_VARIANCE_SHARE = 1e-5
# Degrees of freedom between none of their own and all alike.
_MIN_FREEDOM, _MAX_FREEDOM = 1e-2, 1e6


def moderated(squares: Tensor, free: Tensor) -> Tensor:
    """Variances ``(N, d)`` from the sums of squared residuals ``(N, d)`` of items with so many degrees of freedom
    ``(N, 1)``, of which one at least must have some.

    Example:
        >>> free = torch.tensor([[9.0], [9.0], [9.0], [0.0]])            # one item was measured once
        >>> alike = moderated(torch.tensor([[8.0], [9.0], [10.0], [0.0]]), free)
        >>> bool((alike - alike[0]).abs().max() < 1e-3)
        True
        >>> unlike = moderated(torch.tensor([[0.01], [9.0], [900.0], [0.0]]), free)
        >>> bool((unlike[0] < 0.1) & (unlike[2] > 50))
        True
    """
    own = squares.double() / free.clamp_min(1)
    least = _LEAST_VARIANCE_SHARE * (squares.sum(0) / free.sum()).double()
    half, several = free.double() / 2, (free > 0).squeeze(1)
    logs = own.clamp_min(least + torch.finfo(torch.float64).tiny).log()[several]
    logs = logs - torch.digamma(half[several]) + half[several].log()
    centre, count = logs.mean(0), max(1, len(logs) - 1)
    # What logarithms vary by beside the roughness of each.
    unlike = (logs - centre).square().sum(0).mean() / count - torch.polygamma(1, half[several]).mean()
    more = half.new_tensor(_inverse_trigamma(float(unlike)))
    common = (centre + torch.digamma(more) - more.log()).exp()
    return ((more * common + half * own) / (more + half)).to(squares)


def _inverse_trigamma(value: float) -> float:
    """Where the trigamma function, which falls, has this value; an end of the range, where it has not."""
    # SciPy takes a while to import.
    from scipy.optimize import brentq

    def excess(log: float) -> float:
        return float(torch.polygamma(1, torch.tensor(log, dtype=torch.float64).exp())) - value

    # The range spans eight orders of magnitude.
    low, high = math.log(_MIN_FREEDOM), math.log(_MAX_FREEDOM)
    if not excess(low) > 0:
        return _MIN_FREEDOM
    return math.exp(brentq(excess, low, high, xtol=1e-15)) if excess(high) < 0 else _MAX_FREEDOM
