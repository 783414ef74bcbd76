"""What anybody could do without a memory, judged by the same pairs: if it is as good, it should be used."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from ahop._blocks import split
from ahop._checks import STRANGER, UNKNOWN
from ahop.learning.assignment import assigned
from ahop.learning.chance import few_more_than_chance

NEAREST, RIDGE = "nearest by cosine", "ridge regression"
# Enough rows to judge by; more would only take longer.
_JUDGED_ROWS = 2000
# Pairs that a regression needs, folds that judge it, and how strongly it may be drawn to zero.
_MIN_PAIRS, _FOLDS, _STRENGTHS = 10, 5, np.logspace(-3, 4, 8)
# Pairs of rows up to which all are matched together, and candidates that each then brings.
_MAX_ASSIGNED_PAIRS, _CANDIDATES = 2**23, 32
# What is more than chance, in standard errors: two would be passed by four answers that differ, all in one direction.
_MIN_STANDARD_ERRORS = 2.5


@dataclass(frozen=True)
class Alternative:
    """Something plain, and how it does.

    Attributes:
        name: What it is.
        right, labels: How many origins it found, of how many that it had not learned from.
        agreement: The share of rows for which it answers as the memory does; NaN where labels judge.
        behind: Whether it is right less often than the matches of the same rows by more than chance (1), more often
            (-1), or neither (0); None where answers have not judged both.
    """

    name: str
    right: int = 0
    labels: int = 0
    agreement: float = math.nan
    behind: int | None = None

    @property
    def accuracy(self) -> float:
        """The share of origins that it found; NaN without labels."""
        return self.right / self.labels if self.labels else math.nan


def alternatives(
    stored: np.ndarray,
    incoming: np.ndarray,
    origins: Tensor,
    first: Tensor | None,
    *,
    shared: bool,
    one_to_one: bool = False,
    seed: int = 0,
) -> tuple[Alternative, ...]:
    """The plain alternatives that apply, simplest first.

    The nearest stored row by cosine, of columns that are centred on each side and scaled as the stored ones; and ridge
    regression from incoming to stored rows, in folds that share no stored row (cross-validation).

    Args:
        stored: ``(N, d)``.
        incoming: ``(n, q)``, NaN where a value is missing.
        origins: The stored row of each incoming one ``(n,)``, -1 where nobody knows it, ``ahop.STRANGER`` where it is
            none of them.
        first: What the memory answers ``(n,)``, -1 for none; None where it found nothing to agree on.
        shared: Whether the columns are the same.
        one_to_one: Whether each stored row is given away once, by the largest sum of cosines (Hungarian method), as the
            memory does; where rows are too many for that, each is matched by itself.
        seed: For the rows that are judged and for folds.
    """
    draw, together = np.random.default_rng(seed), _sharing(stored, origins) if one_to_one else None
    known = np.flatnonzero((origins >= 0).numpy())
    found = []
    # What is known to be none of the stored rows has no match to agree on.
    judged = draw.permutation(known if len(known) else np.flatnonzero((origins == UNKNOWN).numpy()))[:_JUDGED_ROWS]
    if shared and len(judged) and (len(known) or first is not None):
        choices = by_cosine(stored, incoming, judged, together)
        if len(known):
            found.append(Alternative(_named(NEAREST, together), int((choices == origins[judged]).sum()), len(judged)))
        elif first is not None:
            found.append(
                Alternative(_named(NEAREST, together), agreement=float((choices == first[judged]).double().mean()))
            )
    if _enough(origins, known):
        found.append(_cross_validated(stored, incoming, origins, known, together, seed))
    return tuple(found)


def beside_answers(
    stored: np.ndarray,
    incoming: np.ndarray,
    origins: Tensor,
    checked: Tensor,
    right: Tensor,
    *,
    shared: bool,
    one_to_one: bool = False,
) -> tuple[Alternative, ...]:
    """The same judged by checked answers, each row beside the match that it has; ridge regression learns from pairs
    that were known before.

    Args:
        stored, incoming, origins, shared, one_to_one: As in :func:`alternatives`.
        checked: The stored row of each incoming one as far as somebody has answered ``(n,)``, -1 where nobody has.
        right: Whether the matches of these rows are right ``(m,)``.
    """
    judged, known = np.flatnonzero((checked != UNKNOWN).numpy()), np.flatnonzero((origins >= 0).numpy())
    together = _sharing(stored, origins) if one_to_one else None
    choices = {NEAREST: by_cosine(stored, incoming, judged, together)} if shared else {}
    if _enough(origins, known):
        choices[RIDGE] = by_ridge(stored, incoming, origins, known, judged, together)
    found = []
    for name, chosen in choices.items():
        # Who is left out is taken for a stranger.
        hits = chosen.masked_fill(chosen < 0, STRANGER) == checked[judged]
        # As if of one answer more that is undecided: that all were alike is no proof.
        lead = torch.cat([right.double() - hits.double(), torch.zeros(1)])
        behind, ahead = (few_more_than_chance(one, _MIN_STANDARD_ERRORS) for one in (lead, -lead))
        found.append(Alternative(_named(name, together), int(hits.sum()), len(judged), behind=int(behind) - int(ahead)))
    return tuple(found)


def by_cosine(
    stored: np.ndarray, incoming: np.ndarray, judged: np.ndarray, together: np.ndarray | None = None
) -> Tensor:
    """The nearest stored row by cosine, for the rows ``judged`` of ``incoming``.

    Args:
        stored: The stored rows, ``(N, d)``.
        incoming: The incoming rows, ``(n, d)``.
        judged: Which of those to match, ``(m,)``.
        together: All incoming rows that share the stored ones where each is given away once, ``(t,)``, in order and the
            judged ones among them; None matches each row by itself.

    Returns:
        The stored row of each, ``(m,)``; -1 for one that is left out.
    """
    spread = _spread(stored)
    patterns, centre = _rows(stored, stored.mean(0), spread), _centre(incoming)
    if together is not None:
        room = torch.ones(len(stored), dtype=torch.long)
        found = _assigned(patterns, _rows(incoming[together], centre, spread), room)
        return found[torch.from_numpy(np.searchsorted(together, judged))]
    return nearest(patterns, _rows(incoming[judged], centre, spread))


def by_ridge(
    stored: np.ndarray,
    incoming: np.ndarray,
    origins: Tensor,
    learned: np.ndarray,
    judged: np.ndarray,
    together: np.ndarray | None = None,
) -> Tensor:
    """The stored row that a ridge regression leads to, for the rows ``judged``; it learns from the rows ``learned``.

    Args:
        stored: The stored rows, ``(N, d)``.
        incoming: The incoming rows, ``(n, d)``.
        origins: The stored row of each incoming one, ``(n,)``; only those of ``learned`` are used.
        learned: Which incoming rows to learn from.
        judged: Which to match, ``(m,)``.
        together: As in :func:`by_cosine`; rows that were learned from have a stored row already.

    Returns:
        The stored row of each, ``(m,)``; -1 for one that is left out.
    """
    patterns = _rows(stored, stored.mean(0), _spread(stored))
    matched = judged if together is None else np.setdiff1d(together, learned)
    centre, spread = _centre(incoming), _spread(incoming)
    rows, asked = (_rows(incoming[part], centre, spread) for part in (learned, matched))
    predicted = regressed(rows, patterns[origins[learned]], asked)
    if together is None:
        return nearest(patterns, predicted)
    room = torch.ones(len(stored), dtype=torch.long)
    room[origins[learned]] = 0
    return _assigned(patterns, predicted, room)[torch.from_numpy(np.searchsorted(matched, judged))]


def nearest(patterns: Tensor, queries: Tensor) -> Tensor:
    """The row of ``patterns`` with the largest cosine, for each of ``queries``."""
    patterns, queries = normalize(patterns, dim=1), normalize(queries, dim=1)
    parts = split(len(queries), len(patterns) * patterns.element_size())
    return torch.cat([(queries[part] @ patterns.mT).argmax(1) for part in parts])


def _assigned(patterns: Tensor, queries: Tensor, room: Tensor) -> Tensor:
    """The row of ``patterns`` for each of ``queries``, with the largest sum of cosines; -1 where there is no room."""
    patterns, queries = normalize(patterns, dim=1), normalize(queries, dim=1)
    count = min(_CANDIDATES, len(patterns))
    parts = split(len(queries), len(patterns) * patterns.element_size())
    best = [(queries[part] @ patterns.mT).topk(count, 1) for part in parts]
    worth, columns = (torch.cat(some) for some in zip(*best, strict=True))
    return assigned(worth.double(), columns, room, lambda rows: (queries[rows] @ patterns.mT).double())


def regressed(rows: Tensor, wanted: Tensor, asked: Tensor) -> Tensor:
    """Ridge regression, its strength chosen by leave-one-out errors.

    Args:
        rows: The inputs to learn from, ``(n, d)``.
        wanted: Their targets, ``(n, v)``.
        asked: The inputs to predict for, ``(m, d)``.

    Returns:
        Predictions, ``(m, v)``.
    """
    from sklearn.linear_model import RidgeCV

    model = RidgeCV(_STRENGTHS).fit(rows.cpu().numpy(), wanted.cpu().numpy())
    return torch.from_numpy(model.predict(asked.cpu().numpy())).to(wanted).reshape(len(asked), -1)


def _named(name: str, together: np.ndarray | None) -> str:
    return name if together is None else f"{name}, one to one"


def _sharing(stored: np.ndarray, origins: Tensor) -> np.ndarray | None:
    """The incoming rows that share the stored ones, known strangers left out; None where they are too many."""
    sharing = np.flatnonzero((origins != STRANGER).numpy())
    return sharing if len(stored) * len(sharing) <= _MAX_ASSIGNED_PAIRS else None


def _enough(origins: Tensor, known: np.ndarray) -> bool:
    """Whether known pairs are enough for a regression."""
    return len(known) >= _MIN_PAIRS and len(origins[known].unique()) >= _FOLDS


def _cross_validated(
    stored: np.ndarray, incoming: np.ndarray, origins: Tensor, known: np.ndarray, together: np.ndarray | None, seed: int
) -> Alternative:
    from sklearn.model_selection import GroupKFold

    right = labels = 0
    for learn, judge in GroupKFold(_FOLDS, shuffle=True, random_state=seed).split(known, groups=origins[known]):
        judged = known[judge[: _JUDGED_ROWS // _FOLDS]]
        chosen = by_ridge(stored, incoming, origins, known[learn], judged, together)
        right += int((chosen == origins[judged]).sum())
        labels += len(judged)
    return Alternative(_named(RIDGE, together), right, labels)


def _centre(rows: np.ndarray) -> np.ndarray:
    """Means of columns, zero where a column has no values."""
    centre: np.ndarray = np.nansum(rows, 0) / np.maximum(1, np.isfinite(rows).sum(0))
    return centre


def _spread(rows: np.ndarray) -> np.ndarray:
    """Standard deviations of columns, one where a column has none."""
    spread = np.sqrt(_centre(np.square(rows - _centre(rows))))
    return np.where(spread > 0, spread, 1.0)


def _rows(rows: np.ndarray, centre: np.ndarray, spread: np.ndarray) -> Tensor:
    """Rows in standard units, at the mean where a value is missing."""
    return torch.from_numpy(np.nan_to_num((rows - centre) / spread)).float()
