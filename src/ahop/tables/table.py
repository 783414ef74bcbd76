"""Rows of numbers, each with an id."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ahop._extras import require
from ahop.tables.ids import are_integers, counts_rows, nameless, names_ids

if TYPE_CHECKING:
    import pyarrow
    from narwhals import Series

# How many names a sentence lists.
_LISTED_NAMES = 5


class MissingColumnError(ValueError):
    """A table has no column of the name that was given for its ids."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of numbers, by id and by the names of their columns.

    Attributes:
        ids: Of the rows ``(n,)``, each its own.
        columns: The names of the columns of numbers, d of them.
        values: ``(n, d)``, float64, NaN where one is missing.
        ignored: The names of columns that are not numbers, and so are not used.
        name: Where it comes from, for messages.
        named: Whether its columns have names, or only places.
        id: The column that ids come from; None where they are row numbers, from 0.
        dialect: How the file was written, where that had to be found out.
        decimal: Its sign of decimals; a point where there was none to find out.

    Example:
        >>> table = Table.of({"sku": ["a", "b"], "weight": [1.5, None], "colour": ["red", "red"]})
        >>> table.ids.tolist(), table.columns, table.values.tolist(), table.ignored
        (['a', 'b'], ('weight',), [[1.5], [nan]], ('colour',))
    """

    ids: np.ndarray
    columns: tuple[str, ...]
    values: np.ndarray
    ignored: tuple[str, ...] = ()
    name: str = "table"
    named: bool = True
    id: str | None = None
    dialect: str = ""
    decimal: str = "."

    @classmethod
    def of(
        cls,
        frame: Any,
        id: str | None = None,
        *,
        measured: Collection[str] = (),
        name: str = "table",
        dialect: str = "",
    ) -> Table:
        """The table that a frame holds.

        Args:
            frame: Of pandas, polars or pyarrow, or a dictionary of columns.
            id: The column of the ids. None takes the first that can be one: text, or whole numbers in a column that is
                called so (``id``, ``customer_id``, ``sku``, ``order_number``), with another value in each row, or a
                count of the rows that stands first; else the index of a pandas frame that has one, or row numbers. No
                such column is measured. Where it is named, nothing but counts of the rows that are called so is left
                out.
            measured: Columns that hold no ids, whatever they look like: those of a model that compares them.
            name: Where it comes from, for messages.
            dialect: How the file was written.
        """
        columns, index = _columns(frame, name)
        if id is not None and id not in columns:
            raise MissingColumnError(f"{name} has no column {id!r} for the ids; it has {listed(list(columns))}")
        numbers = {key: _floats(series) for key, series in columns.items() if key != id and _is_number(series)}
        kept = {key for key, found in numbers.items() if key not in measured and _names_rows(key, columns, found, id)}
        source = id
        if source is None:
            source = next((key for key in columns if (key not in numbers or key in kept) and _own(columns[key])), None)
        ids = index if source is None else _ids(columns[source], name)
        used = [key for key in numbers if key != source and key not in kept]
        values = np.empty((len(ids), len(used)))
        for place, key in enumerate(used):
            values[:, place] = numbers.pop(key)
        ignored = tuple(key for key in columns if key != source and key not in used)
        return cls(ids, tuple(used), values, ignored, name, True, source, dialect)._checked()

    @classmethod
    def of_array(cls, values: np.ndarray, *, name: str = "table") -> Table:
        """The table of a matrix, whose columns have no names and whose rows have no ids."""
        if values.ndim != 2 or values.dtype.kind not in "iufb":
            raise ValueError(f"{name} must be a matrix of numbers; it has shape {values.shape} and type {values.dtype}")
        columns = tuple(f"column {place + 1}" for place in range(values.shape[1]))
        return cls(np.arange(len(values)), columns, values.astype(np.float64), (), name, named=False)._checked()

    def __len__(self) -> int:
        return len(self.ids)

    def __str__(self) -> str:
        ids = "row numbers, from 0" if self.id is None else f"column {self.id!r}"
        told = (
            f"{self.name}: {counted(len(self), 'row')}, {counted(len(self.columns), 'column')} of numbers; ids: {ids}"
        )
        return f"{told}; {self.dialect}" if self.dialect else told

    def places(self) -> dict[str, int]:
        """The row of each id, by its text."""
        return {str(id): row for row, id in enumerate(self.ids)}

    def _checked(self) -> Table:
        if not len(self):
            raise ValueError(f"{self.name} has no rows")
        if not self.columns:
            told = [f"{self.name} has no column of numbers to compare"]
            told += [] if self.id is None else [f"{self.id!r} holds the ids"]
            if self.ignored:
                told += [f"{listed(self.ignored)} cannot be used", "for names, streets and dates there is Splink"]
            raise ValueError("; ".join(told))
        if bool(np.isinf(self.values).any()):
            row, place = np.argwhere(np.isinf(self.values))[0]
            # An id may hold a line break.
            shown = repr(self.ids[row]) if isinstance(self.ids[row], str) else self.ids[row]
            raise ValueError(f"{self.name}: row {shown}, column {self.columns[place]!r} is infinite")
        first: dict[str, int] = {}
        for row, id in enumerate(map(str, self.ids)):
            if not id.strip():
                raise ValueError(_no_id(self.name, row, self.id))
            if first.setdefault(id, row) != row:
                rows = f"data rows {first[id] + 1} and {row + 1}"
                raise ValueError(f"{self.name}: {rows} have the same id {id!r}; each row needs an id of its own")
        return self


def _columns(frame: Any, name: str) -> tuple[dict[str, Series], np.ndarray]:
    """The columns by name, and ids for where none of them has any."""
    require("narwhals", extra="tables")
    import narwhals as nw

    try:
        known = nw.from_native(_arrow(frame) if isinstance(frame, dict) else frame, eager_only=True)
    except TypeError as error:
        kind = type(frame).__name__
        raise ValueError(f"{name} must be a frame of pandas, polars or pyarrow, got {kind}") from error
    columns = list(known.iter_columns())
    names = [str(series.name).strip() or f"column {place + 1}" for place, series in enumerate(columns)]
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise ValueError(f"{name} has more than one column {twice!r}; each needs a name of its own")
    index = nw.maybe_get_index(known)
    rows = np.arange(len(known))
    if index is not None and index.is_unique and type(index).__name__ != "RangeIndex":
        rows = np.asarray(index, dtype=object)
    return dict(zip(names, columns, strict=True)), rows


def _arrow(columns: dict[str, Any]) -> pyarrow.Table:
    require("pyarrow", extra="tables")
    import pyarrow

    return pyarrow.table(columns)


def _names_rows(key: str, columns: Mapping[str, Series], numbers: np.ndarray, id: str | None) -> bool:
    """Whether a column of numbers names rows. Who names the column of ids has said what the others are, but for counts
    of the rows that files have beside their columns."""
    if counts_rows(numbers):
        return names_ids(key) or nameless(key) or (id is None and key == next(iter(columns)))
    return id is None and names_ids(key) and are_integers(numbers) and _own(columns[key])


def _own(series: Series) -> bool:
    """Whether each row has a value, and another one than all others."""
    return not series.is_null().any() and series.n_unique() == len(series)


def _ids(series: Series, name: str) -> np.ndarray:
    if (lost := series.is_null()).any():
        raise ValueError(_no_id(name, int(lost.arg_true()[0]), series.name))
    # As Python has them, whatever library the frame is of, and whole where they are: text has no kind of number.
    ids = [int(one) if isinstance(one, float) and one.is_integer() else one for one in series.to_list()]
    return np.array(ids, dtype=object)


def _no_id(name: str, row: int, column: str | None) -> str:
    return f"{name}: data row {row + 1} has no id in column {column!r}"


def _is_number(series: Series) -> bool:
    """Whether a column is one of numbers, which all may be missing."""
    return series.dtype.is_numeric() or str(series.dtype) == "Boolean" or bool(series.is_null().all())


def _floats(series: Series) -> np.ndarray:
    """The numbers of a column, with NaN where one is missing."""
    require("narwhals", extra="tables")
    import narwhals as nw

    if series.is_null().all():
        return np.full(len(series), np.nan)
    return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)


def counted(count: int, word: str) -> str:
    """How many there are.

    Example:
        >>> counted(1, "row"), counted(1200, "row")
        ('1 row', '1,200 rows')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names for a sentence, a few of them if there are many.

    Example:
        >>> listed(["a", "b"]), listed([str(place) for place in range(9)])
        ("'a', 'b'", "'0', '1', '2', '3', '4' and 4 more")
    """
    told = ", ".join(map(repr, names[:_LISTED_NAMES]))
    return told if len(names) <= _LISTED_NAMES else f"{told} and {len(names) - _LISTED_NAMES} more"
