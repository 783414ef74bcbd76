"""Hopfield layers in which one of the two sets is learned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ahop._checks import as_tensor, integer
from ahop.nn.hopfield import Hopfield
from ahop.nn.inputs import Input, kind


class HopfieldLayer(Hopfield):
    r"""A memory of patterns that are learned: each state looks them up and reads out what was learned to go with them.

    Args:
        input_size: Width of the state patterns.
        quantity: How many patterns it stores.
        trainable: Whether stored patterns and targets are learned; without, put them there with :meth:`store`.
        options: As in :class:`Hopfield`.

    Shape:
        ``(B, Q, input_size)`` to ``(B, Q, output_size)``. The stored patterns have no batch: they are normalised and
        projected once.

    Example:
        >>> ahop.nn.HopfieldLayer(16, quantity=100, num_heads=2)(torch.randn(5, 3, 16)).shape
        torch.Size([5, 3, 16])
    """

    def __init__(self, input_size: int, *, quantity: int = 1, trainable: bool = True, **options: Any) -> None:
        super().__init__(input_size, **options)
        self.quantity = integer(quantity, "quantity", 1)
        self.stored_patterns = self.stored.learned(self.quantity, trainable)
        self.targets = self.projection.learned(self.quantity, trainable)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.stored.draw(self.stored_patterns)
        self.projection.draw(self.targets)

    @torch.no_grad()
    def store(self, patterns: Tensor, targets: Tensor | None = None) -> None:
        """Put patterns in the place of those that are stored, and what to read out for them: themselves by default."""
        patterns = as_tensor(patterns, "patterns")
        targets = patterns if targets is None else as_tensor(targets, "targets")
        pairs = ((self.stored_patterns, patterns, "patterns"), (self.targets, targets, "targets"))
        for table, rows, name in pairs:
            if rows.shape != table.shape:
                raise ValueError(f"{name} must have shape {tuple(table.shape)}, got {tuple(rows.shape)}")
        for table, rows, _ in pairs:
            table.copy_(rows)

    def _sides(self, input: Input) -> tuple[Tensor, Tensor, Tensor]:
        if not isinstance(input, Tensor):
            raise ValueError(f"input must be a tensor of state patterns, got {kind(input)}")
        return self.stored_patterns, input, self.targets


class HopfieldPooling(Hopfield):
    r"""Pools a set into a fixed number of readouts, for states that are learned.

    Args:
        input_size: Width of the set's elements, and of the learned states.
        quantity: How many states, and so readouts.
        trainable: Whether the states are learned.
        options: As in :class:`Hopfield`.

    Shape:
        ``(B, N, input_size)``, or (stored, projection), to ``(B, quantity * output_size)``.

    Example:
        >>> pooling = ahop.nn.HopfieldPooling(16, quantity=2)
        >>> bags, padding = torch.randn(5, 7, 16), torch.zeros(5, 7, dtype=torch.bool)
        >>> pooling(bags, stored_pattern_padding_mask=padding).shape
        torch.Size([5, 32])
    """

    def __init__(self, input_size: int, *, quantity: int = 1, trainable: bool = True, **options: Any) -> None:
        super().__init__(input_size, **options)
        self.quantity = integer(quantity, "quantity", 1)
        self.states = self.state.learned(self.quantity, trainable)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.state.draw(self.states)

    @property
    def pooled_size(self) -> int:
        """The width of what a set is pooled into."""
        assert self.output_size is not None
        return self.quantity * self.output_size

    def forward(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """Arguments as in :meth:`Hopfield.forward`, but for the states, which are its own."""
        return super().forward(input, stored_pattern_padding_mask, association_mask).flatten(-2)

    def _sides(self, input: Input) -> tuple[Tensor, Tensor, Tensor]:
        if isinstance(input, Tensor):
            return input, self.states, input
        if not isinstance(input, (tuple, list)) or len(input) != 2:
            raise ValueError(f"input must be a tensor or (stored, projection), got {kind(input)}")
        return input[0], self.states, input[1]
