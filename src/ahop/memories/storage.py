"""Memories on disk: one safetensors file that is whole or not there, and never unpickled."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from ahop._checks import as_device, require_finite
from ahop._component import Component, family, from_plain, to_plain
from ahop._files import atomic_file, digest, own_folder
from ahop._version import __version__

FILE = "memory.safetensors"
# Of an index, which takes the place of a memory that was saved before it.
PAGE = "index.json"
FORMAT = "1"


def save(memory: Component, folder: str | os.PathLike[str]) -> None:
    """Write ``memory`` into ``folder``, which is made if need be; the one that it lies in must be there.

    The file appears under its name only once it is complete on disk: a crash leaves what was there before, and of
    several that save to one folder the last one wins, be it a memory or an index.
    """
    arguments = {key: to_plain(value) for key, value in memory.arguments().items() if key not in _STORED}
    recipe = json.dumps({"name": memory.name, "arguments": arguments}, sort_keys=True)
    tensors = {key: value.detach().cpu().clone().contiguous() for key, value in memory.state_dict().items()}
    metadata = {"format": FORMAT, "ahop": __version__, "recipe": recipe, "sha256": digest(recipe, tensors)}
    with atomic_file(own_folder(folder) / FILE) as file:
        file.write(safetensors.torch.save(tensors, metadata))
    if (Path(folder) / PAGE).exists():
        from ahop.index.storage import remove

        remove(folder)


def load(folder: str | os.PathLike[str], device: str | torch.device = "cpu") -> Any:
    """The memory that was saved in ``folder``, or the index of one (:mod:`ahop.index.storage`).

    A file that was cut short or altered is refused. A class of your own must be imported before it is loaded.

    Example:
        >>> ahop.ModernHopfield(torch.eye(2)).save(folder)
        >>> ahop.load(folder).scores(torch.eye(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    device = as_device(str(device))
    if (Path(folder) / PAGE).exists():
        from ahop.index.index import Index

        try:
            return Index.open(folder, device)
        except (FileNotFoundError, ValueError):
            # Another may have saved a memory in its place meanwhile.
            if (Path(folder) / PAGE).exists():
                raise
    path = Path(folder) / FILE
    metadata, tensors = _read(path)
    versions = f"written by ahop {metadata.get('ahop', '0.1.0 or earlier')}; this is ahop {__version__}"
    if "format" not in metadata or "recipe" not in metadata:
        raise ValueError(f"{path} is not an ahop memory")
    if metadata["format"] != FORMAT:
        raise ValueError(f"{path} has format {metadata['format']!r}, {versions}, which reads format {FORMAT!r}")
    if metadata.get("sha256") != digest(metadata["recipe"], tensors):
        raise ValueError(f"{path} is damaged: its contents do not match their checksum")
    try:
        memory = _rebuild(metadata["recipe"], tensors)
    except Exception as error:  # What a recipe asks for may fail in any way.
        raise ValueError(f"{path} cannot be loaded as a memory, {versions}: {_line(error)}") from error
    return memory.to(device)


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors, from a file that is opened once: by its name it may be another one a moment later."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise FileNotFoundError(f"folder {str(path.parent)!r} holds no saved memory ({path.name})") from error
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    try:
        tensors = safetensors.torch.load(data)
        head = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except Exception as error:  # Safetensors has errors of many kinds, and lets others through.
        raise ValueError(f"{path} is damaged: {_line(error)}") from error
    return head.get("__metadata__") or {}, tensors


def _line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _rebuild(recipe: str, tensors: dict[str, Tensor]) -> Component:
    made = json.loads(recipe)
    arguments = {key: from_plain(value) for key, value in made["arguments"].items()}
    stored = {key: tensors[key] for key in _STORED if key in tensors}
    for key, tensor in tensors.items():
        require_finite(tensor, key)
    memory = family("memory").named(made["name"])(**stored, **arguments)
    memory.load_state_dict(tensors)
    return memory


# Constructor arguments that travel as tensors instead of in the recipe.
_STORED = ("patterns", "values", "prior", "spread")
