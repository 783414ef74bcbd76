"""From the publishers' own files to what the loaders read: one file a kind of set, which joins by being there."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ahop._files import atomic_file, write_atomically
from ahop._registry import read_all
from ahop.datasets.base import ENTRIES
from ahop.datasets.files import DataFile, cache_folder, download, fetch
from ahop_paper.publishers.given import Given
from ahop_paper.publishers.registry import CONVERTERS, Content


class Prepared(NamedTuple):
    """Where the files of a set are now, and whether they hold the very values that the results were made with."""

    paths: list[Path]
    same: bool


def prepare(name: str, files: Sequence[str | os.PathLike[str]] = ()) -> Prepared:
    """Make what the loader of a data set reads, in the cache.

    Args:
        name: The data set.
        files: The publisher's files, folders that hold them, or archives as they were downloaded. Without any, they
            are downloaded, where that needs no account; values other than the known ones are then refused.
    """
    entry = ENTRIES.named(name)
    origin = entry.origin
    if not entry.files:
        raise ValueError(f"data set {name!r} needs no file: it can be loaded as it is")
    if all(file.url for file in entry.files):
        if files:
            raise ValueError(f"data set {name!r} is read as it is published: ahop-paper prepare {name}, and no files")
        return Prepared([fetch(file) for file in entry.files], True)
    if origin is None or not origin.files:
        raise ValueError(f"data set {name!r} cannot be prepared: {origin.note if origin else 'its origin is unknown'}")
    if files:
        content = _convert(name, files)
        return Prepared([_keep(content, entry.files[0])], checksum(content) == origin.values)
    if origin.url is None:
        raise ValueError(f"data set {name!r} has to be fetched by hand, from {origin.page}: {', '.join(origin.files)}")
    archive = cache_folder() / Path(origin.url).name
    download(origin.url, archive)
    try:
        content = _convert(name, [archive])
        if (found := checksum(content)) != origin.values:
            raise ValueError(f"{origin.url} holds different values from the known ones ({found}); nothing was kept")
        return Prepared([_keep(content, entry.files[0])], True)
    finally:
        archive.unlink(missing_ok=True)


def _convert(name: str, files: Sequence[str | os.PathLike[str]]) -> Content:
    try:
        return CONVERTERS.named(name)(Given(files))
    except (ValueError, LookupError, TypeError) as error:
        # Whatever a converter trips over, it is files of another form.
        raise ValueError(f"data set {name!r} cannot be built from these files: {error}") from error


def checksum(content: Content) -> str:
    """The sha256 of values, whatever they are packed in."""
    digest = hashlib.sha256()
    if isinstance(content, str):
        digest.update("\n".join(content.splitlines()).encode())
        return digest.hexdigest()
    for key in sorted(content):
        array = np.ascontiguousarray(content[key])
        # The width of text depends on the longest.
        kind = array.dtype.kind if array.dtype.kind == "U" else array.dtype.str
        digest.update(f"{key} {kind} {array.shape}".encode())
        digest.update("\n".join(array.tolist()).encode() if kind == "U" else array.tobytes())
    return digest.hexdigest()


def _keep(content: Content, file: DataFile) -> Path:
    """Write it where the loader looks, and beside it the checksum that the loader will ask for."""
    path = cache_folder() / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        data = gzip.compress(content.encode(), mtime=0)
    else:
        packed = io.BytesIO()
        np.savez_compressed(packed, **content)  # type: ignore[arg-type]
        data = packed.getvalue()
    write_atomically(f"{hashlib.sha256(data).hexdigest()}  {path.name}\n", path.with_name(path.name + ".sha256"))
    with atomic_file(path) as target:
        target.write(data)
    return path


read_all(__name__, __path__)
