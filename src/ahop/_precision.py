"""Numbers that mean something: what data are measured in while learning, and scores that are never NaN."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ahop._component import single

# Scores all smaller than this are what is left of squares that vanished in float32.
_VANISHED = 1e-25


def in_range(similarity: nn.Module, patterns: Tensor, queries: Tensor, observed: Tensor | None) -> Tensor:
    """The scores of a similarity, computed again in float64 where values are too large or too small for float32.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)``, to ``(Q, N)``.
    """
    scores: Tensor = similarity(patterns, queries, observed)
    if not scores.numel():
        return scores
    low, high = (float(end) for end in torch.aminmax(scores.detach()))
    if scores.dtype != torch.float64 and not _VANISHED <= max(-low, high) < float("inf"):
        wide = {name: part.double() if part.is_floating_point() else part for name, part in _tensors(similarity)}
        exact = torch.func.functional_call(similarity, wide, (patterns.double(), queries.double(), observed))
        # Scores that are zero in any precision need none of it.
        scores = exact if bool(exact.any()) else scores
    # The best score of a query must be a number; minus infinity is a pattern that is ruled out.
    if not bool(torch.isfinite(scores.detach().amax(-1)).all()):
        largest = float(torch.maximum(patterns.detach().abs().max(), queries.detach().abs().max()))
        raise ValueError(
            f"patterns and queries must be scaled: values as large as {largest:.3g} have no finite scores in float64"
        )
    return scores


@dataclass(frozen=True)
class Units:
    """What patterns and queries are measured in while a corruption is learned: from their centre, in :func:`unit_of`.

    A similarity that is learned in them has ``rescaled(unit, shift)``, which brings it back to the data's own.
    """

    unit: float
    centre: float

    @classmethod
    def of(cls, patterns: Tensor, queries: Tensor | None = None) -> Units:
        return cls(unit_of(patterns, queries), float(patterns.double().mean()))

    def measure(self, rows: Tensor) -> Tensor:
        """Rows in these units, in float32 or better."""
        return (single(rows) - self.centre) / self.unit

    def leave(self, similarity: Any) -> Any:
        """A similarity learned in these units, for the data as they are."""
        return similarity.rescaled(self.unit, self.centre)

    def enter(self, similarity: Any) -> Any:
        """The other way."""
        return similarity.rescaled(1 / self.unit, -self.centre / self.unit)


# What float32 can square, sum and divide by without loss.
_LEAST, _MOST = 1e-15, 1e15


def unit_of(patterns: Tensor, queries: Tensor | None = None) -> float:
    r"""The unit that patterns are measured in while a memory learns: :math:`\sqrt3` standard deviations.

    It is 1 for patterns drawn uniformly from [-1, 1]. What is learned in it is the same in metres and in nanometres.
    Patterns that are all alike have no spread; then the queries' counts, or else how large the patterns are.
    """
    rows = [patterns] if queries is None else [patterns, queries]
    spreads = [math.sqrt(3) * float(some.double().std(0, unbiased=False).mean()) for some in rows]
    largest = max(float(some.abs().max()) for some in rows)
    # Rounding alone gives equal rows a spread of some 1e-7 of their size.
    unit = next((spread for spread in spreads if spread > 1e-6 * largest), largest or 1.0)
    if patterns.dtype != torch.float64 and not _LEAST <= unit <= _MOST:
        raise ValueError(
            f"patterns must be spread by {_LEAST:g} to {_MOST:g} to learn in float32, got {unit:.3g}: "
            "scale them, or store them in float64"
        )
    return unit


def reach(values: Tensor) -> tuple[float, float]:
    """A range that holds all values, with some room at both ends."""
    low, high = float(values.min()), float(values.max())
    margin = 0.02 * (high - low) or 1.0
    return low - margin, high + margin


def _tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]
