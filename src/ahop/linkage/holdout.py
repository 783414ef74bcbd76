"""How often a memory finds pairs that it was not told of, though it saw their incoming rows, as it will all others."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import Certificate

# Each costs a fit: half of the pairs judge what the other half teaches.
_FOLDS = 2


def held_out(
    patterns: Tensor, queries: Tensor, origins: Tensor, *, observed: Any, seed: int, verbose: bool
) -> Certificate:
    """First choices for known pairs that were hidden, a fold at a time; folds share no stored row.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, q)``.
        origins: ``(n,)``, -1 where nobody knows.
        observed: As in :meth:`~ahop.memories.BayesianHopfield.fit`.
        seed: For folds and fits.
        verbose: Whether to show progress when it takes long.
    """
    items = origins[origins >= 0].unique()
    items = items[torch.randperm(len(items), generator=torch.Generator().manual_seed(seed))]
    right = labels = 0
    for fold in range(_FOLDS):
        hidden = torch.isin(origins, items[fold::_FOLDS])
        memory = BayesianHopfield(patterns)
        memory.fit(queries, origins.masked_fill(hidden, -1), observed=observed, seed=seed, verbose=verbose)
        first = memory.recall(queries[hidden], observed=observed).indices[:, 0]
        right, labels = right + int((first == origins[hidden]).sum()), labels + int(hidden.sum())
    return Certificate(right, labels)
