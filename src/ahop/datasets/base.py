"""What a data set is, and the list of those that can be loaded by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from torch import Tensor

from ahop._registry import Registry
from ahop.datasets.files import DataFile, find
from ahop.datasets.origins import Origin


class Dataset(NamedTuple):
    """Patterns ``(n, d)`` in [-1, 1], their labels ``(n,)``, and the shape of one pattern as a picture."""

    patterns: Tensor
    labels: Tensor
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A data set by name.

    Attributes:
        load: How it is loaded.
        about: What it is.
        files: The files it needs.
        copy: A file that serves as well as those.
        title: What tables call it.
        kind: What loading gives; an experiment takes all sets of the kind that it works on.
        origin: Where an outsider gets it.
    """

    load: Callable[[], Any]
    about: str
    files: Sequence[DataFile]
    copy: DataFile | None
    title: str
    kind: type
    origin: Origin | None = None

    @property
    def folder(self) -> Path | None:
        """Where its files are, if they are on this machine."""
        if self.copy is not None and (path := find(self.copy)) is not None:
            return path.parent
        found = [path for file in self.files if (path := find(file)) is not None]
        return found[0].parent if found and len(found) == len(self.files) else None

    @property
    def here(self) -> bool:
        """Whether it can be loaded without a download."""
        return not self.files or self.folder is not None

    def where(self) -> str:
        """Where its files are now."""
        if self.here:
            return str(self.folder or "always there")
        if all(file.url for file in self.files) or (self.origin and self.origin.url):
            return "to be downloaded"
        return "to be fetched by hand" if self.origin and self.origin.files else "not here: set AHOP_DATA"


ENTRIES: Registry[Entry] = Registry("data set")
Loader = TypeVar("Loader", bound=Callable[[], Any])


def register(
    name: str,
    *,
    about: str,
    files: Sequence[DataFile] = (),
    copy: DataFile | None = None,
    title: str | None = None,
    origin: Origin | None = None,
) -> Callable[[Loader], Loader]:
    """Register a loader under ``name``, and with every experiment on the kind of data that it returns.

    Args:
        name: What the data set is loaded by.
        about: What it is, in a sentence.
        files: What to download, if anything.
        copy: A file that serves as well as those.
        title: Its name in tables; ``name`` by default.
        origin: Where it comes from, and under which terms.

    Returns:
        A decorator for the loader, which must say what kind of data it returns.
    """

    def enter(function: Loader) -> Loader:
        kind = get_type_hints(function).get("return")
        if not isinstance(kind, type):
            raise TypeError(
                f"the loader of data set {name!r} must say what it returns, as in -> Measured; got {kind!r}"
            )
        ENTRIES.add(name, Entry(function, about, files, copy, title or name, kind, origin), function)
        return function

    return enter


def load(name: str) -> Any:
    """A data set by name; files come from the folder ``AHOP_DATA``, a cache, or a checked download.

    Example:
        >>> ahop.datasets.load("digits").patterns.shape
        torch.Size([1797, 64])
    """
    return ENTRIES.named(name).load()


def names_of(kind: type) -> tuple[str, ...]:
    """The names of all data sets of one kind.

    Example:
        >>> names_of(Dataset)
        ('digits', 'mnist')
    """
    return tuple(name for name, entry in ENTRIES.items() if entry.kind is kind)
