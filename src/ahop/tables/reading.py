"""Files of tables, by how their names end. None is ever unpickled."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from ahop._extras import require
from ahop.tables import delimited
from ahop.tables.table import Table, listed

if TYPE_CHECKING:
    import pandas


def read(path: str | os.PathLike[str], id: str | None = None, measured: Collection[str] = ()) -> Table:
    """The table in a file: CSV of any dialect, Parquet, Feather, NumPy or Excel.

    Args:
        path: How it ends says what it is: .csv, .tsv or .txt, .parquet, .feather or .arrow, .npy or .npz (one array,
            or that named ``patterns``), .xlsx (the first sheet).
        id: The column of the ids, as in :meth:`Table.of`; arrays have none, and their ids are row numbers.
        measured: Columns that hold no ids, as in :meth:`Table.of`.

    Example:
        >>> path = folder.with_name("german.csv")
        >>> _ = path.write_text("sku;weight\\n007;1,5\\n008;-\\n")
        >>> table = read(path)
        >>> table.ids.tolist(), table.values.tolist(), table.dialect
        (['007', '008'], [[1.5], [nan]], "separator ';', decimal commas")
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} is a folder, not a file" if path.is_dir() else f"{path} does not exist")
    with path.open("rb") as file:
        return parsed(file, str(path), id, measured)


def parsed(file: BinaryIO, name: str, id: str | None = None, measured: Collection[str] = ()) -> Table:
    """As :func:`read`, of a file that is open, on disk or in memory.

    Args:
        file: Bytes that can be read from their start again.
        name: How it ends says what it is; messages call it so.
        id, measured: As in :func:`read`.

    Example:
        >>> from io import BytesIO
        >>> parsed(BytesIO(b"x,y\\n1,2\\n3,\\n"), "small.csv").values.tolist()
        [[1.0, 2.0], [3.0, nan]]
    """
    suffix = Path(name).suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"{name} must end in one of {', '.join(_READERS)}")
    if not file.seek(0, os.SEEK_END):
        raise ValueError(f"{name} is empty")
    file.seek(0)
    return _READERS[suffix](file, name, id, measured)


def _csv(file: BinaryIO, name: str, id: str | None, measured: Collection[str]) -> Table:
    frame, dialect = delimited.read(file, name, id)
    table = Table.of(frame, id, measured=measured, name=name, dialect=str(dialect))
    return replace(table, named=dialect.header, decimal=dialect.decimal)


def _parquet(file: BinaryIO, name: str, id: str | None, measured: Collection[str]) -> Table:
    require("pyarrow", extra="tables")
    from pyarrow import parquet

    return Table.of(_whole(file, name, "Parquet", parquet.read_table), id, measured=measured, name=name)


def _feather(file: BinaryIO, name: str, id: str | None, measured: Collection[str]) -> Table:
    require("pyarrow", extra="tables")
    from pyarrow import feather

    return Table.of(_whole(file, name, "Feather", feather.read_table), id, measured=measured, name=name)


def _excel(file: BinaryIO, name: str, id: str | None, measured: Collection[str]) -> Table:
    require("pandas", "openpyxl", extra="tables")
    import pandas

    missing = list(delimited.MISSING)
    # As cells are: pandas would take codes such as 007 for numbers, and lose their zeros.
    sheet = _whole(file, name, "Excel", lambda file: pandas.read_excel(file, dtype=object, na_values=missing))
    return Table.of(sheet.apply(_typed), id, measured=measured, name=name)


def _typed(cells: pandas.Series) -> pandas.Series:
    """A column as numbers where all cells are, also such as were typed in as text; but no codes."""
    require("pandas", extra="tables")
    import pandas

    if any(isinstance(cell, str) and delimited.is_code(cell) for cell in cells):
        return cells
    try:
        return pandas.to_numeric(cells)
    except (TypeError, ValueError):
        return cells.infer_objects()


def _numpy(file: BinaryIO, name: str, id: str | None, measured: Collection[str]) -> Table:
    # Rows of an array have no names, whatever column holds the ids of the other table.
    return Table.of_array(_whole(file, name, "NumPy", _array), name=name)


def _array(file: BinaryIO) -> np.ndarray:
    """An array, or the one of an archive that is alone or named ``patterns``."""
    try:
        loaded = np.load(file, allow_pickle=False)
    except ValueError as error:
        # NumPy's own advice is to unpickle it.
        raise ValueError("it holds no array of numbers, and Python objects are never unpickled") from error
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        if len(loaded.files) != 1 and "patterns" not in loaded.files:
            raise ValueError(f"it must hold one array, or one named 'patterns', and has {listed(loaded.files)}")
        return loaded["patterns" if "patterns" in loaded.files else loaded.files[0]]


def _whole(file: BinaryIO, name: str, kind: str, reader: Callable[[BinaryIO], Any]) -> Any:
    """What a reader makes of a file; whatever it complains of is said in one sentence."""
    try:
        return reader(file)
    except Exception as error:  # Damaged files fail in many ways.
        raise ValueError(f"{name} cannot be read as {kind}: {' '.join(str(error).split())}") from error


_READERS: dict[str, Callable[[BinaryIO, str, str | None, Collection[str]], Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _csv),
    ".parquet": _parquet,
    **dict.fromkeys((".feather", ".arrow"), _feather),
    **dict.fromkeys((".npy", ".npz"), _numpy),
    ".xlsx": _excel,
}
