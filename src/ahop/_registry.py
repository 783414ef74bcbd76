"""Things by name that join by registering themselves, where they are defined and with no list to edit elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

Thing = TypeVar("Thing")


class Registry(dict[str, Thing]):
    """Things of one kind by name, in the order in which they came.

    Example:
        >>> colours = Registry("colour")
        >>> colours.add("red", 0xFF0000)
        >>> colours.named("blue")
        Traceback (most recent call last):
        ValueError: unknown colour 'blue'; known: 'red'
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self._places: dict[str, tuple[str, str]] = {}

    def add(self, name: str, thing: Thing, definition: Any = None) -> None:
        """Make a thing known; a second one of that name would hide the first, and is refused.

        Args:
            name: What it is asked for by.
            thing: It.
            definition: The class or function that it is made of. The same one again is code that was run once more,
                as in a notebook: the newer one counts.
        """
        place = getattr(definition, "__module__", ""), getattr(definition, "__qualname__", "")
        if name in self and (definition is None or self._places[name] != place):
            raise ValueError(f"{self.kind} {name!r} is known already; choose another name")
        self[name], self._places[name] = thing, place

    def register(self, name: str) -> Callable[[Thing], Thing]:
        """A decorator that makes what it stands above known."""

        def join(thing: Thing) -> Thing:
            self.add(name, thing, thing)
            return thing

        return join

    def named(self, name: str) -> Thing:
        """The thing of this name."""
        if name not in self:
            raise ValueError(f"unknown {self.kind} {name!r}; known: {', '.join(map(repr, self))}")
        return self[name]


def read_all(package: str, path: Iterable[str]) -> None:
    """Import every module of a package, so that all that registers itself in it is known."""
    for module in iter_modules(path):
        import_module(f"{package}.{module.name}")
