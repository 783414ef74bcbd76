"""Hopfield layers: association of two sets, and the two forms in which one of the sets is learned."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ahop.modulation import Kernel, Modulation
from ahop.nn.association import Association, Mask
from ahop.separation import Separation
from ahop.similarity import Similarity

Input = Tensor | tuple[Tensor, ...]

# Where a layer that goes on until its state rests gives up.
_MOST_STEPS = 1000


class Hopfield(nn.Module):
    r"""Associates every state pattern with stored patterns and reads out their projections, in several heads.

    .. math:: y = \big[\mathrm{sep}(\beta_h \, \mathrm{sim}(W_h \Xi,\, U_h x)) \; V_h P\big]_h \, O

    With its defaults and ``input_size`` given this is :class:`torch.nn.MultiheadAttention`, the stored patterns being
    keys, the states queries and the projections values. Without ``input_size`` there is nothing to learn: patterns are
    compared as they are, and plain retrieval is left. Names follow ``hflayers``; masks follow PyTorch (True = ignore).

    Args:
        input_size: Width of the state patterns, and of all that is not named otherwise; None takes all inputs as they
            are, in one head or the same in each.
        hidden_size: Width of the space where states and stored patterns meet, for one head; ``input_size / num_heads``
            when None.
        output_size: Width of the output; ``input_size`` when None.
        pattern_size: Width of what one head reads out; ``hidden_size`` when None.
        num_heads: How many heads.
        scaling: :math:`\beta`, one number or one a head; ``hidden_size ** -0.5`` when None, and 1 without
            ``input_size``.
        update_steps_max: How often the state is replaced by what it retrieves before the readout; None goes on until
            it rests.
        update_steps_eps: A state rests when no entry of it moves by more than this.
        similarity: ``"dot"``, ``"distance"``, ``"adaptive"``, ``"likelihood"`` or any other by name, a
            :class:`~ahop.similarity.Similarity` that all heads share, or a list of one a head. By name, each head
            learns its own. An adaptive one begins as the dot product.
        separation: ``"softmax"``, ``"sparsemax"``, ``"entmax"``, ... or a :class:`~ahop.separation.Separation`.
        modulation: A learned space in which states and stored patterns are compared (:mod:`ahop.modulation`).
        learn_scaling: Learn :math:`\beta`.
        normalize_stored_pattern, normalize_state_pattern, normalize_pattern_projection: Layer normalisation of that
            input.
        normalize_hopfield_space: Layer normalisation, without parameters, where states and stored patterns meet.
        stored_pattern_as_static, state_pattern_as_static, pattern_projection_as_static: Take that input as it is,
            without a projection, the same for every head.
        stored_pattern_size, pattern_projection_size: Widths of these inputs; ``input_size`` when None.
        dropout: Probability that a weight is dropped in training.
        input_bias: Whether projections have a bias.
        disable_out_projection: Give the readouts of the heads side by side.

    Shape:
        One tensor ``(B, L, input_size)`` for all three, or (stored ``(B, N, .)``, state ``(B, Q, .)``, projection
        ``(B, N, .)``), to ``(B, Q, output_size)``. B may be left out, and be 1 in some of the three, which are then
        normalised and projected once and shared by the whole batch.

    Example:
        >>> layer = ahop.nn.Hopfield(16, num_heads=4, similarity="adaptive")
        >>> stored, state = torch.randn(2, 10, 16), torch.randn(2, 3, 16)
        >>> layer((stored, state, stored)).shape
        torch.Size([2, 3, 16])
        >>> memory = ahop.nn.Hopfield(scaling=8.0)                     # nothing to learn: plain retrieval
        >>> memory((torch.eye(3), torch.tensor([[0.9, 0.1, 0.0]]), torch.eye(3))).argmax()
        tensor(0)
    """

    def __init__(
        self,
        input_size: int | None = None,
        hidden_size: int | None = None,
        output_size: int | None = None,
        pattern_size: int | None = None,
        num_heads: int = 1,
        scaling: float | Tensor | None = None,
        update_steps_max: int | None = 0,
        update_steps_eps: float = 1e-4,
        *,
        similarity: Similarity | str | Sequence[Similarity] = "dot",
        separation: Separation | str = "softmax",
        modulation: Modulation | None = None,
        learn_scaling: bool = False,
        normalize_stored_pattern: bool = False,
        normalize_state_pattern: bool = False,
        normalize_pattern_projection: bool = False,
        normalize_hopfield_space: bool = False,
        stored_pattern_as_static: bool = False,
        state_pattern_as_static: bool = False,
        pattern_projection_as_static: bool = False,
        stored_pattern_size: int | None = None,
        pattern_projection_size: int | None = None,
        dropout: float = 0.0,
        input_bias: bool = True,
        disable_out_projection: bool = False,
    ) -> None:
        super().__init__()
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "output_size": output_size}
        sizes |= {"pattern_size": pattern_size, "num_heads": num_heads, "stored_pattern_size": stored_pattern_size}
        sizes |= {"pattern_projection_size": pattern_projection_size}
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        if update_steps_max is not None and update_steps_max < 0:
            raise ValueError(f"update_steps_max must be at least 0, or None; got {update_steps_max}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {dropout}")
        if output_size is not None and (input_size is None or disable_out_projection):
            raise ValueError(f"output_size must be None where there is no output projection, got {output_size}")
        self.num_heads, self.update_steps_max, self.update_steps_eps = num_heads, update_steps_max, update_steps_eps
        self.normalize_hopfield_space, self.dropout = normalize_hopfield_space, dropout

        plain = input_size is None
        if hidden_size is None and input_size is not None:
            if input_size % num_heads:
                raise ValueError(f"hidden_size must be given: {input_size} values do not divide by {num_heads} heads")
            hidden_size = input_size // num_heads
        pattern_size = hidden_size if pattern_size is None else pattern_size
        self.input_size, self.hidden_size, self.pattern_size = input_size, hidden_size, pattern_size

        for name, size, target, fixed in (
            ("stored_pattern_size", stored_pattern_size, hidden_size, stored_pattern_as_static),
            ("pattern_projection_size", pattern_projection_size, pattern_size, pattern_projection_as_static),
        ):
            if fixed and None not in (size, target) and size != target:
                raise ValueError(f"{name} must be {target}, the width in a head, for a static input; got {size}")

        widths = (stored_pattern_size or input_size, input_size, pattern_projection_size or input_size)
        normalised = (normalize_stored_pattern, normalize_state_pattern, normalize_pattern_projection)
        static = (stored_pattern_as_static, state_pattern_as_static, pattern_projection_as_static)
        targets = (hidden_size, hidden_size, pattern_size)
        inputs = zip(widths, normalised, (plain or flag for flag in static), targets, strict=True)
        self.stored, self.state, self.projection = (_Side(*side, num_heads, input_bias) for side in inputs)
        self.association = Association(
            dim=_meeting(modulation, hidden_size),
            heads=num_heads,
            similarity=similarity,
            separation=separation,
            modulation=modulation,
            scaling=(1.0 if plain or hidden_size is None else hidden_size**-0.5) if scaling is None else scaling,
            learn_scaling=learn_scaling,
        )
        self.out_projection = None
        if not plain and not disable_out_projection and pattern_size is not None:
            self.out_projection = nn.Linear(num_heads * pattern_size, output_size or widths[1])  # type: ignore[arg-type]
            nn.init.zeros_(self.out_projection.bias)

    def forward(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """Read out what the states bring to mind.

        Args:
            input: One tensor, or (stored, state, projection).
            stored_pattern_padding_mask: ``(B, N)``, True where a stored pattern is padding.
            association_mask: ``(Q, N)``, ``(B * heads, Q, N)`` or ``(B, heads, Q, N)``: True where a state must not
                see a stored pattern, or numbers to add to the scores. A state that may see nothing reads out zero.
        """
        walk = _Walk(self, input, stored_pattern_padding_mask, association_mask)
        dropout = self.dropout if self.training else 0.0
        readout = walk.unfold(self.association(walk.stored, walk.state, walk.values, walk.mask, dropout))
        readout = readout.transpose(1, 2).flatten(2)
        if self.out_projection is not None:
            readout = self.out_projection(readout)
        return walk.unbatch(readout)

    def get_association_matrix(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """The weight of each stored pattern for each state, ``(B, heads, Q, N)``; arguments as in :meth:`forward`."""
        walk = _Walk(self, input, stored_pattern_padding_mask, association_mask)
        return walk.unbatch(walk.unfold(self.association.weights(walk.stored, walk.state, walk.mask)))

    def energy(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        r"""The energy of each state before it is updated, ``(B, heads, Q)``; arguments as in :meth:`forward`.

        .. math:: E(x) = \tfrac12 \lVert x \rVert^2 - \tfrac1\beta \Psi^\star(\beta \, \Xi^\top x)

        for the dot product, which updates of the state never raise, and :math:`-\tfrac1\beta \Psi^\star(\beta s)` for
        every other similarity; :math:`\Psi^\star` is the log-sum-exp for softmax.
        """
        walk = _Walk(self, input, stored_pattern_padding_mask, association_mask, settle=False)
        return walk.unbatch(walk.unfold(self.association.energy(walk.stored, walk.state, walk.mask)[..., None])[..., 0])

    def _sides(self, input: Input) -> tuple[Tensor, Tensor, Tensor]:
        """Stored patterns, states and projections; for layers to put what they have learned in their place."""
        if isinstance(input, Tensor):
            return input, input, input
        if not isinstance(input, (tuple, list)) or len(input) != 3:
            raise ValueError(f"input must be a tensor or (stored, state, projection), got {_kind(input)}")
        return input[0], input[1], input[2]

    def _settle(self, stored: Tensor, state: Tensor, mask: Mask) -> Tensor:
        """Replace states by what they retrieve, each until it rests."""
        steps = self.update_steps_max
        for _ in range(_MOST_STEPS if steps is None else steps):
            update = self.association(stored, state, stored, mask)
            update = self._normal(update)
            moves = (update - state).abs().amax(-1, keepdim=True) > self.update_steps_eps
            state = torch.where(moves, update, state)
            if steps is None and not bool(moves.any()):
                break
        else:
            if steps is None:
                warnings.warn(f"states still moved after {_MOST_STEPS} steps", RuntimeWarning, stacklevel=6)
        return state

    def _normal(self, patterns: Tensor) -> Tensor:
        return functional.layer_norm(patterns, patterns.shape[-1:]) if self.normalize_hopfield_space else patterns

    def extra_repr(self) -> str:
        sizes = f"input_size={self.input_size}, hidden_size={self.hidden_size}, num_heads={self.num_heads}"
        return f"{sizes}, update_steps_max={self.update_steps_max}, dropout={self.dropout}"


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
        self.quantity = _quantity(quantity)
        self.stored_patterns = self.stored.learned(quantity, trainable)
        self.targets = self.projection.learned(quantity, trainable)

    @torch.no_grad()
    def store(self, patterns: Tensor, targets: Tensor | None = None) -> None:
        """Put patterns in the place of those that are stored, and what to read out for them: themselves by default."""
        targets = patterns if targets is None else targets
        pairs = ((self.stored_patterns, patterns, "patterns"), (self.targets, targets, "targets"))
        for table, rows, name in pairs:
            if rows.shape != table.shape:
                raise ValueError(f"{name} must have shape {tuple(table.shape)}, got {tuple(rows.shape)}")
        for table, rows, _ in pairs:
            table.copy_(rows)

    def _sides(self, input: Input) -> tuple[Tensor, Tensor, Tensor]:
        if not isinstance(input, Tensor):
            raise ValueError(f"input must be a tensor of state patterns, got {_kind(input)}")
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
        self.quantity = _quantity(quantity)
        self.states = self.state.learned(quantity, trainable)

    @property
    def pooled_size(self) -> int:
        """The width of what a set is pooled into."""
        if self.out_projection is not None:
            return self.quantity * self.out_projection.out_features
        assert self.pattern_size is not None
        return self.quantity * self.num_heads * self.pattern_size

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
            raise ValueError(f"input must be a tensor or (stored, projection), got {_kind(input)}")
        return input[0], self.states, input[1]


class _Side(nn.Module):
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
            self.linear = nn.Linear(width, heads * target, bias=bias)
            nn.init.xavier_uniform_(self.linear.weight)
            if bias:
                nn.init.zeros_(self.linear.bias)

    def forward(self, patterns: Tensor) -> Tensor:
        if self.norm is not None:
            patterns = self.norm(patterns)
        if self.linear is None:
            return patterns[:, None].expand(-1, self.heads, -1, -1)
        return self.linear(patterns).unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def learned(self, quantity: int, trainable: bool) -> nn.Parameter:
        """Rows to be learned in the place of this input."""
        assert self.width is not None
        return nn.Parameter(torch.randn(quantity, self.width) * self.width**-0.5, requires_grad=trainable)


class _Walk:
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
        if self.single and padding is not None and padding.ndim == 1:
            padding = padding[None]

        self.stored, self.values = layer._normal(layer.stored(sides[0])), layer.projection(sides[2])
        state = layer._normal(layer.state(sides[1]))
        if self.stored.shape[-1] != state.shape[-1]:
            widths = f"{self.stored.shape[-1]} and {state.shape[-1]}"
            raise ValueError(f"stored and state patterns must be equally wide where they meet; got {widths}")
        heads, queries = state.shape[1:3]
        self.mask = Mask(padding, association, (batch, heads, queries, self.stored.shape[2]))
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


def _meeting(modulation: Modulation | None, hidden_size: int | None) -> int | None:
    """The width of the space where scores are made: that of the heads, unless a kernel leads to another."""
    if not isinstance(modulation, Kernel):
        return hidden_size
    if hidden_size not in (None, modulation.dim):
        raise ValueError(f"modulation was made for {modulation.dim} dimensions, but hidden_size is {hidden_size}")
    return modulation.features or modulation.dim


def _quantity(quantity: int) -> int:
    if quantity < 1:
        raise ValueError(f"quantity must be at least 1, got {quantity}")
    return quantity


def _kind(input: Any) -> str:
    return f"{len(input)} tensors" if isinstance(input, (tuple, list)) else type(input).__name__
