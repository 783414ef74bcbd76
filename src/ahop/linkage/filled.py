"""Answers that somebody has filled in: which stored row each of a few incoming ones is, or that it is none of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from ahop._checks import STRANGER, UNKNOWN
from ahop.linkage.pairs import NONE, named_places
from ahop.tables.cells import cells
from ahop.tables.table import Table, listed

_ID, _ANSWER = "id", "answer"


def checked_answers(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    stored: Table,
    incoming: Table,
    known: Tensor | None = None,
) -> Tensor:
    """The stored row of each incoming one as far as somebody has answered ``(n,)``: -1 where there is no answer,
    ``ahop.STRANGER`` where it is none of them.

    Args:
        paths: A file of :func:`asked`, or several, whose column ``answer`` somebody has filled in: the id of a stored
            row, "none" where it is none of them, or nothing where nobody can say.
        stored, incoming: The tables, whose ids these are.
        known: What was known before ``(n,)``, which answers must not contradict.
    """
    answers = torch.full((len(incoming),), UNKNOWN)
    for path in (paths,) if isinstance(paths, str | os.PathLike) else paths:
        _fill(answers, path, stored, incoming, known)
    return answers


def _fill(answers: Tensor, path: str | os.PathLike[str], stored: Table, incoming: Table, known: Tensor | None) -> None:
    """Add the answers of a file, which must not contradict those that are there."""
    head, *rows = cells(path)
    if _ID not in head or _ANSWER not in head:
        raise ValueError(f"{path} must have the columns {_ID!r} and {_ANSWER!r}; it has {listed(head)}")
    id, answer = head.index(_ID), head.index(_ANSWER)
    given = [(row[id], row[answer]) for row in rows if len(row) > max(id, answer) and row[answer]]
    ours, theirs = incoming.places(), named_places(stored, [told for _, told in given])
    if unknown := [one for one, _ in given if one not in ours]:
        raise ValueError(f"{path} names ids that {incoming.name} does not have: {listed(unknown)}")
    if unknown := [told for _, told in given if told not in theirs]:
        raise ValueError(f"{path} has answers that {stored.name} does not have as ids: {listed(unknown)}")
    if not given:
        raise ValueError(f"{path} has no answers yet: fill in the column {_ANSWER!r}")
    for one, told in given:
        row, place = ours[one], theirs[told]
        if (before := int(answers[row])) not in (UNKNOWN, place):
            raise ValueError(f"{path} answers {one!r} with both {_name(stored, before)!r} and {told!r}")
        if known is not None and (before := int(known[row])) not in (UNKNOWN, place):
            raise ValueError(f"{path} answers {one!r} with {told!r}, and it is known to be {_name(stored, before)!r}")
        answers[row] = place
    if known is not None and not bool(((answers != UNKNOWN) & (known == UNKNOWN)).any()):
        raise ValueError(f"{path} has answers to known pairs alone, and these prove nothing")


def answers_in(path: str | os.PathLike[str]) -> int:
    """How many answers a file holds, so that it is not written over; none where it is not there or no such file.

    Example:
        >>> path = folder.with_name("check.csv")
        >>> _ = path.write_text("id,answer\\n17,007\\n18,\\n")
        >>> answers_in(path)
        1
    """
    with suppress(ValueError):
        head, *rows = cells(path) if Path(path).is_file() else [[]]
        if _ANSWER in head:
            return sum(bool(row[place]) for row in rows if len(row) > (place := head.index(_ANSWER)))
    return 0


def _name(stored: Table, origin: int) -> str:
    return NONE if origin == STRANGER else str(stored.ids[origin])
