"""A few answers that somebody checks: the rows to check as a file, and what comes back in it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import torch

from ahop._recall import Recall
from ahop.linkage.linking import Linkage
from ahop.memories.checking import certified, questions
from ahop.tables.cells import cells
from ahop.tables.table import listed

NONE = "none"


def asked(linkage: Linkage, count: int, *, seed: int = 0) -> dict[str, list[Any]]:
    """The rows to check, as columns of a file: the row's id, its candidates and their probabilities, and ``answer``.

    They are drawn so that what they prove holds for all rows that nobody knows (:mod:`ahop.memories.checking`).

    Args:
        linkage: What was matched.
        count: How many rows to check.
        seed: For the draw.
    """
    rows = (linkage.origins < 0).nonzero().squeeze(1)
    both = [
        torch.stack(pair, 1)[rows]
        for pair in ((linkage.indices, linkage.second), (linkage.probabilities, linkage.second_probabilities))
    ]
    drawn = questions(Recall(*both), count, seed)
    name = linkage.stored_id
    return {
        "id": [linkage.incoming.ids[int(rows[one.row])] for one in drawn],
        "candidate": [name(one.candidates[0]) for one in drawn],
        "probability": [round(one.probabilities[0], 4) for one in drawn],
        "second": [name(one.candidates[1]) for one in drawn],
        "second_probability": [round(one.probabilities[1], 4) for one in drawn],
        "answer": [None] * len(drawn),
    }


def answered(linkage: Linkage, path: str | os.PathLike[str]) -> Linkage:
    """The same with a certificate, from a file of :func:`asked` whose column ``answer`` somebody has filled in.

    Args:
        linkage: What was matched.
        path: An answer is the id of a stored row, "none" where it is none of them, or empty where nobody knows.
    """
    head, *rows = cells(path)
    if "id" not in head or "answer" not in head:
        raise ValueError(f"{path} must have the columns 'id' and 'answer'; it has {listed(head)}")
    id, answer = head.index("id"), head.index("answer")
    given = {row[id]: row[answer] for row in rows if len(row) > answer and row[answer]}
    ours, theirs = linkage.incoming.places(), {**linkage.stored.places(), NONE: -1}
    if unknown := [one for one in given if one not in ours]:
        raise ValueError(f"{path} names ids that {linkage.incoming.name} does not have: {listed(unknown)}")
    if unknown := [one for one in given.values() if one not in theirs]:
        raise ValueError(f"{path} has answers that {linkage.stored.name} does not have as ids: {listed(unknown)}")
    if not given:
        raise ValueError(f"{path} has no answers yet: fill in the column 'answer'")
    first = linkage.indices[[ours[one] for one in given]]
    certificate = certified(first, [theirs[one] for one in given.values()], len(linkage.stored), None)
    return replace(linkage, certificate=certificate)
