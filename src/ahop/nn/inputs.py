"""The inputs of a Hopfield layer on their way into its heads, and the way of the answer back out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ahop._checks import integer
from ahop.nn.association import Mask
from ahop.nn.linear import Projection
from ahop.nn.start import reset

Input = Tensor | tuple[Tensor, ...]


class Sizes:
    """The widths of a layer: of its inputs, where they meet in a head, of what a head reads out, and of the output.

    Arguments are those of :class:`~ahop.nn.Hopfield`, whose defaults are filled in.

    Args:
        heads: The number of heads.
        input_size, hidden_size, output_size, pattern_size, stored_pattern_size, pattern_projection_size: As in
            :class:`ahop.nn.Hopfield`; None for what follows from the others.
    """

    def __init__(
        self,
        heads: int,
        *,
        input_size: int | None,
        hidden_size: int | None,
        output_size: int | None,
        pattern_size: int | None,
        stored_pattern_size: int | None,
        pattern_projection_size: int | None,
    ) -> None:
        self.input, self.output = _size(input_size, "input_size"), _size(output_size, "output_size")
        self.hidden, pattern = _size(hidden_size, "hidden_size"), _size(pattern_size, "pattern_size")
        if self.hidden is None and self.input is not None:
            if self.input % heads:
                raise ValueError(f"hidden_size must be given: {self.input} values are not divisible by {heads} heads")
            self.hidden = self.input // heads
        self.pattern = self.hidden if pattern is None else pattern
        self.stored = _size(stored_pattern_size, "stored_pattern_size")
        self.projection = _size(pattern_projection_size, "pattern_projection_size")

    def require_static(self, *, stored: bool, projection: bool) -> None:
        """Refuse the width of a static input, which no projection leads to the width in a head."""
        for name, static, size, target in (
            ("stored_pattern_size", stored, self.stored, self.hidden),
            ("pattern_projection_size", projection, self.projection, self.pattern),
        ):
            if static and None not in (size, target) and size != target:
                raise ValueError(f"{name} must be {target}, the width in a head, for a static input; got {size}")


def _size(size: int | None, name: str) -> int | None:
    return None if size is None else integer(size, name, 1)


class Side(nn.Module):
    """One of the three inputs on its way into the heads: normalised, projected, cut up.

    Args:
        width: The number of values of an input.
        normalised: Normalise inputs first, by layer normalisation.
        static: Use inputs as they are, without a projection.
        target: The width in a head.
        heads: The number of heads.
        bias: Whether the projection has a bias.
    """

    def __init__(
        self, width: int | None, normalised: bool, static: bool, target: int | None, heads: int, bias: bool
    ) -> None:
        super().__init__()
        self.heads = heads
        # What is not projected must have the width that it is to have in the head.
        self.width = target if static and target is not None else width
        if normalised and self.width is None:
            raise ValueError("input_size must be given for inputs to be normalised")
        self.norm = nn.LayerNorm(self.width) if normalised and self.width is not None else None
        self.linear = None
        if not static:
            assert width is not None and target is not None
            self.linear = Projection(width, heads * target, bias=bias)

    def reset_parameters(self) -> None:
        """Begin anew."""
        reset(self.norm, self.linear)

    def forward(self, patterns: Tensor) -> Tensor:
        if self.norm is not None:
            patterns = self.norm(patterns)
        if self.linear is None:
            return patterns[:, None].expand(-1, self.heads, -1, -1)
        return self.linear(patterns).unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def learned(self, quantity: int, trainable: bool) -> nn.Parameter:
        """Rows to be learned in the place of this input."""
        assert self.width is not None
        rows = nn.Parameter(torch.empty(quantity, self.width), requires_grad=trainable)
        self.draw(rows)
        return rows

    def draw(self, rows: Tensor) -> None:
        """Let rows that are learned begin anew."""
        nn.init.normal_(rows, std=rows.shape[-1] ** -0.5)


@dataclass(frozen=True)
class Inputs:
    """What came into a layer, found to be in order: stored patterns, states and projections, and what states may see.

    Attributes:
        sides: Each ``(B, n, width)``, with 1 for B where the whole batch shares it.
        mask: What the states may see.
        batch: B, the size of the batch.
        single: Nothing came with a batch, and so nothing leaves with one.
    """

    sides: tuple[Tensor, Tensor, Tensor]
    mask: Mask
    batch: int
    single: bool


@dataclass(frozen=True)
class Heads:
    """The inputs in the heads of a layer, and the way of an answer back to the caller's shape.

    Where the stored patterns have no batch, the states of all samples are laid behind each other instead of making a
    copy of the stored patterns for each.

    Attributes:
        stored, state, values: ``(B, heads, n, .)`` each, or, folded, ``(1, heads, B * n, .)`` for the states.
        mask: What the states may see.
        folded: (B, heads, states) where the states of a batch lie behind each other.
        single: The answer is to have no batch.
        empty: As in :class:`~ahop.nn.association.Mask`, of the states before they were folded.
    """

    stored: Tensor
    state: Tensor
    values: Tensor
    mask: Mask
    folded: tuple[int, int, int] | None
    single: bool
    empty: Tensor | None

    def unfold(self, table: Tensor) -> Tensor:
        """``(1, heads, B * Q, .)`` back to ``(B, heads, Q, .)``."""
        if self.folded is None:
            return table
        batch, heads, queries = self.folded
        return table.reshape(heads, batch, queries, table.shape[-1]).transpose(0, 1)

    def unbatch(self, table: Tensor) -> Tensor:
        """The answer without a batch, where none came."""
        return table.squeeze(0) if self.single else table


def check(
    sides: tuple[Tensor, Tensor, Tensor],
    widths: tuple[int | None, int | None, int | None],
    heads: int,
    padding: Tensor | None,
    association: Tensor | None,
    *,
    single: bool,
) -> Inputs:
    """The inputs of a layer with a batch each, or an error that says which of them cannot be.

    Args:
        sides: Stored patterns, states and projections, ``(B, n, width)`` or ``(n, width)``.
        widths: What each must have; None takes any.
        heads: How many heads the layer has.
        padding, association: The masks, as in :meth:`ahop.nn.Hopfield.forward`.
        single: Nothing came with a batch.
    """
    names = ("stored patterns", "state patterns", "pattern projections")
    stored, state, projection = (_with_batch(*one) for one in zip(sides, widths, names, strict=True))
    if sides[0] is sides[1]:
        state = stored
    given = stored, state, projection
    # Not the largest: a batch may be empty.
    batch = next((side.shape[0] for side in given if side.shape[0] != 1), 1)
    if any(side.shape[0] not in (1, batch) for side in given) or stored.shape[1] != projection.shape[1]:
        shapes = ", ".join(str(tuple(side.shape)) for side in given)
        raise ValueError(f"inputs must have one batch size, and a projection for each stored pattern; got {shapes}")
    if not stored.shape[1]:
        raise ValueError("stored patterns must be at least one, got none")
    if single and isinstance(padding, Tensor) and padding.ndim == 1:
        padding = padding[None]
    mask = Mask(padding, association, (batch, heads, state.shape[1], stored.shape[1]))
    return Inputs(_without_unseen(*given, mask.unseen), mask, batch, single)


def project(inputs: Inputs, into: tuple[Side, Side, Side], meeting: Callable[[Tensor], Tensor]) -> Heads:
    """The inputs on their way into the heads.

    Args:
        inputs: Checked.
        into: How stored patterns, states and projections get there.
        meeting: What is done to stored patterns and states where they meet.
    """
    rows, states, values = inputs.sides
    stored, state, read = meeting(into[0](rows)), meeting(into[1](states)), into[2](values)
    if stored.shape[-1] != state.shape[-1]:
        widths = f"{stored.shape[-1]} and {state.shape[-1]}"
        raise ValueError(f"stored and state patterns must be equally wide where they meet; got {widths}")
    mask, batch, heads, queries = inputs.mask, inputs.batch, into[1].heads, states.shape[1]
    # A hook may have put patterns behind the stored ones.
    mask.widen(stored.shape[2] - rows.shape[1])
    empty, folded = mask.empty, None
    if batch != 1 and len(rows) == len(values) == 1:
        folded = batch, heads, queries
        state = state.expand(batch, -1, -1, -1).transpose(0, 1).reshape(1, heads, batch * queries, state.shape[-1])
        mask.fold(batch, heads, queries)
    else:
        stored, state, read = (side.expand(batch, -1, -1, -1) for side in (stored, state, read))
    return Heads(stored, state, read, mask, folded, inputs.single, empty)


def _with_batch(side: Tensor, width: int | None, name: str) -> Tensor:
    shape = f"(B, n, {width or 'd'}) or (n, {width or 'd'})"
    if not isinstance(side, Tensor):
        raise ValueError(f"{name} must be a tensor {shape}; got {type(side).__name__}")
    if side.ndim not in (2, 3) or (width is not None and side.shape[-1] != width):
        raise ValueError(f"{name} must have shape {shape}; got {tuple(side.shape)}")
    return side if side.ndim == 3 else side[None]


def _without_unseen(
    stored: Tensor, state: Tensor, projection: Tensor, unseen: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The three inputs with zeros for what no state may see: a NaN there could not be weighed away later.

    Where the stored patterns are the states as well, a hidden one still asks, unless it is no number.
    """
    if unseen is None:
        return stored, state, projection

    def gone(side: Tensor) -> Tensor:
        # A row that the whole batch shares goes only where no sample sees it.
        return (unseen if len(side) == len(unseen) else unseen.all(0, keepdim=True))[..., None]

    if state is stored:
        state = state.masked_fill(gone(state) & ~state.isfinite(), 0.0)
    return stored.masked_fill(gone(stored), 0.0), state, projection.masked_fill(gone(projection), 0.0)


def kind(input: Any) -> str:
    """What came, for an error's sentence."""
    return f"{len(input)} tensors" if isinstance(input, (tuple, list)) else type(input).__name__
