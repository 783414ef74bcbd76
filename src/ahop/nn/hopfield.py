"""The Hopfield layer: association of two sets."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from ahop._checks import integer, share, within
from ahop._settle import settle
from ahop.modulation import Kernel, Modulation
from ahop.nn.association import Association
from ahop.nn.inputs import Heads, Input, Inputs, Side, Sizes, check, kind, project
from ahop.nn.linear import Unbiased
from ahop.nn.start import reset
from ahop.separation import Separation
from ahop.similarity import Cosine, Similarity

# Where a layer that goes on until its state rests gives up.
_MOST_STEPS = 1000
# What cosines are multiplied by (Liu et al., 2022, let it begin there): by far less, all patterns weigh alike.
_COSINE_SCALE = 10.0


class Hopfield(nn.Module):
    r"""Associates every state pattern with stored patterns and reads out their projections, in several heads.

    .. math:: y = O \, \big[V_h P^\top \mathrm{sep}(\beta_h \, \mathrm{sim}(\Xi W_h^\top,\, U_h x))\big]_h

    with the stored patterns and their projections as the rows of :math:`\Xi` and :math:`P`.

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
        scaling: :math:`\beta`, one number or one a head. When None it is ``hidden_size ** -0.5``, for cosines, which do
            not grow with the width, 10 (as in Swin Transformer V2), and 1 without ``input_size``.
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
        # By name alone: torch.nn.MultiheadAttention has its heads where others have the width of a space.
        *,
        hidden_size: int | None = None,
        output_size: int | None = None,
        pattern_size: int | None = None,
        num_heads: int = 1,
        scaling: float | Sequence[float] | Tensor | None = None,
        update_steps_max: int | None = 0,
        update_steps_eps: float = 1e-4,
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
        self.num_heads = heads = integer(num_heads, "num_heads", 1)
        self.update_steps_max = None if update_steps_max is None else integer(update_steps_max, "update_steps_max", 0)
        self.update_steps_eps = within(update_steps_eps, "update_steps_eps", 0.0, float("inf"))
        self.normalize_hopfield_space, self.dropout = normalize_hopfield_space, share(dropout, "dropout")
        sizes = Sizes(
            heads,
            input_size=input_size,
            hidden_size=hidden_size,
            output_size=output_size,
            pattern_size=pattern_size,
            stored_pattern_size=stored_pattern_size,
            pattern_projection_size=pattern_projection_size,
        )
        self.input_size, self.hidden_size, self.pattern_size = sizes.input, sizes.hidden, sizes.pattern
        plain = sizes.input is None
        if sizes.output is not None and (plain or disable_out_projection):
            raise ValueError(f"output_size must be None where there is no output projection, got {sizes.output}")
        sizes.require_static(stored=stored_pattern_as_static, projection=pattern_projection_as_static)

        def side(width: int | None, target: int | None, normalised: bool, static: bool) -> Side:
            return Side(width or sizes.input, normalised, plain or static, target, heads, input_bias)

        self.stored = side(sizes.stored, sizes.hidden, normalize_stored_pattern, stored_pattern_as_static)
        self.state = side(sizes.input, sizes.hidden, normalize_state_pattern, state_pattern_as_static)
        self.projection = side(
            sizes.projection, sizes.pattern, normalize_pattern_projection, pattern_projection_as_static
        )
        if scaling is None:
            scaling = 1.0 if plain or sizes.hidden is None else _scalings(similarity, heads, sizes.hidden)
        dim = _meeting(modulation, sizes.hidden)
        self.association = Association(dim, heads, similarity, separation, modulation, scaling, learn_scaling)
        self.out_projection = None
        self.output_size = None if sizes.pattern is None else heads * sizes.pattern
        if self.output_size is not None and sizes.input is not None and not disable_out_projection:
            self.out_projection = Unbiased(self.output_size, sizes.output or sizes.input, bias=input_bias)
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
        heads = self._project(self._check(input, stored_pattern_padding_mask, association_mask))
        state, dropout = self._settle(heads), self.dropout if self.training else 0.0
        readout = heads.unfold(self.association(heads.stored, state, heads.values, heads.mask, dropout))
        readout = readout.transpose(1, 2).flatten(2)
        if self.out_projection is not None:
            readout = self.out_projection(readout)
            if heads.empty is not None:
                readout = readout.masked_fill(heads.empty, 0.0)
        return heads.unbatch(readout)

    def get_association_matrix(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """The weight of each stored pattern for each state, ``(B, heads, Q, N)``; arguments as in :meth:`forward`."""
        heads = self._project(self._check(input, stored_pattern_padding_mask, association_mask))
        return heads.unbatch(heads.unfold(self.association.weights(heads.stored, self._settle(heads), heads.mask)))

    def energy(
        self,
        input: Input,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        r"""The energy of each state before it is updated, ``(B, heads, Q)``.

        .. math:: E(x) = \tfrac12 \lVert x \rVert^2 - \tfrac1\beta \Psi^\star(\beta \, \Xi x)

        for the dot product, which updates of the state never raise, and :math:`-\tfrac1\beta \Psi^\star(\beta s)` for
        every other similarity; :math:`\Psi^\star` is the log-sum-exp for softmax.

        Args:
            input, stored_pattern_padding_mask, association_mask: As in :meth:`forward`.
        """
        heads = self._project(self._check(input, stored_pattern_padding_mask, association_mask))
        energy = self.association.energy(heads.stored, heads.state, heads.mask)
        return heads.unbatch(heads.unfold(energy[..., None])[..., 0])

    def _sides(self, input: Input) -> tuple[Tensor, Tensor, Tensor]:
        """Stored patterns, states and projections; for layers to put what they have learned in their place."""
        if isinstance(input, Tensor):
            return input, input, input
        if not isinstance(input, (tuple, list)) or len(input) != 3:
            raise ValueError(f"input must be a tensor or (stored, state, projection), got {kind(input)}")
        return input[0], input[1], input[2]

    def _check(self, input: Input, padding: Tensor | None, association: Tensor | None) -> Inputs:
        widths = self.stored.width, self.state.width, self.projection.width
        given = [input] if isinstance(input, Tensor) else input
        sides = self._sides(input)
        single = all(isinstance(side, Tensor) and side.ndim == 2 for side in given)
        return check(sides, widths, self.num_heads, padding, association, single=single)

    def _project(self, inputs: Inputs) -> Heads:
        return project(inputs, (self.stored, self.state, self.projection), self._normal)

    def _settle(self, heads: Heads) -> Tensor:
        """The states, each replaced by what it retrieves until it rests."""
        state, _ = settle(
            lambda state, _: self.association.step(heads.stored, state, heads.mask),
            heads.state,
            steps=self.update_steps_max,
            tolerance=self.update_steps_eps,
            most=_MOST_STEPS,
        )
        return state

    def _normal(self, patterns: Tensor) -> Tensor:
        return functional.layer_norm(patterns, patterns.shape[-1:]) if self.normalize_hopfield_space else patterns

    def extra_repr(self) -> str:
        sizes = f"input_size={self.input_size}, hidden_size={self.hidden_size}, num_heads={self.num_heads}"
        return f"{sizes}, update_steps_max={self.update_steps_max}, dropout={self.dropout}"


def _scalings(similarity: Similarity | str | Sequence[Similarity], heads: int, hidden_size: int) -> list[float]:
    """For each head what lets a softmax of its scores tell patterns apart, and still learn."""
    one_for_all = isinstance(similarity, str) or not isinstance(similarity, Sequence)
    some: Sequence[object] = [similarity] * heads if one_for_all else similarity  # type: ignore[assignment]
    return [_COSINE_SCALE if part == Cosine.name or isinstance(part, Cosine) else hidden_size**-0.5 for part in some]


def _meeting(modulation: Modulation | None, hidden_size: int | None) -> int | None:
    """The width of the space where scores are made: that of the heads, unless a kernel leads to another."""
    if not isinstance(modulation, Kernel):
        return hidden_size
    if hidden_size not in (None, modulation.dim):
        raise ValueError(
            f"modulation must be for {hidden_size} dimensions, the hidden_size; got one for {modulation.dim}"
        )
    return modulation.features or modulation.dim
