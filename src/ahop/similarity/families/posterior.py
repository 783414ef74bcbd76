r"""What a pattern was, given what is seen of it, where it need not be one of those that are stored.

Patterns are taken for normal, with the mean m and the covariance C of the stored ones, shrunk as far as their number
asks for (Ledoit and Wolf, 2004). If g, with covariance S, is what is seen of :math:`\xi - m`, its covariance with
:math:`\xi` is K, and each dimension has noise of precision p of its own, the posterior mean is

.. math:: \mathbb{E}[\xi \mid x] = m + K P^{1/2} \big(I + P^{1/2} S P^{1/2}\big)^{-1} P^{1/2} g
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Prior(NamedTuple):
    """Patterns, stored or not: their mean ``(d,)`` and their covariance ``(d, d)``, in float64."""

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, patterns: Tensor) -> Prior:
        """The prior that stored patterns ``(N, d)`` tell."""
        # Scikit-learn takes a second to import.
        from sklearn.covariance import ledoit_wolf

        rows = patterns.double()
        mean, spread = rows.mean(0), rows.std(0, unbiased=False)
        if not bool(spread.any()):
            return cls(mean, torch.zeros(len(mean), len(mean)).to(rows))
        # A column is measured in its own spread, so that units decide nothing.
        units = (rows - mean) / torch.where(spread > 0, spread, 1.0)
        shrunk, _ = ledoit_wolf(units.cpu().numpy(), assume_centered=True)
        return cls(mean, torch.as_tensor(shrunk).to(rows) * spread[:, None] * spread)


def expected(mean: Tensor, cross: Tensor, spread: Tensor, precision: Tensor, gaps: Tensor) -> Tensor:
    """The posterior mean of patterns, ``(Q, d)``, by one factorisation for all queries of the same precision.

    Args:
        mean: m, ``(d,)``.
        cross: K, ``(d, e)``.
        spread: S, ``(e, e)``.
        precision: p, ``(e,)``, or of each query ``(Q, e)``; nought where nothing is seen.
        gaps: g, ``(Q, e)``.
    """
    if precision.ndim == 1:
        return mean + _weighed(spread, precision, gaps) @ cross.mT
    alike, group = precision.unique(dim=0, return_inverse=True)
    weighed = torch.empty_like(gaps)
    rows = group.argsort().split(group.bincount(minlength=len(alike)).tolist())
    for own, some in zip(alike, rows, strict=True):
        weighed[some] = _weighed(spread, own, gaps[some])
    return mean + weighed @ cross.mT


def _weighed(spread: Tensor, precision: Tensor, gaps: Tensor) -> Tensor:
    r""":math:`P^{1/2} (I + P^{1/2} S P^{1/2})^{-1} P^{1/2} g` of queries with one precision ``(e,)``, ``(Q, e)``."""
    root = precision.sqrt()
    inner = torch.eye(len(root)).to(spread) + root[:, None] * spread * root
    return root * torch.cholesky_solve((root * gaps).mT, torch.linalg.cholesky(inner)).mT
