"""Files of somebody else: read in memory, never unpickled, and refused with a sentence where they are not in order."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop._checks import as_origins
from ahop._extras import require
from ahop.playground.pictures import Pictures

MOST_BYTES = 8 * 2**20
MOST_PICTURES = 64
MOST_PATTERNS = MOST_QUERIES = 1000
MOST_COLUMNS = 256
_MOST_PIXELS = 25_000_000
_SIDE = 12
# Bytes in which the head of an array must end.
_HEAD = 2**14
_KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_WHOLE_NUMBERS, _NUMBERS = "iu", "iufb"


class UploadError(ValueError):
    """A file that cannot be used, and why, in a sentence for the page."""


class File(NamedTuple):
    """A file as it came: its name, and what is in it."""

    name: str
    content: bytes


class Data(NamedTuple):
    """Patterns ``(N, d)``, queries ``(n, d)``, and origins ``(n,)`` with -1 where nobody knows; None knows none."""

    patterns: Tensor
    queries: Tensor
    origins: Tensor | None


def files(text: str, most: int = 1) -> list[File]:
    """What the page sends: a list of names and contents, the latter in base64.

    Args:
        text: JSON, ``[{"name": ..., "data": ...}, ...]``.
        most: How many files are taken.
    """
    try:
        sent = json.loads(text)
        pairs = [(str(one["name"]), one["data"]) for one in sent]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise UploadError("The page sent no files that can be read.") from error
    if not 1 <= len(pairs) <= most:
        raise UploadError(
            f"Choose one file, not {len(pairs)}." if most == 1 else f"Choose 1 to {most} files, not {len(pairs)}."
        )
    found = []
    for name, data in pairs:
        # The page sends nothing of a file that it sees is too large.
        if not isinstance(data, str) or len(data) > MOST_BYTES * 4 / 3 + 4:
            raise UploadError(f"{name} is too large: at most {MOST_BYTES // 2**20} MB are read.")
        try:
            found.append(File(name, base64.b64decode(data, validate=True)))
        except ValueError as error:
            raise UploadError(f"{name} did not arrive whole. Please try again.") from error
    return found


# --- pictures ----------------------------------------------------------------------------------------------------


def pictures(sent: list[File]) -> Pictures:
    """Pictures of your own, cut to a square in the middle, grey and small."""
    if not 2 <= len(sent) <= MOST_PICTURES:
        raise UploadError(f"A memory needs 2 to {MOST_PICTURES} pictures; {len(sent)} came.")
    patterns = torch.stack([_picture(file) for file in sent])
    if len(patterns.unique(dim=0)) < 2:
        raise UploadError("All these pictures look the same when they are small. Choose some that differ.")
    return Pictures(patterns, (_SIDE, _SIDE), tuple(file.name for file in sent))


def _picture(file: File) -> Tensor:
    require("PIL", extra="playground")
    from PIL import Image

    try:
        with Image.open(io.BytesIO(file.content), formats=_KINDS) as image:
            # The size stands in the head of a file: looked at before anything is unpacked.
            if image.width * image.height > _MOST_PIXELS:
                raise UploadError(
                    f"{file.name} has {image.width} x {image.height} pixels; at most 25 million are read."
                )
            grey = image.convert("L")
    except UploadError:
        raise
    except Exception as error:  # Whatever a damaged file makes the reader say, it is no picture.
        raise UploadError(f"{file.name} is not a picture that can be read (PNG, JPEG, WebP, GIF or BMP).") from error
    side = min(grey.size)
    left, top = (grey.width - side) // 2, (grey.height - side) // 2
    small = grey.resize((_SIDE, _SIDE), Image.Resampling.BOX, box=(left, top, left + side, top + side))
    return torch.from_numpy(np.asarray(small, np.float32) / 127.5 - 1).flatten()


# --- numbers -----------------------------------------------------------------------------------------------------


def data(file: File) -> Data:
    """Patterns and queries of an NPZ or a CSV file; ``FORMATS`` says how these look."""
    kind = file.name.lower().rpartition(".")[2]
    if kind == "npz":
        return _npz(file)
    if kind == "csv":
        return _csv(file)
    raise UploadError(f"{file.name} must end in .csv or .npz.")


FORMATS = """
**NPZ**: arrays `patterns` and `queries`, one a row, and `origins` if known: the row of the pattern that each query
came from, counted from 0, with -1 where nobody knows.

