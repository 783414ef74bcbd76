"""Tables out: a file that is whole or not there."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ahop._extras import require
from ahop._files import atomic_file, require_writable

SUFFIXES = (".csv", ".parquet")


def require_table(path: str | os.PathLike[str], *others: str) -> None:
    """Refuse a path whose name does not say what to write, or that nothing can be written to."""
    if Path(path).suffix.lower() not in (known := (*SUFFIXES, *others)):
        raise ValueError(f"{path} must end in {' or '.join(known)}")
    require_writable(path)


def write(columns: Mapping[str, Sequence[Any]], path: str | os.PathLike[str], decimal: str = ".") -> None:
    """Write columns of equal length, in the place of a file that is there; None is an empty cell.

    Args:
        columns: By their names.
        path: CSV, in UTF-8, or Parquet, by how it ends. Its folder must be there.
        decimal: The sign of decimals in CSV: with a comma there, semicolons part the cells.

    Example:
        >>> path = folder.with_name("matches.csv")
        >>> write({"id": ["a", "b"], "match": ["x", None]}, path)
        >>> path.read_text()
        'id,match\\na,x\\nb,\\n'
    """
    require_table(path)
    with atomic_file(path) as file:
        if Path(path).suffix.lower() == ".parquet":
            require("pyarrow", extra="tables")
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.table(dict(columns)), file)
        else:
            file.write(as_csv(columns, decimal).encode())


def as_csv(columns: Mapping[str, Sequence[Any]], decimal: str = ".") -> str:
    """What :func:`write` puts into a CSV file.

    Args:
        columns, decimal: As there.

    Example:
        >>> as_csv({"id": ["a", "b"], "match": ["x", None]})
        'id,match\\na,x\\nb,\\n'
        >>> as_csv({"id": ["a.1"], "weight": [0.5]}, decimal=",")
        'id;weight\\na.1;0,5\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";" if decimal == "," else ",", lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([str(cell).replace(".", decimal) if isinstance(cell, float) else cell for cell in row])
    return text.getvalue()
