"""Memories on disk: one safetensors file that is whole or not there, and never unpickled."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from ahop._component import from_plain, to_plain
from ahop.memory import AssociativeMemory, Memory

FILE = "memory.safetensors"
FORMAT = "1"


def save(memory: AssociativeMemory, folder: str | os.PathLike[str]) -> None:
    """Write ``memory`` into ``folder``, which is made if need be.

    The file appears under its name only once it is complete on disk, so a crash leaves what was there before.
    """
    arguments = {key: to_plain(value) for key, value in memory.arguments().items() if key not in _STORED}
    recipe = json.dumps({"name": memory.name, "arguments": arguments}, sort_keys=True)
    tensors = {key: value.detach().cpu().clone().contiguous() for key, value in memory.state_dict().items()}
    metadata = {"format": FORMAT, "recipe": recipe, "sha256": _digest(recipe, tensors)}

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{FILE}-{os.getpid()}"
    try:
        with temporary.open("wb") as file:
            file.write(safetensors.torch.save(tensors, metadata))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, folder / FILE)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load(folder: str | os.PathLike[str], device: str | torch.device = "cpu") -> Any:
    """The memory that was saved in ``folder``.

    A file that was cut short or altered is refused. A class of your own must be imported before it is loaded.

    Example:
        >>> ahop.ModernHopfield(torch.eye(2)).save(folder)
        >>> ahop.load(folder).scores(torch.eye(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise FileNotFoundError(f"folder {str(folder)!r} holds no saved memory ({FILE})")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except (safetensors.SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if metadata.get("format") != FORMAT:
        raise ValueError(f"{path} is not a memory of this version of ahop (format {metadata.get('format')!r})")
    if metadata.get("sha256") != _digest(metadata.get("recipe", ""), tensors):
        raise ValueError(f"{path} is damaged: its contents do not match their checksum")

    recipe = json.loads(metadata["recipe"])
    arguments = {key: from_plain(value) for key, value in recipe["arguments"].items()}
    stored = {key: tensors[key] for key in _STORED if key in tensors}
    memory = Memory.named(recipe["name"])(**stored, **arguments)
    memory.load_state_dict(tensors)
    return memory.to(device)


# Constructor arguments that travel as tensors instead of in the recipe.
_STORED = ("patterns", "values", "prior")


def _digest(recipe: str, tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256(recipe.encode())
    for key in sorted(tensors):
        tensor = tensors[key]
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
