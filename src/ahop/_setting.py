"""A setting of the whole process that lasts as long as a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Setting(Generic[Value]):
    """A value that blocks may change, for all threads: of the blocks that are open, the one that began last counts.

    Threads open and close blocks in any order; when all are closed, it is what it was at first.

    Args:
        value: At first.

    Example:
        >>> size = Setting(1)
        >>> with size.set_to(2):
        ...     size.value
        2
        >>> size.value
        1
    """

    def __init__(self, value: Value) -> None:
        self.value = value
        self._open: dict[object, Value] = {self: value}
        self._turn = threading.Lock()

    @contextmanager
    def set_to(self, value: Value) -> Iterator[None]:
        block = object()
        with self._turn:
            self._open[block] = self.value = value
        try:
            yield
        finally:
            with self._turn:
                del self._open[block]
                self.value = list(self._open.values())[-1]
