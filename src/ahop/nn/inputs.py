"""The inputs of a Hopfield layer on their way into its heads, and the way of the answer back out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ahop.nn.association import Mask
from ahop.nn.start import Projection, reset

if TYPE_CHECKING:
    from ahop.nn.hopfield import Hopfield

Input = Tensor | tuple[Tensor, ...]


class Side(nn.Module):
    """One of the three inputs on its way into the heads: normalised, projected, cut up."""

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


class Walk:
    """One pass through a layer: inputs checked, projected and settled, with the way back to the caller's shape.

    Where the stored patterns have no batch, the states of all samples are laid behind each other instead of making a
    copy of the stored patterns for each.
    """

    def __init__(
        self,
        layer: Hopfield,
        input: Input,
        padding: Tensor | None,
        association: Tensor | None,
        *,
        settle: bool = True,
    ) -> None:
        sides = [*layer._sides(input)]
        alike = sides[0] is sides[1]
        names = ("stored patterns", "state patterns", "pattern projections")
        given = [input] if isinstance(input, Tensor) else list(input)
        for place, (side, part) in enumerate(zip(sides, (layer.stored, layer.state, layer.projection), strict=True)):
            shape = f"(B, n, {part.width or 'd'}) or (n, {part.width or 'd'})"
            if not isinstance(side, Tensor):
                raise ValueError(f"{names[place]} must be a tensor {shape}; got {type(side).__name__}")
            if side.ndim not in (2, 3) or (part.width is not None and side.shape[-1] != part.width):
                raise ValueError(f"{names[place]} must have shape {shape}; got {tuple(side.shape)}")
            sides[place] = side if side.ndim == 3 else side[None]
        self.single = all(side.ndim == 2 for side in given)
        # Not the largest: a batch may be empty.
        batch = next((side.shape[0] for side in sides if side.shape[0] != 1), 1)
        if any(side.shape[0] not in (1, batch) for side in sides) or sides[0].shape[1] != sides[2].shape[1]:
            shapes = ", ".join(str(tuple(side.shape)) for side in sides)
            raise ValueError(f"inputs must have one batch size, and a projection for each stored pattern; got {shapes}")
        if not sides[0].shape[1]:
            raise ValueError("stored patterns must be at least one, got none")
        if self.single and isinstance(padding, Tensor) and padding.ndim == 1:
            padding = padding[None]

        queries, rows = sides[1].shape[1], sides[0].shape[1]
        self.mask = Mask(padding, association, (batch, layer.num_heads, queries, rows))
        sides = _without_unseen(sides, self.mask.unseen, alike)
        self.stored, self.values = layer._normal(layer.stored(sides[0])), layer.projection(sides[2])
        state = layer._normal(layer.state(sides[1]))
        if self.stored.shape[-1] != state.shape[-1]:
            widths = f"{self.stored.shape[-1]} and {state.shape[-1]}"
            raise ValueError(f"stored and state patterns must be equally wide where they meet; got {widths}")
        # A hook may have put patterns behind the stored ones.
        self.mask.widen(self.stored.shape[2] - rows)
        self.empty, heads = self.mask.empty, layer.num_heads
        self.folded = (batch, heads, queries) if batch != 1 and sides[0].shape[0] == sides[2].shape[0] == 1 else None
        if self.folded:
            state = state.expand(batch, -1, -1, -1).transpose(0, 1).reshape(1, heads, batch * queries, state.shape[-1])
            self.mask.fold(batch, heads, queries)
        else:
            self.stored, self.values, state = (
                side.expand(batch, -1, -1, -1) for side in (self.stored, self.values, state)
            )
        self.state = layer._settle(self.stored, state, self.mask) if settle else state

    def unfold(self, table: Tensor) -> Tensor:
        """``(1, heads, B * Q, .)`` back to ``(B, heads, Q, .)``."""
        if self.folded is None:
            return table
        batch, heads, queries = self.folded
        return table.reshape(heads, batch, queries, table.shape[-1]).transpose(0, 1)

    def unbatch(self, table: Tensor) -> Tensor:
        return table.squeeze(0) if self.single else table


def _without_unseen(sides: list[Tensor], unseen: Tensor | None, alike: bool) -> list[Tensor]:
    """The three inputs with zeros for what no state may see: a NaN there could not be weighed away later.

    Where the stored patterns are the states as well, a hidden one still asks, unless it is no number.
    """
    if unseen is None:
        return sides
    # A row that the whole batch shares goes only where no sample sees it.
    gone = [(unseen if len(side) == len(unseen) else unseen.all(0, keepdim=True))[..., None] for side in sides]
    stored, state, projection = sides
    if alike:
        state = state.masked_fill(gone[1] & ~state.isfinite(), 0.0)
    return [stored.masked_fill(gone[0], 0.0), state, projection.masked_fill(gone[2], 0.0)]


def kind(input: Any) -> str:
    """What came, for an error's sentence."""
    return f"{len(input)} tensors" if isinstance(input, (tuple, list)) else type(input).__name__
