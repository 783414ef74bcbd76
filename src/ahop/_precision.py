"""Numbers that mean something: what data are measured in while learning, and scores that are never NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ahop._component import single
from ahop._extremes import two_best
from ahop._queries import Queries

# Scores all smaller than this are what is left of squares that vanished in float32.
VANISHED = 1e-25
# Up to where float32 holds rows, in units of the noise that they are compared in, times the root of their length.
_LARGEST_RATIO = 2**13


def in_range(
    similarity: Any, patterns: Tensor, queries: Queries, modulation: Any = None, added: Tensor | None = None
) -> Tensor:
    """The scores of a similarity, computed again in float64 for queries whose best pattern float32 cannot tell.

    Args:
        similarity: What scores them; its ``rounding`` says by how much scores may be wrong.
        modulation: The space in which they are compared; None is their own.
        added: What will be added to the scores, ``(N,)`` or ``(Q, N)``; minus infinity rules a pattern out.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)``, to ``(Q, N)``.
    """
    space = modulation or (lambda rows: rows)
    stored, asked = space(patterns), space(queries.rows)
    scores: Tensor = similarity(stored, asked, queries.observed)
    if not scores.numel():
        return scores
    if scores.dtype != torch.float64:
        rows = _unsure(scores.detach(), added, patterns, lambda best: similarity.rounding(stored, asked, best))
        if len(rows):
            wide = {name: part.double() if part.is_floating_point() else part for name, part in _tensors(similarity)}
            unsure = queries[rows]
            sides = space(patterns.double()), space(unsure.rows.double()), unsure.observed
            exact = torch.func.functional_call(similarity, wide, sides)
            # Scores that are zero in any precision need none of it.
            if bool(exact.any()):
                scores = exact if len(rows) == len(scores) else scores.double().index_copy(0, rows, exact)
    # The best score of a query must be a number; minus infinity is a pattern that is ruled out.
    if not bool(torch.isfinite(scores.detach().amax(-1)).all()):
        largest = float(torch.maximum(patterns.detach().abs().max(), queries.rows.detach().abs().max()))
        raise ValueError(
            f"patterns and queries must be scaled: values as large as {largest:.3g} have no finite scores in float64"
        )
    return scores


@torch.no_grad()
def _unsure(scores: Tensor, added: Tensor | None, patterns: Tensor, rounding: Callable[[Tensor], Tensor]) -> Tensor:
    """The queries whose scores have left the range of float32, or whose best pattern may be another, ``(m,)``."""
    size = torch.maximum(-scores.amin(1), scores.amax(1))
    held = (size >= VANISHED) & (size < torch.inf)
    if added is not None:
        scores = scores + added
    best, second = two_best(scores)
    level = best - rounding(best)
    rows = (~held | ~(second < level)).nonzero().squeeze(1)
    if not len(rows) or not bool(held[rows].all()):
        return rows
    # Patterns that are stored twice are tied in any precision.
    near = scores[rows] >= level[rows, None]
    if int(near.sum()) > 4 * len(rows):
        return rows
    row, column = near.nonzero(as_tuple=True)
    first = scores[rows].argmax(1)[row]
    unlike = (patterns[column] != patterns[first]).any(1)
    if added is not None:
        added = added.expand_as(scores)[rows]
        unlike |= added[row, column] != added[row, first]
    return rows[row[unlike].unique()]


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
_LEAST_SPREAD, _MOST_SPREAD = 1e-15, 1e15


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
    if patterns.dtype != torch.float64 and not _LEAST_SPREAD <= unit <= _MOST_SPREAD:
        raise ValueError(
            f"patterns must be spread by {_LEAST_SPREAD:g} to {_MOST_SPREAD:g} to learn in float32, got {unit:.3g}: "
            "scale them, or store them in float64"
        )
    return unit


def can_look(values: Tensor) -> bool:
    """Whether what is done next may depend on these numbers: not while a compiler or a GPU writes down the steps, nor
    where one tensor stands for many."""
    if torch.compiler.is_compiling() or torch._C._functorch.is_functorch_wrapped_tensor(values):
        return False
    return not (values.is_meta or (values.is_cuda and torch.cuda.is_current_stream_capturing()))


def holds(finest: Tensor, *sides: Tensor) -> bool:
    """Whether float32 holds rows ``(..., d)``, counted from amid them, finely enough to compare them in this noise.

    Their squared distances in units of it are then right to a thousandth. No, where that cannot be looked at.
    """
    if sides[0].dtype == torch.float64:
        return True
    if not can_look(sides[0]):
        return False
    largest = max(float(side.detach().abs().amax()) for side in sides if side.numel())
    return largest * math.sqrt(sides[0].shape[-1]) < _LARGEST_RATIO * float(finest.detach())


def reach(values: Tensor) -> tuple[float, float]:
    """A range that holds all values, with some room at both ends."""
    low, high = float(values.min()), float(values.max())
    margin = 0.02 * (high - low) or 1.0
    return low - margin, high + margin


def _tensors(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]
