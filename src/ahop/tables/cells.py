"""A small file as cells of text, row by row: lists that people keep, such as pairs and answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from ahop._extras import require
from ahop.tables import delimited


def cells(path: str | os.PathLike[str]) -> list[list[str]]:
    """All rows of a CSV or Parquet file, the names of its columns first if it has any; an empty cell is "".

    Example:
        >>> path = folder.with_name("pairs.csv")
        >>> _ = path.write_text("order;sku\\n17;007\\n18;\\n")
        >>> cells(path)
        [['order', 'sku'], ['17', '007'], ['18', '']]
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    if path.suffix.lower() != ".parquet":
        with path.open("rb") as file:
            return stripped(file, str(path))
    require("pyarrow", extra="tables")
    from pyarrow import parquet

    table = parquet.read_table(path)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return [table.column_names, *(["" if cell is None else str(cell) for cell in row] for row in rows)]


def stripped(file: BinaryIO, name: str) -> list[list[str]]:
    """All rows of a file of text that is open, without blanks around its cells; messages call it ``name``."""
    return [[cell.strip() for cell in row] for row in delimited.cells(file, name)]
