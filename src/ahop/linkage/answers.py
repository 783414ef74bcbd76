"""What a memory answers to rows of which some are known: each by itself, or all together."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop._checks import UNKNOWN
from ahop._progress import progress
from ahop.memories.bayesian import BayesianHopfield

# Pairs (rows x stored rows) between two pictures of the progress.
_PAIRS_PER_UPDATE = 2**31


class Answers(NamedTuple):
    """Best and second best of each row with their probabilities, -1 and 0 for none, strangers, and what each row has by
    itself, all ``(n,)``; and the stored rows that were asked for more often than there is room, with how often."""

    indices: Tensor
    probabilities: Tensor
    second: Tensor
    second_probabilities: Tensor
    strangers: Tensor
    alone: Tensor
    strained: dict[int, int]


def answers(
    memory: BayesianHopfield,
    queries: Tensor,
    origins: Tensor,
    one_to_one: bool,
    reject: float | None = None,
    verbose: bool = False,
) -> Answers:
    """What is known is its own answer, and taken where each stored row is given away once.

    Args:
        memory: What was learned.
        queries: ``(n, q)``, NaN where a value is missing.
        origins: The stored row of each ``(n,)``, -1 where nobody knows, ``ahop.STRANGER`` where it is none of them.
        one_to_one, reject, verbose: As in :func:`ahop.linkage.link`.
    """
    open = (origins == UNKNOWN).nonzero().squeeze(1)
    first, second = origins.clamp_min(-1), torch.full_like(origins, -1)
    sure, less = (origins >= 0).double(), torch.zeros(len(origins), dtype=torch.float64)
    strangers = torch.zeros_like(origins, dtype=torch.bool)
    alone, strained = first, dict[int, int]()
    if len(open):
        asked = queries[open]
        observed: Any = "not-nan" if bool(asked.isnan().any()) else None
        if one_to_one:
            # What is known is taken: the others share what is left.
            room = torch.ones(len(memory), dtype=torch.long)
            room[origins[origins >= 0]] = 0
            with progress("answering", show=verbose) as bar:
                bar.advance(f"{len(open):,} rows together, one to one")
                found = memory.match(asked, room, observed=observed, reject=reject)
            alone, strained = first.index_copy(0, open, found.alone), found.strained
            first[open], second[open] = found.indices, found.second
            sure[open], less[open] = found.probabilities.double(), found.second_probabilities.double()
            if reject is not None:
                # Where there is less room than rows, some that have no match are no strangers.
                short = len(open) > int(room.sum())
                strangers[open] = (found.indices < 0) & (found.strangers >= (0.5 if short else 0.0))
        else:
            with progress("answering", len(open), show=verbose) as bar:
                for part in open.split(max(1, _PAIRS_PER_UPDATE // len(memory))):
                    best = memory.recall(queries[part], min(2, len(memory)), observed=observed, reject=reject)
                    first[part], sure[part] = best.indices[:, 0], best.probabilities[:, 0].double()
                    strangers[part] = best.indices[:, 0] < 0
                    if best.indices.shape[1] > 1:
                        second[part], less[part] = best.indices[:, 1], best.probabilities[:, 1].double()
                    bar.advance(f"{int(part[-1]) + 1:,} of {len(origins):,} rows", len(part))
    return Answers(first, sure, second, less, strangers, alone, strained)
