"""Settings that last as long as a block, in the thread that opened it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
_variables: list[ContextVar[Any]] = []


class Setting(Generic[Value]):
    """A value that blocks may change, each for its own thread or task; of the blocks that are open there, the one that
    began last counts.

    A thread begins with the first value, unless it runs in a copy of another's context. So do those of this library
    (:func:`ahop.kernels.compiled.share`); PyTorch's own, which run backward passes on a GPU, are told what is
    :class:`SetHere`.

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
        self._value: ContextVar[Value] = ContextVar("setting", default=value)
        _variables.append(self._value)

    @property
    def value(self) -> Value:
        return self._value.get()

    @contextmanager
    def set_to(self, value: Value) -> Iterator[None]:
        before = self._value.set(value)
        try:
            yield
        finally:
            self._value.reset(before)


class SetHere:
    """What blocks have set where this is made, for a thread that knows nothing of them.

    Example:
        >>> size = Setting(1)
        >>> with size.set_to(2):
        ...     here = SetHere()
        >>> with here.taken_over():
        ...     size.value
        2
    """

    def __init__(self) -> None:
        context = copy_context()
        self._values = [(variable, context[variable]) for variable in _variables if variable in context]

    @contextmanager
    def taken_over(self) -> Iterator[None]:
        """Set it within the block, but for what the thread has set by itself."""
        context = copy_context()
        new = [(variable, variable.set(value)) for variable, value in self._values if variable not in context]
        try:
            yield
        finally:
            for variable, before in new:
                variable.reset(before)
