"""Threads: what a memory answers, learns from and writes is the memory of one moment."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor

from ahop._component import Component

if TYPE_CHECKING:
    from typing import Concatenate

    from typing_extensions import ParamSpec, Self

    Given = ParamSpec("Given")
One = TypeVar("One", bound="Memory")
Answer = TypeVar("Answer")


class Memory(Component):
    """The family of memories, which :func:`ahop.create` and :func:`ahop.load` look names up in.

    Several threads may ask, add, remove, learn and save at once. Patterns and parts are never written to; they are
    replaced, within ``changing`` where they belong together. So a copy that shares them is the memory of a moment, and
    costs nothing. Who writes to their tensors, as an optimiser does, has to keep others from asking meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unshared()

    def _unshared(self) -> None:
        self.changing = threading.RLock()
        """Held while patterns, what was learned and codes are not yet of one moment."""
        self._learners = threading.RLock()
        # What came to the patterns and went since each of these began to learn from them.
        self._since: dict[Memory, list[tuple[Tensor, int]]] = {}

    def __copy__(self) -> Self:
        with self.changing:
            other: Self = super().__copy__()
        other._unshared()
        return other

    def __getstate__(self) -> dict[str, Any]:
        # Nobody waits for a copy.
        return {**vars(copy.copy(self)), "changing": None, "_learners": None, "_since": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._unshared()

    @contextmanager
    def learning(self) -> Iterator[Self]:
        """A copy to learn in, one thread at a time. What it has learned at the end of the block is taken over at once.

        Patterns may come and go meanwhile. After an error everything is as it was.
        """
        with self._learners:
            with self.changing:
                before, learner = copy.copy(self), copy.copy(self)
                changes = self._since.setdefault(learner, [])
            try:
                yield learner
                with self.changing:
                    learned = [part for part in self._learned if getattr(learner, part) is not getattr(before, part)]
                    for kept, added in changes:
                        learner._follow(kept, added)
                    for part in learned:
                        setattr(self, part, getattr(learner, part))
            finally:
                with self.changing:
                    del self._since[learner]

    _learned: ClassVar[tuple[str, ...]] = ()
    """What learning replaces, by name."""

    def _follow(self, kept: Tensor, added: int) -> None:
        """Let what was learned follow the patterns: of those before, these are kept, and so many were added."""


def differentiable_on_demand(
    answer: Callable[Concatenate[One, Given], Answer],
) -> Callable[Concatenate[One, Given], Answer]:
    """A method whose answer carries a graph where somebody asks for gradients: in training, or of its queries."""

    @functools.wraps(answer)
    def asked(memory: One, *args: Given.args, **options: Given.kwargs) -> Answer:
        given = (*args, *options.values())
        demanded = memory.training or any(isinstance(one, Tensor) and one.requires_grad for one in given)
        with torch.set_grad_enabled(demanded and torch.is_grad_enabled()):
            return answer(memory, *args, **options)

    return asked


def of_one_moment(
    answer: Callable[Concatenate[One, Given], Answer],
) -> Callable[Concatenate[One, Given], Answer]:
    """A method that sees the memory as it is when it is called, whatever is added, removed or learned meanwhile."""

    @functools.wraps(answer)
    def asked(memory: One, *args: Given.args, **options: Given.kwargs) -> Answer:
        return answer(copy.copy(memory), *args, **options)

    return asked
