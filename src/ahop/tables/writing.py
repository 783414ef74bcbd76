"""Tables out: a file that is whole or not there."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ahop._extras import require
from ahop._files import require_writable, whole_file

SUFFIXES = (".csv", ".parquet")


def require_table(path: str | os.PathLike[str], *others: str) -> None:
    """Refuse a path whose name does not say what to write, or that nothing can be written to."""
    if Path(path).suffix.lower() not in (known := (*SUFFIXES, *others)):
        raise ValueError(f"{path} must end in {' or '.join(known)}")
    require_writable(path)


def write(columns: Mapping[str, Sequence[Any]], path: str | os.PathLike[str]) -> None:
    """Write columns of equal length, in the place of a file that is there; None is an empty cell.

    Args:
        columns: By their names.
        path: CSV, in UTF-8 with commas, or Parquet, by how it ends. Its folder must be there.

    Example:
        >>> path = folder.with_name("matches.csv")
        >>> write({"id": ["a", "b"], "match": ["x", None]}, path)
        >>> path.read_text()
        'id,match\\na,x\\nb,\\n'
    """
    require_table(path)
    with whole_file(path) as file:
        if Path(path).suffix.lower() == ".parquet":
            require("pyarrow", extra="tables")
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.table(dict(columns)), file)
        else:
            file.write(as_csv(columns).encode())


def as_csv(columns: Mapping[str, Sequence[Any]]) -> str:
    """What :func:`write` puts into a CSV file.

    Example:
        >>> as_csv({"id": ["a", "b"], "match": ["x", None]})
        'id,match\\na,x\\nb,\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
