"""Finding data files: the folder ``AHOP_DATA``, then a cache, then a download that is checked before use."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from ahop._files import whole_file
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
    """A checked local copy of the file, downloaded into the cache when there is none."""
    path = find(file)
    if path is None:
        path = cache_folder() / file.path
        _download(file, path)
    elif (digest := _sha256(path)) not in file.sha256:
        raise ValueError(
            f"{path} is damaged: its sha256 {digest} is not one of the known ones; remove it and try again"
        )
    return path


def _download(file: DataFile, path: Path) -> None:
    missing = (
        f"{file.path} is not in AHOP_DATA ({os.environ.get('AHOP_DATA') or 'not set'}) nor in the cache "
        f"({cache_folder()}), and"
    )
    if file.url is None:
        raise FileNotFoundError(f"{missing} there is nowhere to download it from: {file.source}")
    try:
        with whole_file(path) as target, urllib.request.urlopen(file.url, timeout=30) as source:
            size, digest = int(source.headers.get("Content-Length") or 0), hashlib.sha256()
            with progress(f"downloading {path.name}", -(-size // 2**16) or None) as bar:
                while chunk := source.read(2**16):
                    digest.update(chunk)
                    target.write(chunk)
                    bar.advance()
            if digest.hexdigest() not in file.sha256:
                found = f"has sha256 {digest.hexdigest()}, not the one expected"
                raise ValueError(f"the download of {file.url} {found}; nothing was kept")
    except (http.client.HTTPException, OSError) as error:
        raise FileNotFoundError(f"{missing} {file.url} could not be downloaded: {error}") from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
