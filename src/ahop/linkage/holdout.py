"""How often a memory finds pairs that it was not told of, though it saw their incoming rows, as it will all others."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._checks import UNKNOWN
from ahop.learning.holdout import hidden_folds
from ahop.linkage.answers import answers
from ahop.memories.bayesian import BayesianHopfield

# Each costs a fit: half of the pairs judge what the other half teaches.
FOLDS = 2


class Labels(NamedTuple):
    """How probable matches were that labels judged, and whether each was right, both ``(m,)``."""

    probabilities: Tensor
    right: Tensor


def held_out(
    patterns: Tensor,
    queries: Tensor,
    origins: Tensor,
    *,
    one_to_one: bool,
    observed: Any,
    standardise: bool,
    seed: int,
    verbose: bool,
) -> Labels:
    """Matches of known pairs that were hidden, a fold at a time; folds share no stored row.

    One to one, they are matched together with all rows that nobody knows, as these will be.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, q)``.
        origins: ``(n,)``, -1 where nobody knows, ``ahop.STRANGER`` where it is none of the patterns.
        one_to_one: As in :func:`ahop.linkage.link`.
        observed, standardise: As in :meth:`~ahop.memories.BayesianHopfield.fit`.
        seed: For folds and fits.
        verbose: Whether to show progress when it takes long.
    """
    sure, right = [], []
    for hidden in hidden_folds(origins, FOLDS, seed):
        memory = BayesianHopfield(patterns)
        shown = origins.masked_fill(hidden, UNKNOWN)
        room = 1 if one_to_one else None
        memory.fit(queries, shown, observed=observed, room=room, standardise=standardise, seed=seed, verbose=verbose)
        asked = hidden | one_to_one
        found = answers(memory, queries[asked], shown[asked], one_to_one)
        sure.append(found.probabilities[hidden[asked]])
        right.append(found.indices[hidden[asked]] == origins[hidden])
    return Labels(torch.cat(sure), torch.cat(right))
