"""Files of somebody else: read in memory, never unpickled, and refused with a sentence where they are not in order."""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO

import numpy as np
import torch
from torch import Tensor

from ahop._extras import require
from ahop.linkage.pairs import paired
from ahop.playground.pictures import Pictures
from ahop.playground.sent import File, UploadError
from ahop.tables import Table, parsed
from ahop.tables.cells import stripped

MOST_PICTURES = 64
MOST_ROWS, MOST_COLUMNS = 20_000, 1_000
_MOST_PIXELS = 25_000_000
_SIDE = 12
# Bytes in which the head of an array must end, and a line of text.
_HEAD, _LINE = 2**14, 2**18
_KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")


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


# --- tables ------------------------------------------------------------------------------------------------------

FORMATS = """
**CSV** of any dialect: names of columns in the first line or none, commas, semicolons or tabs between cells, decimal
points or commas. A missing value is empty, `NA`, `?` or the like. The first column of text that is different in
every row holds the ids.

**NPY or NPZ**: one array of numbers, a row each; NaN is missing. Ids are row numbers, from 0.

**Known pairs**, if you have any: a CSV file of two columns, the id of an incoming row and that of a stored one,
or `none`.
"""


def table(file: File) -> Table:
    """The table of a CSV, NPY or NPZ file, as :func:`ahop.tables.read` reads it, within the bounds of the page."""
    kind = file.name.lower().rpartition(".")[2]
    try:
        if kind in ("csv", "tsv", "txt"):
            _require_bounded(file)
            found = parsed(io.BytesIO(file.content), file.name)
        elif kind in ("npy", "npz"):
            found = Table.of_array(_array(file), name=file.name)
        else:
            raise UploadError(f"{file.name} must end in .csv, .tsv, .txt, .npy or .npz.")
    except UploadError:
        raise
    except ValueError as error:
        raise UploadError(f"{error}.") from error
    _require_fitting(file.name, found.values.shape)
    return found


def origins(file: File, stored: Table, incoming: Table) -> Tensor:
    """The stored row of each incoming one ``(n,)`` by a file of known pairs: -1 where it does not name the
    row, ``ahop.STRANGER`` where it says none.

    Args:
        file: The known pairs.
        stored, incoming: The two tables.
    """
    try:
        return paired(stripped(io.BytesIO(file.content), file.name), file.name, stored, incoming).origins
    except ValueError as error:
        raise UploadError(f"{error}.") from error


def _require_fitting(name: str, shape: tuple[int, ...]) -> None:
    if shape[0] > MOST_ROWS or shape[1] > MOST_COLUMNS:
        most = f"at most {MOST_ROWS:,} rows of {MOST_COLUMNS:,} columns are read"
        raise UploadError(f"{name} has {shape[0]:,} rows of {shape[1]:,} columns; {most}.")


def _require_bounded(file: File) -> None:
    """Refuse a text that would fill the memory as a table, before it is one."""
    breaks = np.flatnonzero(np.frombuffer(file.content, np.uint8) == ord("\n"))
    if np.diff(breaks, prepend=-1, append=len(file.content)).max() > _LINE:
        raise UploadError(f"{file.name} has lines of more than {_LINE:,} bytes, which is no table of numbers.")
    # Every cell but the last ends in one of these; decimal commas may make up as many again.
    if max(map(file.content.count, b"\n\t;|,")) > 2 * MOST_ROWS * MOST_COLUMNS:
        raise UploadError(f"{file.name} is too large: at most {MOST_ROWS:,} rows of {MOST_COLUMNS:,} columns are read.")


def _array(file: File) -> np.ndarray:
    """An array by itself, or the one of an archive that is alone or named ``patterns``."""
    try:
        if file.name.lower().endswith(".npy"):
            return _bounded(io.BytesIO(file.content), file.name)
        with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
            names = archive.namelist()
            if len(names) != 1 and "patterns.npy" not in names:
                raise UploadError(f"{file.name} must hold one array, or one named 'patterns'; it has {len(names)}.")
            with archive.open("patterns.npy" if "patterns.npy" in names else names[0]) as part:
                return _bounded(part, file.name)
    except UploadError:
        raise
    except Exception as error:  # Damaged files fail in many ways.
        kind = file.name.upper().rpartition(".")[2]
        raise UploadError(f"{file.name} is not an {kind} file, or not a complete one.") from error


def _bounded(part: IO[bytes], name: str) -> np.ndarray:
    """The array in an open file; no more is unpacked than the bounds allow, whatever its head says."""
    start = part.read(_HEAD)
    shape, kind = _head(io.BytesIO(start))
    if len(shape) != 2 or kind.kind not in "iufb":
        raise UploadError(f"{name} must hold a matrix of numbers; the array has shape {shape} and type {kind}.")
    _require_fitting(name, shape)
    rest = part.read(max(0, math.prod(shape)) * kind.itemsize)
    return np.load(io.BytesIO(start + rest), allow_pickle=False)


def _head(file: io.BytesIO) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and the type that an array says it has."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    return shape, kind
