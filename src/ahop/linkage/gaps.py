"""Values that rows miss, by what their other columns say of them."""

from __future__ import annotations

import numpy as np

# They are filled in this many times at most, or until they move by less than that share of the spread; a component of
# less than this share of the largest variance is mostly noise.
_ROUNDS, _SETTLED, _SHRINKAGE = 100, 1e-4, 1e-3


def filled(rows: np.ndarray) -> np.ndarray:
    """The rows with the values that they miss as their principal components have them (iterative PCA, shrunk)."""
    gaps = np.isnan(rows)
    whole = np.where(gaps, np.nanmean(rows, 0), rows)
    for _ in range(_ROUNDS if gaps.any() else 0):
        mean, before = whole.mean(0), whole[gaps]
        left, values, right = np.linalg.svd(whole - mean, full_matrices=False)
        kept = values**3 / (values**2 + _SHRINKAGE * values[0] ** 2 + np.finfo(float).tiny)
        whole[gaps] = (mean + (left * kept) @ right)[gaps]
        if np.abs(whole[gaps] - before).max() <= _SETTLED * whole.std():
            break
    return whole
