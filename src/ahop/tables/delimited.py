"""Tables as text, in whatever dialect: what parts the cells, how decimals are written, and whether columns have names.

The start of a file tells the dialect; Arrow then reads all of it, fast and in little memory. Where it stumbles, the
file is walked through once more, slowly, to say on which line and in which column.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO

from ahop._extras import require

if TYPE_CHECKING:
    import pyarrow

_WORDS = ("NA", "N/A", "#N/A", "n.a.", "n.d.", "NaN", "null", "None", "-", "?")
# What stands for a value that is missing, in any case; a blank before it is a blank after a separator.
MISSING = tuple(
    dict.fromkeys(
        pad + case for word in ("", *_WORDS) for case in (word, word.lower(), word.upper()) for pad in ("", " ")
    )
)
# Rarer signs first: where they part all rows alike, commas are decimals.
_SEPARATORS = "\t;|,"
_SAMPLE_BYTES, _SAMPLE_ROWS = 2**18, 200
# A whole number, a code with leading zeros or more digits than a float keeps, and what may be a number with thousands
# separators.
_WHOLE, _CODE = re.compile(r"[+-]?\d+"), re.compile(r"0\d+|\d{16,}")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}((,\d{3})+(\.\d*)?|(\.\d{3})+(,\d*)?|([ '\u00a0\u202f]\d{3})+([.,]\d*)?)")
_DECIMAL = {
    point: re.compile(rf"[+-]?(\d+{mark}?\d*|{mark}\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
    for point, mark in ((".", r"\."), (",", ","))
}


@dataclass(frozen=True)
class Dialect:
    """How a file is written: the sign between cells, that of decimals, and whether the first line names the columns."""

    separator: str
    decimal: str
    header: bool

    def __str__(self) -> str:
        parts = [f"separator {'tab' if self.separator == chr(9) else repr(self.separator)}"]
        parts += ["decimal commas"] if self.decimal == "," else []
        parts += [] if self.header else ["no line of names"]
        return ", ".join(parts)

    def number(self, cell: str) -> bool:
        """Whether a cell is a number or a missing value."""
        return cell in MISSING or _DECIMAL[self.decimal].fullmatch(cell.strip()) is not None


def read(file: BinaryIO, name: str, id: str | None = None) -> tuple[pyarrow.Table, Dialect]:
    """The cells of a file, as numbers or as text, and how they were written.

    Args:
        file: Text in UTF-8.
        name: What messages call it.
        id: A column that is text, whatever it looks like: ids keep their leading zeros.
    """
    require("pyarrow", extra="tables")
    import pyarrow
    from pyarrow import csv as arrow

    lines = _sample(file, name)
    separator = _separator(lines)
    cells = list(csv.reader(lines, delimiter=separator))
    dialect = Dialect(separator, _decimal(cells), header=not _all_numbers(cells[0]))
    body = cells[1:] if dialect.header else cells
    if not body:
        raise ValueError(f"{name} has a line of names and no rows")
    places = [f"column {place + 1}" for place in range(len(cells[0]))]
    names = [cell.strip() or place for cell, place in zip(cells[0], places, strict=True)] if dialect.header else places
    if len(set(names)) < len(names):
        twice = next(one for one in names if names.count(one) > 1)
        raise ValueError(f"{name} has more than one column {twice!r}; each needs a name of its own")
    columns = [[row[place] for row in body if place < len(row)] for place in range(len(names))]
    numbers = [one != id and _is_number(dialect, column) for one, column in zip(names, columns, strict=True)]
    # Arrow calls columns as the file does, or f0, f1, ...
    keys = cells[0] if dialect.header else [f"f{place}" for place in range(len(names))]
    kinds = {key: pyarrow.float64() if number else pyarrow.string() for key, number in zip(keys, numbers, strict=True)}
    file.seek(0)
    try:
        table = arrow.read_csv(
            file,
            arrow.ReadOptions(autogenerate_column_names=not dialect.header),
            arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
            arrow.ConvertOptions(column_types=kinds, null_values=MISSING, decimal_point=dialect.decimal),
        )
    except pyarrow.ArrowInvalid as error:
        _complain(file, name, dialect, names, numbers)
        raise ValueError(f"{name} cannot be read: {' '.join(str(error).split())}") from error
    return table.rename_columns(names), dialect


def _sample(file: BinaryIO, name: str) -> list[str]:
    """The first lines that are not empty."""
    file.seek(0)
    start = file.read(_SAMPLE_BYTES)
    more = bool(file.read(1))
    if more:
        # No line that is cut short.
        start = start[: start.rfind(b"\n") + 1] or start
    try:
        text = start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = start[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{name}, line {line} is not text in UTF-8; save it as UTF-8 (in Excel: 'CSV UTF-8')"
        ) from error
    lines = [line for line in text.splitlines(keepends=True) if line.strip()]
    if not lines:
        raise ValueError(f"{name} is empty")
    return lines


def _separator(lines: list[str]) -> str:
    """The sign that parts most rows into as many cells; of equals, one that parts the first row so, too."""

    def evenness(sign: str) -> tuple[float, bool]:
        rows = [len(row) for row in csv.reader(lines[:_SAMPLE_ROWS], delimiter=sign) if row]
        width, times = Counter(rows).most_common(1)[0]
        return (times / len(rows), rows[0] == width) if width > 1 else (0.0, False)

    best = max(_SEPARATORS, key=evenness)
    return best if evenness(best)[0] else ","


def _decimal(cells: list[list[str]]) -> str:
    """A comma, if more numbers are written with one than with a point; what may part thousands does not count."""
    numbers = [cell for row in cells for cell in map(str.strip, row) if not _WHOLE.fullmatch(cell)]
    points = sum(_DECIMAL["."].fullmatch(cell) is not None for cell in numbers)
    commas = sum(_DECIMAL[","].fullmatch(cell) is not None and not _THOUSANDS.fullmatch(cell) for cell in numbers)
    return "," if commas > points else "."


def _all_numbers(cells: list[str]) -> bool:
    """Whether a first row is one of numbers, and not of names."""
    numbers = [Dialect("", decimal, True).number for decimal in ".,"]
    return any(cell not in MISSING for cell in cells) and any(all(map(number, cells)) for number in numbers)


def is_code(cell: str) -> bool:
    """Whether a cell has leading zeros or very many digits, as no measurement has."""
    return _CODE.fullmatch(cell.strip()) is not None


def _is_number(dialect: Dialect, cells: list[str]) -> bool:
    """Whether a column is one of numbers: most of it, so that a cell that is none is an error, and no code among it."""
    given = [cell.strip() for cell in cells if cell not in MISSING]
    like = sum(dialect.number(cell) or _THOUSANDS.fullmatch(cell) is not None for cell in given)
    return 2 * like >= len(given) and not any(map(is_code, given))


def _complain(file: BinaryIO, name: str, dialect: Dialect, names: list[str], numbers: list[bool]) -> None:
    """Refuse the first line that is not as the others, or the first cell that is no number."""
    header = dialect.header
    for line, row in _rows(file, name, dialect.separator):
        if len(row) != len(names):
            raise ValueError(f"{name}, line {line} must have {len(names)} cells, as line 1 has; it has {len(row)}")
        if header:
            header = False
            continue
        for column, number, cell in zip(names, numbers, row, strict=True):
            if number and not dialect.number(cell):
                place = f"{name}, line {line}, column {column!r}"
                if _THOUSANDS.fullmatch(cell.strip()):
                    raise ValueError(
                        f"{place}: {cell.strip()!r} may have a thousands separator; write numbers without any"
                    )
                raise ValueError(
                    f"{place}: {cell.strip()[:40]!r} is no number; write one, or leave the cell empty where it is "
                    "missing or below a limit (NA, n.d. and - say so, too)"
                )


def _rows(file: BinaryIO, name: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, and the line on which each ends."""
    file.seek(0)
    reader = csv.reader(text := TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=separator)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{name} cannot be read after line {reader.line_num}: {error}") from error
    finally:
        # The file is somebody else's to close.
        text.detach()


def cells(file: BinaryIO, name: str) -> list[list[str]]:
    """All rows of a small file, as text."""
    return [row for _, row in _rows(file, name, _separator(_sample(file, name)))]
