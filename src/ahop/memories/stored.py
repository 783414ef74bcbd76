"""What a memory stores, and how it grows and shrinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ahop._checks import as_matrix, as_origins, as_tensor, require_finite, stored_as
from ahop._component import never_half, single
from ahop.memories.moments import Memory
from ahop.separation import Separation
from ahop.similarity import Similarity

if TYPE_CHECKING:
    from typing_extensions import Self


class Stored(Memory, abstract=True):
    """Patterns ``(N, d)``, one a row; what is read out instead of them, and how often each is asked for, or None."""

    patterns: Tensor
    values: Tensor | None
    prior: Tensor | None
    similarity: Similarity
    separation: Separation

    def __len__(self) -> int:
        return len(self.patterns)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # Patterns and values may be stored in half precision; the parts see to themselves, and counts do not fit.
        with self.changing:
            prior = self.prior
            for name in ("patterns", "values", "spread"):
                stored = getattr(self, name, None)
                if stored is not None and (like := fn(stored[:0])).dtype != stored.dtype:
                    stored_as(stored, like.to(stored.device), name)
            nn.Module._apply(self, fn, recurse)
            if prior is not None:
                self.prior = never_half(fn)(prior)
        return self

    @torch.no_grad()
    def add(self, patterns: Any, *, values: Any = None, prior: Any = None) -> Self:
        """Store further patterns, with their values and prior counts where this memory has them.

        Args:
            patterns: The further patterns, ``(n, d)``.
            values: What they read out, ``(n, v)``; needed if and only if this memory has values.
            prior: How often each is asked for, ``(n,)``; needed if and only if this memory has a prior.
        """
        with self.changing:
            new = stored_as(as_matrix(patterns, "patterns"), self.patterns, "patterns")
            if new.shape[1] != self.patterns.shape[1]:
                have, came = self.patterns.shape[1], tuple(new.shape)
                raise ValueError(f"patterns must have {have} values each, like those stored; got shape {came}")
            for name, given, stored in (("values", values, self.values), ("prior", prior, self.prior)):
                if given is None and stored is not None:
                    raise ValueError(f"{name} must be given for the new patterns: this memory has {name}")
                if given is not None and stored is None:
                    raise ValueError(f"{name} must not be given: this memory was made without {name}")
            if self.values is not None:
                more = self._rows(values, "values", len(new)).to(self.values)
                if more.shape[1] != self.values.shape[1]:
                    have, came = self.values.shape[1], tuple(more.shape)
                    raise ValueError(f"values must have {have} numbers each, got shape {came}")
                values = torch.cat([self.values, more])
            if self.prior is not None:
                prior = torch.cat([self.prior, self._counts(prior, len(new))])
            kept = torch.arange(len(self), device=self.patterns.device)
            self._store(torch.cat([self.patterns, new]), values, prior, kept)
        return self

    @torch.no_grad()
    def remove(self, indices: Any) -> Self:
        """Forget the stored patterns at ``indices``; those behind them move up."""
        with self.changing:
            gone = as_tensor(indices, "indices", whole=True).to(self.patterns.device).reshape(-1)
            gone = as_origins(gone if gone.numel() else gone.long(), len(gone), len(self), "indices")
            keep = torch.ones(len(self), dtype=torch.bool, device=self.patterns.device)
            keep[gone] = False
            if not bool(keep.any()):
                raise ValueError(f"indices must leave at least one pattern, got all {len(self)} of them")
            kept = keep.nonzero().squeeze(1)
            values, prior = (None if some is None else some[kept] for some in (self.values, self.prior))
            if prior is not None and not float(prior.sum()) > 0:
                raise ValueError("indices must leave at least one pattern of positive prior, got all of them")
            self._store(self.patterns[kept], values, prior, kept)
        return self

    def _store(self, patterns: Tensor, values: Tensor | None, prior: Tensor | None, kept: Tensor) -> None:
        """Replace what is stored, of which these patterns are kept; after an error everything is as it was."""
        before, added = (self.patterns, self.values, self.prior), len(patterns) - len(kept)
        self.patterns, self.values, self.prior = patterns, values, prior
        try:
            self._resized(before[0], kept, added)
        except BaseException:
            self.patterns, self.values, self.prior = before
            raise
        self.similarity = self.similarity.resized(kept, added)
        for changes in self._since.values():
            changes.append((kept, added))

    def _resized(self, before: Tensor, kept: Tensor, added: int) -> None:
        """Let what belongs to the patterns follow: of those before, these are kept, so many were added behind them."""

    def _follow(self, kept: Tensor, added: int) -> None:
        self.similarity = self.similarity.resized(kept, added)

    def _rows(self, rows: Any, name: str, count: int) -> Tensor:
        rows = as_matrix(rows, name)
        if len(rows) != count:
            raise ValueError(f"{name} must have one row per pattern, {count}; got shape {tuple(rows.shape)}")
        return stored_as(rows, self.patterns, name)

    def require_weighing(self) -> None:
        """Not every separation can weigh patterns by a prior."""
        if not self.separation.takes_prior:
            raise ValueError(
                f"prior needs a separation that can weigh patterns by it, as softmax does; got {self.separation.name!r}"
            )

    def _counts(self, prior: Any, count: int) -> Tensor:
        self.require_weighing()
        prior = as_tensor(prior, "prior")
        if prior.shape != (count,):
            raise ValueError(f"prior must be one number per pattern, shape ({count},), got shape {tuple(prior.shape)}")
        require_finite(prior, "prior")
        if bool((prior < 0).any()) or not float(prior.sum()) > 0:
            raise ValueError("prior must be counts or probabilities: not negative, and not all zero")
        return stored_as(prior, single(self.patterns[:0]), "prior")
