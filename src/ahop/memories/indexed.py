"""Memories that recall by codes where patterns are many: the codes, and the moment that they are asked at."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._checks import Observed
from ahop._recall import Recall
from ahop.memories.base import AssociativeMemory
from ahop.memories.context import Prior
from ahop.memories.doubt import Doubting
from ahop.similarity.codes import NoCodesError

if TYPE_CHECKING:
    from typing_extensions import Self

    from ahop.index.index import Index
    from ahop.index.view import View

# Patterns from which on a recall goes by the index.
_MIN_INDEXED_PATTERNS = 2**16


class Indexed(Doubting, abstract=True):
    """A memory that keeps an index of its patterns, and recalls by it where they are many and have codes."""

    spread: Tensor | None
    _index: Index | None

    def index(self) -> Index:
        """Codes of the stored patterns, made once and kept."""
        raise NotImplementedError

    def _unshared(self) -> None:
        super()._unshared()
        # Codes are those of one memory alone, and made again where they are needed.
        self._index = None

    def _resized(self, before: Tensor, kept: Tensor, added: int) -> None:
        if self._index is not None:
            self._index.follow(before, kept, added)
        super()._resized(before, kept, added)

    @contextmanager
    def _asking(self, codes: bool = True) -> Iterator[tuple[Self, View | None]]:
        """The memory and its codes at one moment. Codes here are never written to; those in a database are."""
        with ExitStack() as turn:
            turn.enter_context(self.changing)
            now, view = copy.copy(self), self._codes() if codes else None
            if view is None or view.engine.local:
                turn.close()
            yield now, view

    def _codes(self) -> View | None:
        """The index as it is now, where patterns are many and have one."""
        by_index = len(self) >= _MIN_INDEXED_PATTERNS and self.patterns.dtype != torch.float64 and self.spread is None
        if by_index and type(self)._scores is AssociativeMemory._scores:
            # No dot products can stand for some likelihoods.
            with suppress(NoCodesError):
                return self.index().fresh()
        return None

    def _recalled(
        self, view: View | None, queries: Any, k: int, observed: Observed, prior: Prior | None = None
    ) -> Recall:
        """The k best patterns by codes where there are any, else by all scores.

        Args:
            view: The codes; None goes by all scores.
            queries, k, observed, prior: As in :meth:`recall`; a prior is in no codes.
        """
        if prior is None and view is not None:
            # Nor are there codes for queries of which values are missing.
            with suppress(NoCodesError):
                return view.recall(queries, k, observed=observed)
        return super().recall(queries, k, observed=observed, prior=prior)
