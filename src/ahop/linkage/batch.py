"""Whether a new batch is like the one that a model learned from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ahop.memories.bayesian import BayesianHopfield

# Rows of a batch that are looked at, at most.
_MAX_ROWS = 2048
# The share of genuine rows that may be as unfamiliar, and how much of a batch may be so by chance.
_UNFAMILIAR_SHARE, _CHANCE_LEVEL = 0.05, 1e-3


def unlike(memory: BayesianHopfield, queries: Tensor, seed: int = 0) -> tuple[str, ...]:
    """A note if more rows than by chance are less familiar than those were that the memory learned from.

    Args:
        memory: What was learned from another batch.
        queries: This batch ``(n, q)``, NaN where a value is missing.
        seed: For the sample of a large batch.
    """
    from scipy.stats import betabinom

    similarity = memory.similarity
    genuine = int(similarity.genuine_count)
    place = int((genuine + 1) * _UNFAMILIAR_SHARE)
    if not place or float(similarity.doubt) >= 1:
        return ()
    order = torch.randperm(len(queries), generator=torch.Generator().manual_seed(seed))[:_MAX_ROWS]
    asked = queries[order]
    observed: Any = "not-nan" if bool(asked.isnan().any()) else None
    familiar = memory.familiarity(asked, observed=observed)
    below, count = int((familiar < similarity.least_familiar(_UNFAMILIAR_SHARE)).sum()), len(asked)
    # The level is the k-th of m genuine ones, so that as many below it are beta-binomial.
    if betabinom.sf(below - 1, count, place, genuine + 1 - place) >= _CHANCE_LEVEL:
        return ()
    return (
        f"{100 * below / count:.0f} % of the rows are less familiar than 95 % of those that the model learned from: "
        "this batch is another, or many of its rows are strangers; learn anew, or check answers (--ask)",
    )
