"""Learn from queries of which each pattern takes no more than it has room for: its capacity.

What speaks for a pair is then not the query alone, but also that no other query may have the pattern. All queries are
matched together under the model that was chosen: assigned to patterns (:mod:`ahop.learning.assignment`), and shared out
among them (:mod:`ahop.learning.transport`). Pairs of the assignment that are more likely than not are taken for known,
and its family is learned once more; every one knows what to do with known origins. Which family is chosen, how sure
it may be and whether it is better than chance is decided without such pairs: nobody has checked them.

Prices, as a prior under which all queries are shared out again, would be the textbook's way (posterior regularisation;
Ganchev and others, 2010). They were tried, and make the noise too large where there is much of it: a plan is a
mean-field approximation, which takes a pattern away from the query that it belongs to where others might have it, too.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ahop.learning.assignment import assigned
from ahop.learning.transport import shared_out
from ahop.similarity.density import Density
from ahop.similarity.families.candidate import Candidate
from ahop.similarity.families.training import TrainingData

# Queries x patterns that are matched together, at most; and how likely a pair must be.
_MAX_SCORES, _LIKELY_PAIR = 2**23, 0.5


@torch.no_grad()
def within_room(data: TrainingData, chosen: Candidate) -> Candidate:
    """The model that was chosen, learned again with pairs that the constraint makes likely.

    Args:
        data: What there is to learn from, with ``room``.
        chosen: What was learned without. It stays as it is where all origins are known, where there is room for all
            first choices, and where it cannot be learned again: a moved space keeps to a room by itself.
    """
    if data.room is None or chosen.anew is None or chosen.again is None:
        return chosen
    origins = _likely_origins(data, chosen.model)
    return chosen if origins is None else replace(chosen, model=chosen.anew(replace(data, origins=origins)))


@torch.no_grad()
def _likely_origins(data: TrainingData, model: Density) -> Tensor | None:
    """The origins that are known, and those that are more likely than not under the constraint; -1 elsewhere. None
    where there is room for all as it is."""
    assert data.room is not None
    count, origins = len(data.patterns), data.all_origins.clone()
    room = (data.room - torch.bincount(origins[data.known], minlength=count)).clamp_min(0)
    # Of fewer queries, a pattern still takes no more than its room.
    rows = (origins < 0).nonzero().squeeze(1)[: max(1, _MAX_SCORES // count)]
    some = data.part(rows)
    table = (model(some.patterns, some.queries, some.observed) + data.log_priors).double().log_softmax(1)
    every = torch.arange(count, device=table.device).expand_as(table)
    best = table.sort(1, descending=True)
    found = assigned(best.values.cpu(), best.indices.cpu(), room.cpu(), lambda few: table[few].cpu()).to(rows)
    if found.equal(best.indices[:, 0]):
        return None
    # Where there are more queries than room, all patterns have more of it for the shares to sum up.
    seats = room * max(1.0, len(rows) / max(1, int(room.sum())))
    plan = shared_out(table, every, seats).log.gather(1, found.clamp_min(0)[:, None]).squeeze(1)
    origins[rows] = torch.where((found >= 0) & (plan.exp() > _LIKELY_PAIR), found, -1)
    return origins
