"""Finding data files: the folder ``AHOP_DATA``, then a cache, then a download that is checked before use."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ahop._files import atomic_file
from ahop._progress import progress


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Attributes:
        path: Its place below a data folder.
        sha256: The checksums of the copies known to hold the same data.
        url: Where it can be downloaded; None for a copy that was repacked and is nowhere to be had in this form.
        source: What it was made from.
    """

    path: str
    sha256: tuple[str, ...]
    url: str | None = None
    source: str = ""


def cache_folder() -> Path:
    """Where downloads are kept: ``AHOP_CACHE``, or the user's cache folder; an empty variable is as good as none."""
    if own := os.environ.get("AHOP_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ahop"


def find(file: DataFile) -> Path | None:
    """Where the file lies on this machine, or None when it would have to be downloaded."""
    folders = [Path(os.environ["AHOP_DATA"])] if os.environ.get("AHOP_DATA") else []
    return next((folder / file.path for folder in [*folders, cache_folder()] if (folder / file.path).is_file()), None)


def fetch(file: DataFile) -> Path:
    """A checked local copy of the file, downloaded into the cache when there is none.

    One that was prepared here has its checksum beside it.
    """
    path = find(file)
    if path is None:
        missing = (
            f"{file.path} is not in AHOP_DATA ({os.environ.get('AHOP_DATA') or 'not set'}) nor in the cache "
            f"({cache_folder()}), and"
        )
        if file.url is None:
            advice = "ahop datasets NAME says where it is published, if it is, and how to get it"
            raise FileNotFoundError(f"{missing} cannot be downloaded in this form ({file.source}): {advice}")
        path = cache_folder() / file.path
        try:
            download(file.url, path, file.sha256)
        except OSError as error:
            raise FileNotFoundError(f"{missing} {error}") from error
    elif (digest := _sha256(path)) not in (*file.sha256, *_noted(path)):
        raise ValueError(
            f"{path} is damaged: its sha256 {digest} is not one of the known ones; remove it and try again"
        )
    return path


def download(url: str, path: Path, sha256: Sequence[str] = ()) -> None:
    """Download a file, whole or not at all; of checksums, where some are given, it must have one.

    Args:
        url: Where the file is.
        path: Where it goes; folders are made.
        sha256: The checksums of which it must have one; none are asked for where none are given.
    """
    # Not by pooch: it would bring eight packages to every user of the core, and knows one checksum for a file.
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with atomic_file(path) as target, urllib.request.urlopen(url, timeout=30) as source:
            size, digest = int(source.headers.get("Content-Length") or 0), hashlib.sha256()
            with progress(f"downloading {path.name}", -(-size // 2**16) or None) as bar:
                while chunk := source.read(2**16):
                    digest.update(chunk)
                    target.write(chunk)
                    bar.advance()
            if size and target.tell() != size:
                raise OSError(f"received only {target.tell():,} of {size:,} bytes")
            if sha256 and digest.hexdigest() not in sha256:
                found = f"has sha256 {digest.hexdigest()}, not the one expected"
                raise ValueError(f"the download of {url} {found}; nothing was kept")
    except (http.client.HTTPException, OSError) as error:
        raise OSError(f"{url} could not be downloaded: {error}") from error


def _noted(path: Path) -> list[str]:
    """The checksum that stands beside a file which was prepared here."""
    note = path.with_name(path.name + ".sha256")
    return note.read_text().split()[:1] if note.is_file() else []


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
