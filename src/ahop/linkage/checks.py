"""A few answers that somebody checks: which rows, how they are shown, and what the answers prove."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ahop._checks import STRANGER, UNKNOWN
from ahop._recall import Recall
from ahop.learning.report import VERIFIED
from ahop.linkage.alternatives import beside_answers
from ahop.linkage.answers import answers
from ahop.linkage.holdout import Labels
from ahop.linkage.html import document, grid
from ahop.linkage.linking import Linkage
from ahop.linkage.model import Judged
from ahop.linkage.pairs import NONE
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import FIRST, MATCHES, certified, questions
from ahop.tables.table import counted

# Columns of a row that are shown.
_SHOWN_COLUMNS = 30


def asked(linkage: Linkage, count: int, *, seed: int = 0) -> dict[str, list[Any]]:
    """The rows to check, as columns of a file: the row's id, its candidates and their probabilities, and ``answer``.

    They are drawn so that what they prove holds for all rows that nobody knows (:mod:`ahop.memories.checking`).

    Args:
        linkage: What was matched.
        count: How many rows to check.
        seed: For the draw.
    """
    rows = (linkage.origins == UNKNOWN).nonzero().squeeze(1)
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


def check_page(linkage: Linkage, asked: dict[str, list[Any]], file: str) -> str:
    """The rows to check as a page of its own: each beside its two candidates, column by column.

    Args:
        linkage: What was matched.
        asked: Those rows (:func:`asked`).
        file: The name of the file that takes the answers.
    """
    title = f"{counted(len(asked['id']), 'row')} of {linkage.incoming.name} to check"
    how = (
        f"Which stored row is each? Write its id into the column 'answer' of {file}; {NONE!r} if it is none of the "
        "stored ones, not only none of the two shown; nothing if you cannot say. Then give the file to --answers. The "
        "rows were drawn so that what they prove holds for all: leave none out because it is hard."
    )
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(how)}</p>"]
    incoming, stored = linkage.incoming, linkage.stored
    ours, theirs = incoming.places(), stored.places()
    for id, *both in zip(asked["id"], asked["candidate"], asked["second"], strict=True):
        candidates = [str(name) for name in both if name is not None]
        parts.append(f"<h2>{escape(str(id))}</h2>")
        if linkage.model.shared:
            rows = [incoming.values[ours[str(id)]], *(stored.values[theirs[name]] for name in candidates)]
            parts.append(_beside(("column", str(id), *candidates), incoming.columns, rows))
        else:
            parts.append(f"<p>{escape(' or '.join(candidates) or 'no candidate')}</p>")
    return document(title, parts)


def _beside(head: Sequence[str], names: Sequence[str], rows: Sequence[np.ndarray]) -> str:
    """Rows side by side, column by column. No probabilities: they would sway who checks."""
    body = [(name, *(_number(row[place]) for row in rows)) for place, name in enumerate(names[:_SHOWN_COLUMNS])]
    left = len(names) - len(body)
    return grid(head, body) + (f"<p>and {counted(left, 'column')} more</p>" if left else "")


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def answered(linkage: Linkage, checked: Tensor) -> Linkage:
    """The same once somebody has answered some rows: answers are the matches of their rows, and certify all others.
    Where too few known pairs have judged the plain alternatives, answers do.

    What is certified are the matches before any of them was answered. Probabilities are then as sure as the answers
    were right (:meth:`ahop.BayesianHopfield.verify`), also those of the model, for the next batch; and where each
    stored row is given away once, the others go around the answers. What is given is left as it is.

    Args:
        linkage: What was matched.
        checked: The stored row of each incoming one as far as somebody has answered ``(n,)``, -1 where nobody has and
            ``ahop.STRANGER`` where it is none of them (:func:`checked_answers`). What was known before proves nothing.
    """
    checked = checked.masked_fill(linkage.origins != UNKNOWN, UNKNOWN)
    now = checked != UNKNOWN
    memory = copy.copy(linkage.memory)
    queries = torch.from_numpy(linkage.incoming.values).to(memory.patterns.dtype)
    memory.verify(queries[now], checked[now].tolist(), observed="not-nan" if bool(queries.isnan().any()) else None)
    origins = torch.where(now, checked, linkage.origins)
    found = answers(memory, queries, origins, linkage.one_to_one, linkage.reject)
    first, matched = _first(linkage, memory, queries, now), now & (linkage.indices >= 0)
    certificate = certified(first, checked[now].tolist(), len(linkage.stored), None)
    certificate = replace(certificate, of=MATCHES if linkage.one_to_one else FIRST)
    beside = linkage.alternatives
    # Pairs that are enough have judged them.
    if linkage.judged is None or linkage.judged.labels < VERIFIED:
        tables, right = (linkage.stored.values, linkage.incoming.values), first == checked[now]
        beside = beside_answers(
            *tables, linkage.origins, checked, right, shared=linkage.model.shared, one_to_one=linkage.one_to_one
        )
    return replace(
        linkage,
        model=replace(linkage.model, memory=memory, judged=Judged(certificate, checked=True)),
        origins=origins,
        checked=linkage.checked | now,
        alternatives=beside,
        certificate=certificate,
        labels=Labels(linkage.probabilities[matched], linkage.indices[matched] == checked[matched]),
        **found._asdict(),
    )


def _first(linkage: Linkage, memory: BayesianHopfield, queries: Tensor, now: Tensor) -> Tensor:
    """The matches of the rows that are answered now, as a memory finds them without the answers."""
    # One to one, a match depends on all other rows.
    asked = now | linkage.one_to_one
    matched = answers(memory, queries[asked], linkage.origins[asked], linkage.one_to_one, linkage.reject).indices
    # No match is the right one for a row that is none of the stored ones.
    return matched[now[asked]].masked_fill(matched[now[asked]] < 0, STRANGER)
