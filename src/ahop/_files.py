"""Files that are whole or not there, whoever else writes them at the same time."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

# Seconds without a write after which a temporary file is what a killed writer left.
OLD = 3600.0
# What safetensors calls types of numbers.
_KINDS = {
    **{torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"},
    **{torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8"},
    torch.bool: "BOOL",
}


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write into, which takes its name only when the block ends, complete on disk; its folder must be there.

    Of several writers, threads or processes, the last one wins; a reader sees what one of them wrote, all of it. After
    an error or a crash everything is as it was. What killed writers of this name left long ago is removed.
    """
    path = Path(path)
    _require_parent(path)
    # Not by the number of the process: threads share it, and so may processes of two machines.
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}.part")
    try:
        with temporary.open("xb") as file:
            _tidy(path, os.fstat(file.fileno()).st_mtime)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)


def write_atomically(text: str, path: str | os.PathLike[str]) -> None:
    """Write a text so that the file is never half of it."""
    with atomic_file(path) as file:
        file.write(text.encode())


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that :func:`atomic_file` could not write, and leave nothing behind."""
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
        _require_parent(path)
        probe = path.with_name(f".{path.name}-{secrets.token_hex(8)}.part")
        probe.open("xb").close()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror or error}") from error


def own_folder(folder: str | os.PathLike[str]) -> Path:
    """A folder, made if need be; the one that it lies in must be there, since nobody asked for that."""
    folder = Path(folder)
    _require_parent(folder)
    _require_no_file(folder)
    folder.mkdir(exist_ok=True)
    return folder


def require_folder(folder: str | os.PathLike[str]) -> None:
    """Refuse a folder that :func:`own_folder` could not make, or that nothing can be written into."""
    folder = Path(folder)
    _require_no_file(folder)
    require_writable(folder / "x" if folder.is_dir() else folder)


def _require_no_file(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, and must be a folder or a new name")


def _require_parent(path: Path) -> None:
    if not path.parent.exists():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist")


def _tidy(path: Path, now: float) -> None:
    """Remove what killed writers of this very name left, earlier versions' too; ``now`` is by the folder's clock."""
    left = re.compile(rf"\.{re.escape(path.name)}(-[0-9a-f]+(\.part)?|\.part)")
    # Another writer may tidy up at the same time, or the folder may not let us.
    with suppress(OSError):
        for other in list(path.parent.iterdir()):
            with suppress(OSError):
                if left.fullmatch(other.name) and now - other.stat().st_mtime > OLD:
                    other.unlink()


def _sync(folder: Path) -> None:
    """Make sure that the new name survives a loss of power, on systems where a folder can be asked to."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_tensors(tensors: dict[str, Tensor], file: BinaryIO) -> None:
    """Write tensors into an open file in the form of safetensors, one after another.

    The library itself takes the name of a file, and puts another one in the place of that which is open.
    """
    head: dict[str, Any] = {}
    end = 0
    # The widest first, so that each lies where its numbers can be read from.
    order = sorted(tensors, key=lambda key: (-tensors[key].element_size(), key))
    for key in order:
        start, end = end, end + tensors[key].nbytes
        shape, kind = list(tensors[key].shape), _KINDS[tensors[key].dtype]
        head[key] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for key in order:
        file.write(_bytes(tensors[key]))


def digest(recipe: str, tensors: dict[str, Tensor]) -> str:
    """The checksum of a recipe and its tensors."""
    digest = hashlib.sha256(recipe.encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(_bytes(tensor))
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data
