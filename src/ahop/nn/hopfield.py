"""The Hopfield layer: association of two sets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ahop._checks import share, whole, within
from ahop.modulation import Kernel, Modulation
from ahop.nn.association import Association, Mask
from ahop.nn.inputs import Input, Side, Walk, kind
from ahop.nn.start import Unbiased, reset
from ahop.separation import Separation
from ahop.similarity import Similarity

# Where a layer that goes on until its state rests gives up.
_MOST_STEPS = 1000


class Hopfield(nn.Module):
    r"""Associates every state pattern with stored patterns and reads out their projections, in several heads.

    .. math:: y = \big[\mathrm{sep}(\beta_h \, \mathrm{sim}(W_h \Xi,\, U_h x)) \; V_h P\big]_h \, O

    With its defaults and ``input_size`` given this is :class:`torch.nn.MultiheadAttention`, the stored patterns being
    keys, the states queries and the projections values. Without ``input_size`` there is nothing to learn: patterns are
    compared as they are, and plain retrieval is left. Names follow ``hflayers``; masks follow PyTorch (True = ignore).

    Args:
        input_size: Width of the inputs that are not named otherwise and not static; None takes all inputs as they
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
        normalize_hopfield_space: Layer normalisation, without parameters, where states and stored patterns meet; once,
            before the state is updated.
        stored_pattern_as_static, state_pattern_as_static, pattern_projection_as_static: Take that input as it is,
            without a projection, the same for every head.
        stored_pattern_size, pattern_projection_size: Widths of these inputs; ``input_size`` when None.
        dropout: Probability that a weight is dropped in training.
        input_bias: Whether the projections, that of the output among them, have a bias.
        disable_out_projection: Give the readouts of the heads side by side.

    Attributes:
        output_size: The width of what is read out; None where only the inputs can tell.

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
        scaling: float | Sequence[float] | Tensor | None = None,
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
        sizes |= {"pattern_size": pattern_size, "stored_pattern_size": stored_pattern_size}
        sizes |= {"pattern_projection_size": pattern_projection_size}
        input_size, hidden_size, output_size, pattern_size, stored_pattern_size, pattern_projection_size = (
            None if size is None else whole(size, name, 1) for name, size in sizes.items()
        )
        num_heads = whole(num_heads, "num_heads", 1)
        if update_steps_max is not None:
            update_steps_max = whole(update_steps_max, "update_steps_max", 0)
        update_steps_eps = within(update_steps_eps, "update_steps_eps", 0.0, float("inf"))
        dropout = share(dropout, "dropout")
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
        self.stored, self.state, self.projection = (Side(*side, num_heads, input_bias) for side in inputs)
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
        self.output_size = None if pattern_size is None else num_heads * pattern_size
        if self.output_size is not None and input_size is not None and not disable_out_projection:
            self.out_projection = Unbiased(self.output_size, output_size or input_size, bias=input_bias)
            self.output_size = self.out_projection.out_features

    def reset_parameters(self) -> None:
        """Begin anew, as a layer built with the same arguments does; after ``to_empty()``, for example."""
        reset(self.stored, self.state, self.projection, self.association, self.out_projection)

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
                see a stored pattern, or numbers to add to the scores. A state that may see nothing reads out zero; what
                no state may see has no part in anything, be it NaN.
        """
        walk = Walk(self, input, stored_pattern_padding_mask, association_mask)
        dropout = self.dropout if self.training else 0.0
        readout = walk.unfold(self.association(walk.stored, walk.state, walk.values, walk.mask, dropout))
        readout = readout.transpose(1, 2).flatten(2)
        if self.out_projection is not None:
            readout = self.out_projection(readout)
            if walk.empty is not None:
                readout = readout.masked_fill(walk.empty, 0.0)
        return walk.unbatch(readout)

    def get_association_matrix(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """The weight of each stored pattern for each state, ``(B, heads, Q, N)``; arguments as in :meth:`forward`."""
        walk = Walk(self, input, stored_pattern_padding_mask, association_mask)
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
        walk = Walk(self, input, stored_pattern_padding_mask, association_mask, settle=False)
        return walk.unbatch(walk.unfold(self.association.energy(walk.stored, walk.state, walk.mask)[..., None])[..., 0])

    def _sides(self, input: Input) -> tuple[Tensor, Tensor, Tensor]:
        """Stored patterns, states and projections; for layers to put what they have learned in their place."""
        if isinstance(input, Tensor):
            return input, input, input
        if not isinstance(input, (tuple, list)) or len(input) != 3:
            raise ValueError(f"input must be a tensor or (stored, state, projection), got {kind(input)}")
        return input[0], input[1], input[2]

    def _settle(self, stored: Tensor, state: Tensor, mask: Mask) -> Tensor:
        """Replace states by what they retrieve, each until it rests."""
        steps = self.update_steps_max
        for _ in range(_MOST_STEPS if steps is None else steps):
            update = self.association(stored, state, stored, mask)
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


def _meeting(modulation: Modulation | None, hidden_size: int | None) -> int | None:
    """The width of the space where scores are made: that of the heads, unless a kernel leads to another."""
    if not isinstance(modulation, Kernel):
        return hidden_size
    if hidden_size not in (None, modulation.dim):
        raise ValueError(f"modulation was made for {modulation.dim} dimensions, but hidden_size is {hidden_size}")
    return modulation.features or modulation.dim
