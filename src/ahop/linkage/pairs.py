"""Pairs that somebody knows: which stored row an incoming one is, by their ids, or that it is none of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ahop._checks import STRANGER, UNKNOWN
from ahop.tables.cells import cells
from ahop.tables.table import Table, listed

# What stands in a file in the place of a stored id, where a row is none of the stored ones.
NONE = "none"


class Known(NamedTuple):
    """The stored row of each incoming row ``(n,)``, -1 where nobody knows it and ``ahop.STRANGER`` where it is none of
    them; and which column was taken for what."""

    origins: Tensor
    note: str


def known_pairs(path: str | os.PathLike[str], stored: Table, incoming: Table) -> Known:
    """The pairs in a file of two columns.

    Args:
        path: Its columns are found by the names of the tables' id columns; else the first is the id of an incoming row
            and the second that of a stored one, or "none" where it is none of them. A first line that holds no id is a
            line of names.
        stored, incoming: The tables, whose ids these are.
    """
    return paired(cells(path), str(path), stored, incoming)


def paired(rows: list[list[str]], name: str, stored: Table, incoming: Table) -> Known:
    """The pairs in rows of text, as :func:`known_pairs` reads them from a file of this name.

    Args:
        rows: The cells of the file.
        name: Its name, for errors.
        stored, incoming: The tables whose rows are paired.
    """
    if any(len(row) < 2 for row in rows):
        raise ValueError(f"{name} must have two columns: the id of an incoming row, and that of a stored one")
    first, second = _columns(rows[0], incoming.id, stored.id)
    names = rows[0][first], rows[0][second]
    ours, theirs = as_written(incoming), named_places(stored, [row[second] for row in rows])
    header = names[0] not in ours and names[1] not in theirs
    pairs = [(row[first], row[second]) for row in rows[header:]]
    if not pairs:
        raise ValueError(f"{name} has no pairs")
    _require_known(name, [asked for asked, _ in pairs], ours, incoming)
    _require_known(name, [found for _, found in pairs], theirs, stored)
    origins = torch.full((len(incoming),), UNKNOWN)
    for asked, found in pairs:
        before = int(origins[ours[asked]])
        if before not in (UNKNOWN, theirs[found]):
            other = NONE if before == STRANGER else str(stored.ids[before])
            raise ValueError(f"{name} pairs {asked!r} with both {other!r} and {found!r}")
        origins[ours[asked]] = theirs[found]
    told = f"incoming: {names[0]!r}, stored: {names[1]!r}" if header else "incoming first, stored second"
    strangers = int((origins == STRANGER).sum())
    none = f", {strangers:,} of them {NONE}" if strangers else ""
    return Known(origins, f"{len(pairs):,} in {name} ({told}){none}")


def as_written(table: Table) -> dict[str, int]:
    """The row of each id, by its text; whole numbers also as files of floats have them, ``3.0``."""
    floats = {f"{id}.0": row for row, id in enumerate(table.ids) if isinstance(id, int)}
    return {**floats, **table.places()}


def named_places(stored: Table, ids: Iterable[str]) -> dict[str, int]:
    """The row of each stored id, and ``ahop.STRANGER`` for "none", which no stored row may be called if ``ids`` do."""
    places = as_written(stored)
    if NONE in places and NONE in ids:
        raise ValueError(f"{stored.name} must have no row with the id {NONE!r}: it means none of the stored rows")
    return {NONE: STRANGER, **places}


def _columns(names: Sequence[str], incoming: str | None, stored: str | None) -> tuple[int, int]:
    """Where the ids of incoming and of stored rows stand."""
    if incoming != stored and incoming in names and stored in names:
        return names.index(incoming), names.index(stored)
    return 0, 1


def _require_known(name: str, ids: list[str], places: Mapping[str, int], table: Table) -> None:
    if unknown := list(dict.fromkeys(id for id in ids if id not in places)):
        raise ValueError(f"{name} names ids that {table.name} does not have: {listed(unknown)}")