**CSV**: a first line of names. Column `kind` says `pattern` or `query`, column `item` (if there is one) names the
item: each pattern has its own, a query has that of its pattern, or nothing where nobody knows. All other columns
are numbers.
"""


def _npz(file: File) -> Data:
    try:
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            found = {name: _array(archive, name) for name in ("patterns", "queries", "origins")}
    except UploadError:
        raise
    except Exception as error:  # Damaged archives fail in many ways.
        raise UploadError(f"{file.name} is not an NPZ file, or not a whole one.") from error
    patterns, queries = found["patterns"], found["queries"]
    if patterns is None or queries is None:
        raise UploadError(f"{file.name} must have the arrays 'patterns' and 'queries'.")
    return _checked(patterns, queries, found["origins"])


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray | None:
    """An array of the archive, or None; nothing larger than the bounds is unpacked."""
    if f"{name}.npy" not in archive.namelist():
        return None
    most = MOST_PATTERNS if name == "patterns" else MOST_QUERIES
    try:
        with archive.open(f"{name}.npy") as part:
            # No more is unpacked than the bounds allow, whatever the archive and the array's head say.
            start = part.read(_HEAD)
            shape, kind = _head(io.BytesIO(start))
            rest = part.read(max(0, min(math.prod(shape), most * MOST_COLUMNS)) * kind.itemsize)
        wanted = 1 if name == "origins" else 2
        if len(shape) != wanted or kind.kind not in (_WHOLE_NUMBERS if name == "origins" else _NUMBERS):
            what = "whole numbers, one a query" if name == "origins" else "a table of numbers"
            raise UploadError(f"{name} must be {what}; the array has shape {shape} and type {kind}.")
        if shape[0] > most or (wanted == 2 and shape[1] > MOST_COLUMNS):
            raise UploadError(f"{name} has shape {shape}; at most {most} rows of {MOST_COLUMNS} columns are read.")
        return np.load(io.BytesIO(start + rest), allow_pickle=False)
    except UploadError:
        raise
    except Exception as error:  # Damaged archives fail in many ways.
        raise UploadError(f"{name} in this NPZ file cannot be read.") from error


def _head(file: io.BytesIO) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the type that an array says it has."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    return shape, kind


def _csv(file: File) -> Data:
    try:
        text = file.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UploadError(f"{file.name} must be text in UTF-8.") from error
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = _lines(csv.reader(io.StringIO(text), delimiter=delimiter))
    _, names = next(rows, (1, []))
    names = [name.strip() for name in names]
    if "kind" not in names:
        raise UploadError("The first line must name the columns, and one of them must be 'kind'.")
    if len(set(names)) < len(names):
        raise UploadError("Each column must have a name of its own.")
    numbers = [place for place, name in enumerate(names) if name not in ("kind", "item")]
    if not 1 <= len(numbers) <= MOST_COLUMNS:
        raise UploadError(f"There must be 1 to {MOST_COLUMNS} columns of numbers; there are {len(numbers)}.")
    values: dict[str, list[list[float]]] = {"pattern": [], "query": []}
    items: dict[str, list[str]] = {"pattern": [], "query": []}
    for line, row in rows:
        if len(row) != len(names):
            raise UploadError(f"Line {line} has {len(row)} cells; the first line has {len(names)}.")
        kind = row[names.index("kind")].strip()
        if kind not in values:
            raise UploadError(f"Line {line}: kind must be 'pattern' or 'query', not '{kind[:40]}'.")
        if len(values[kind]) == (MOST_PATTERNS if kind == "pattern" else MOST_QUERIES):
            raise UploadError(f"At most {MOST_PATTERNS} patterns and {MOST_QUERIES} queries are read; there are more.")
        values[kind].append([_number(row[place], line, names[place]) for place in numbers])
        if "item" in names:
            items[kind].append(row[names.index("item")].strip())
    origins = _origins(items["pattern"], items["query"]) if "item" in names else None
    stored, asked = (np.array(values[kind], float).reshape(-1, len(numbers)) for kind in ("pattern", "query"))
    return _checked(stored, asked, origins)


def _lines(reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, and the line on which each ends."""
    try:
        for row in reader:
            if row:
                yield reader.line_num, row  # type: ignore[attr-defined]
    except csv.Error as error:
        raise UploadError(f"The CSV file cannot be read: {error}.") from error


def _number(text: str, line: int, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UploadError(f"Line {line}, column '{name[:40]}' must be a number, not '{text[:40]}'.")
    return value


def _origins(stored: list[str], asked: list[str]) -> np.ndarray:
    places = {item: place for place, item in enumerate(stored)}
    if len(places) < len(stored) or "" in places:
        raise UploadError("Each pattern must have an item of its own.")
    return np.array([places.get(item, -1) for item in asked], np.int64)


def _checked(patterns: np.ndarray, queries: np.ndarray, origins: np.ndarray | None) -> Data:
    for name, rows in (("patterns", patterns), ("queries", queries)):
        if len(rows) < 2 or not rows.shape[1]:
            what = f"there are {len(rows)} of {rows.shape[1]} values each"
            raise UploadError(f"There must be at least two {name}, of one value or more; {what}.")
        if not np.isfinite(rows).all():
            raise UploadError(f"All values of the {name} must be finite numbers.")
    if patterns.shape[1] != queries.shape[1]:
        raise UploadError(
            f"Patterns have {patterns.shape[1]} values each and queries {queries.shape[1]}; these must agree."
        )
    known = None
    if origins is not None:
        try:
            if origins.dtype == np.uint64:
                # The largest would come out as -1, which means something.
                origins = np.minimum(origins, np.uint64(np.iinfo(np.int64).max))
            known = as_origins(torch.from_numpy(origins.astype(np.int64)), len(queries), len(patterns), unknown=True)
        except ValueError as error:
            raise UploadError(f"{error}.") from error
    with np.errstate(over="ignore"):
        stored, asked = (torch.from_numpy(rows.astype(np.float32)) for rows in (patterns, queries))
    if not (torch.isfinite(stored).all() and torch.isfinite(asked).all()):
        raise UploadError("Some values are too large for single precision.")
    return Data(stored, asked, None if known is None or bool((known < 0).all()) else known)
