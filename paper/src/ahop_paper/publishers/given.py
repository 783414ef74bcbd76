"""The publisher's files as a user has them: by themselves, in folders, or in the archives that they came in."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

_TAR = (".tgz", ".tar.gz", ".tar")
# Archives in archives, and bytes of one file in them; what goes beyond was made to do harm.
_MAX_DEPTH, _MAX_BYTES = 3, 2**31
# What archives are refused with that are cut short, altered, locked, or packed in a way that Python does not know.
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError)


class Given:
    """Files by name, wherever among the paths they lie. Archives are read, never unpacked.

    Args:
        paths: Files, folders and archives.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self.paths = [Path(path) for path in paths]
        for path in self.paths:
            if not path.exists():
                raise FileNotFoundError(f"{path} is not there")

    def text(self, name: str) -> str:
        """The text of the file of that name, which may name the folder that it lies in as well."""
        return self.data(name).decode("utf-8-sig")

    def data(self, name: str) -> bytes:
        """What the file of that name holds; a file that was given alone may be called anything."""
        wanted = PurePosixPath(name).parts
        found = []
        for path, content in self.walk():
            if path.parts[-len(wanted) :] == wanted:
                return content
            if path.parts[-len(wanted) :] == (*wanted[:-1], wanted[-1] + ".Z"):
                return _expand(content, path.name)
            found.append((path.name, content))
        if len(self.paths) == len(found) == 1 and self.paths[0].name == found[0][0]:
            return found[0][1]
        some = ", ".join(name for name, _ in found[:8]) + ", ..." * (len(found) > 8)
        raise ValueError(f"{name} must be among the files; got {some or 'none'}")

    def walk(self) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Every file with its path, one after another."""
        for path in self.paths:
            inside = sorted(path.rglob("*")) if path.is_dir() else [path]
            for file in inside:
                if file.is_file():
                    yield from _open(PurePosixPath(file.as_posix()), file.read_bytes())


def _open(path: PurePosixPath, content: bytes, depth: int = 0) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The file itself or, if it is an archive, what is in it."""
    if path.suffix != ".zip" and not path.name.endswith(_TAR):
        yield path, content
        return
    if depth == _MAX_DEPTH:
        raise ValueError(f"{path} lies in {depth} archives, one in another; unpack them first")
    try:
        if path.suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                for info in archive.infolist():
                    if not info.is_dir():
                        _require_small(info.filename, info.file_size)
                        yield from _open(path.parent / info.filename, archive.read(info), depth + 1)
        else:
            with tarfile.open(fileobj=io.BytesIO(content)) as tar:
                for member in tar:
                    file = tar.extractfile(member) if member.isfile() else None
                    if file is not None:
                        _require_small(member.name, member.size)
                        yield from _open(path.parent / member.name, file.read(), depth + 1)
    except _DAMAGED as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def _require_small(name: str, size: int) -> None:
    if size > _MAX_BYTES:
        raise ValueError(f"{name} has {size:,} bytes; at most {_MAX_BYTES:,} are read")


def _expand(content: bytes, name: str) -> bytes:
    """A file of the old program ``compress``, which Python cannot read and ``gzip`` can."""
    program = shutil.which("gzip")
    if program is None:
        raise ValueError(f"{name} must be expanded first, as gunzip does; there is no gzip here to do it")
    run = subprocess.run([program, "-dc"], input=content, capture_output=True)
    if run.returncode:
        raise ValueError(f"{name} is damaged: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout
