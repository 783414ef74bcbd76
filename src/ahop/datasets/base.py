"""What a data set is, and the list of those that can be loaded by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from ahop.datasets.files import DataFile, find


class Dataset(NamedTuple):
    """Patterns ``(n, d)`` in [-1, 1], their labels ``(n,)``, and the shape of one pattern as a picture."""

    patterns: Tensor
    labels: Tensor
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A data set by name: how to load it, what it is, the files it needs, and a copy of them that serves as well."""

    load: Callable[[], Any]
    about: str
    files: Sequence[DataFile]
    copy: DataFile | None = None

    def where(self) -> str:
        """Where its files are now."""
        if not self.files:
            return "always there"
        if self.copy is not None and (path := find(self.copy)) is not None:
            return str(path.parent)
        found = [path for file in self.files if (path := find(file)) is not None]
        if len(found) == len(self.files):
            return str(found[0].parent)
        return "not here: set AHOP_DATA" if any(file.url is None for file in self.files) else "to be downloaded"


ENTRIES: dict[str, Entry] = {}
Loader = TypeVar("Loader", bound=Callable[[], Any])


def register(
    name: str, *, about: str, files: Sequence[DataFile] = (), copy: DataFile | None = None
) -> Callable[[Loader], Loader]:
    """Make a loader known under ``name``."""

    def enter(function: Loader) -> Loader:
        ENTRIES[name] = Entry(function, about, files, copy)
        return function

    return enter


def load(name: str) -> Any:
    """A data set by name; files come from the folder ``AHOP_DATA``, a cache, or a checked download.

    Example:
        >>> ahop.datasets.load("digits").patterns.shape
        torch.Size([1797, 64])
    """
    if name not in ENTRIES:
        raise ValueError(f"unknown data set {name!r}; known: {', '.join(sorted(ENTRIES))}")
    return ENTRIES[name].load()
