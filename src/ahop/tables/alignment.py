"""Two tables side by side: the columns that both have, without those that tell nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ahop.tables.ids import RUN, differ
from ahop.tables.table import Table, counted, listed

# Of more columns than that, whole numbers are how things were measured.
_FEW_COLUMNS = 3
# The share of stored values that may be missing: beyond it, a mean would stand for most of a column.
_MAX_MISSING_SHARE = 0.5


class Aligned(NamedTuple):
    """Tables to compare, whether their columns are the same, and what was left out or filled in, in sentences."""

    stored: Table
    incoming: Table
    shared: bool
    notes: tuple[str, ...]


def aligned(stored: Table, incoming: Table) -> Aligned:
    """Both tables with the columns that they share, in the order of the first.

    Columns go by name, and by place where a table has no names and both are equally wide. Without any in common, or of
    different widths, each table keeps its own: they are then two spaces, as of two embedding models. A column that is
    constant or mostly missing where it is stored, or missing throughout where it comes in, is left out, and what else
    is missing among the stored is the mean of its column.

    Example:
        >>> stored = Table.of({"sku": ["a", "b"], "x": [1.0, 2.0], "y": [3.0, 3.0], "z": [1.0, 5.0]})
        >>> found = aligned(stored, Table.of({"z": [1.0], "x": [2.0], "w": [7.0]}))
        >>> found.incoming.columns, found.incoming.values.tolist()
        (('x', 'z'), [[2.0, 1.0]])
        >>> print(*found.notes, sep="\\n")
        left out, only in stored: 'y'
        left out, only in incoming: 'w'
    """
    notes = [_unused(table, side) for table, side in ((stored, "stored"), (incoming, "incoming")) if table.ignored]
    stored, incoming, shared, told = _common(stored, incoming)
    notes += told
    if shared:
        keep = _told(stored, "stored", notes, constant=True) & _told(incoming, "incoming", notes, constant=False)
        stored, incoming = _columns(stored, keep), _columns(incoming, keep)
        notes += _like_ids(stored, incoming)
    else:
        stored = _columns(stored, _told(stored, "stored", notes, constant=True))
        incoming = _columns(incoming, _told(incoming, "incoming", notes, constant=len(incoming) > 1))
        incoming = _filled(incoming, "incoming", notes)
    if not stored.columns or not incoming.columns:
        raise ValueError(f"{stored.name} and {incoming.name} have no column left to compare: {'; '.join(notes)}")
    return Aligned(_filled(stored, "stored", notes), incoming, shared, tuple(notes))


def fitted(incoming: Table, columns: tuple[str, ...], named: bool) -> Table:
    """The table with just these columns, as a memory that was learned before has them.

    Read with ``measured=columns``, none of them was taken for ids (:meth:`Table.of`).

    Args:
        incoming: The table.
        columns: The columns that the memory was made with.
        named: Whether these have names; if not, columns go by their places.
    """
    if not (named and incoming.named):
        if len(incoming.columns) != len(columns):
            raise ValueError(
                f"{incoming.name} has {len(incoming.columns)} columns of numbers; the model has {len(columns)}"
            )
        return incoming
    if lacking := [name for name in columns if name not in incoming.columns]:
        told = f"{incoming.name} lacks columns that the model was made with: {listed(lacking)}"
        also = f"; {incoming.id!r} was taken for its ids, and --id names others" if incoming.id in lacking else ""
        if unused := [name for name in lacking if name in incoming.ignored]:
            also += f"; text or ids here: {listed(unused)}"
        raise ValueError(told + also)
    return _taken(incoming, columns)


def _common(stored: Table, incoming: Table) -> tuple[Table, Table, bool, list[str]]:
    widths = len(stored.columns), len(incoming.columns)
    if not (stored.named and incoming.named):
        if widths[0] == widths[1]:
            told = [] if stored.named == incoming.named else ["one table has no names: columns go by their places"]
            return stored, replace(incoming, columns=stored.columns), True, told
        return stored, incoming, False, [f"columns differ ({widths[0]} stored, {widths[1]} incoming): two spaces"]
    common = tuple(name for name in stored.columns if name in set(incoming.columns))
    if not common:
        ids = f" but {stored.id!r}, which holds the ids" if stored.id and stored.id == incoming.id else ""
        told = [f"no column name in common{ids} ({widths[0]} stored, {widths[1]} incoming): two spaces"]
        return stored, incoming, False, told
    told = []
    for table, side in ((stored, "stored"), (incoming, "incoming")):
        if own := [name for name in table.columns if name not in set(common)]:
            told.append(f"left out, only in {side}: {listed(own)}")
            told += _maybe_ids(_taken(table, tuple(own)), side) if table.id is None else []
    for table, other, side in ((stored, incoming, "stored"), (incoming, stored, "incoming")):
        if table.id in other.columns:
            told.append(f"{table.id!r} was taken for the ids of {side}; --id names others")
    return _taken(stored, common), _taken(incoming, common), True, told


def _maybe_ids(left_out: Table, side: str) -> list[str]:
    """A note on columns that are left out, and may be the ids that a table seems to lack."""
    found = [name for place, name in enumerate(left_out.columns) if differ(left_out.values[:, place])]
    if len(left_out) < RUN or not 0 < len(found) <= _FEW_COLUMNS:
        return []
    return [f"rows of {side} go by their numbers, and {listed(found)} may hold their ids: --id names one"]


def _like_ids(stored: Table, incoming: Table) -> list[str]:
    """A note on columns that are compared and may be ids."""
    if len(stored) < RUN:
        return []
    tables = (stored.values, incoming.values)
    found = [name for place, name in enumerate(stored.columns) if all(differ(one[:, place]) for one in tables)]
    if not 0 < len(found) <= _FEW_COLUMNS:
        return []
    told = f"{listed(found)} may hold ids, another whole number in each row"
    return [f"{told}: name such a column with --id, or leave it out of the files"]


def _unused(table: Table, side: str) -> str:
    told = f"left out of {side} as no measurements (text, ids, counts of rows): {listed(table.ignored)}"
    return told if table.id else f"{told}; rows go by their numbers, from 0, since none of these tells all rows apart"


def _told(table: Table, side: str, notes: list[str], *, constant: bool) -> np.ndarray:
    """Which columns tell something ``(d,)``; of the others, a note is left."""
    lost = np.isnan(table.values).mean(0)
    gone = lost > _MAX_MISSING_SHARE if side == "stored" else lost == 1
    whole = np.where(np.isnan(table.values), -np.inf, table.values).max(0, initial=-np.inf)
    least = np.where(np.isnan(table.values), np.inf, table.values).min(0, initial=np.inf)
    flat = ~gone & (whole == least) if constant else np.zeros_like(gone)
    share = "mostly" if side == "stored" else "all"
    for which, why in ((gone, f"{share} missing in {side}"), (flat, f"constant in {side}")):
        if which.any():
            notes.append(f"left out, {why}: {listed([table.columns[place] for place in np.flatnonzero(which)])}")
    return ~(gone | flat)


def _filled(table: Table, side: str, notes: list[str]) -> Table:
    """The table with means where values are missing."""
    lost = np.isnan(table.values)
    if not lost.any():
        return table
    columns = [table.columns[place] for place in np.flatnonzero(lost.any(0))]
    notes.append(
        f"missing in {side}, set to the column's mean: {counted(int(lost.sum()), 'value')} of {listed(columns)}"
    )
    return replace(table, values=np.where(lost, np.nanmean(table.values, 0), table.values))


def _columns(table: Table, keep: np.ndarray) -> Table:
    return _taken(table, tuple(table.columns[place] for place in np.flatnonzero(keep)))


def _taken(table: Table, columns: tuple[str, ...]) -> Table:
    if columns == table.columns:
        return table
    places = {name: place for place, name in enumerate(table.columns)}
    return replace(table, columns=columns, values=table.values[:, [places[name] for name in columns]])
