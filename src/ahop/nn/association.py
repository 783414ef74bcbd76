"""The heart of a Hopfield layer: scores, weights and readout for several heads at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ahop import kernels
from ahop._blocks import budget
from ahop._component import never_half, single
from ahop.modulation import Modulation
from ahop.nn.start import reset
from ahop.separation import Exponential, Separation, Softmax
from ahop.similarity import Adaptive, Dot, Similarity

# How far below the best a pattern lies that must have no weight, in units of the temperature and of the scores' own
# size: beyond what any separation still sees.
_BLOCKED_GAP = 1e4


class Mask:
    """Which patterns a state may not see, and what is added to the scores of the others.

    Args:
        padding: ``(B, N)``, True where a stored pattern is padding.
        association: ``(Q, N)``, ``(B * heads, Q, N)`` or ``(B, heads, Q, N)``, boolean (True = not to be seen) or a
            number to add to the scores.

    Attributes:
        blocked: True where not to be seen, broadcasts to ``(B, heads, Q, N)``; or None.
        added: Numbers likewise; or None.
        padding: The padding alone, if that is all there is.
        unseen: ``(B, N)`` or ``(1, N)``, True where no state may see the stored pattern; or None.
        empty: Broadcasts to ``(B, Q, 1)``, True where a state may see nothing in any head; or None.
    """

    def __init__(self, padding: Tensor | None, association: Tensor | None, shape: tuple[int, int, int, int]) -> None:
        batch, heads, queries, stored = shape
        self.blocked: Tensor | None = None
        self.added: Tensor | None = None
        self.padding = padding if association is None else None
        for name, mask in (("stored_pattern_padding_mask", padding), ("association_mask", association)):
            if mask is not None and not isinstance(mask, Tensor):
                raise TypeError(f"{name} must be a tensor or None, got {type(mask).__name__}")
        if padding is not None:
            if padding.dtype != torch.bool or padding.shape != (batch, stored):
                got = f"{padding.dtype} of shape {tuple(padding.shape)}"
                wanted = f"boolean (True = padding), of shape ({batch}, {stored})"
                raise ValueError(f"stored_pattern_padding_mask must be {wanted}; got {got}")
            self.blocked = padding[:, None, None]
        if association is not None:
            forms = {2: (queries, stored), 3: (batch * heads, queries, stored), 4: shape}
            if association.shape != forms.get(association.ndim):
                wanted = " or ".join(map(str, forms.values()))
                raise ValueError(f"association_mask must have shape {wanted}; got {tuple(association.shape)}")
            if association.dtype != torch.bool and not association.is_floating_point():
                raise ValueError(f"association_mask must be boolean or numbers to add, got {association.dtype}")
            table = association.reshape(-1, heads if association.ndim > 2 else 1, queries, stored)
            if association.dtype != torch.bool:
                self.added = table.masked_fill(table == -torch.inf, 0.0)
                table = table == -torch.inf
            self.blocked = table if self.blocked is None else self.blocked | table

    @property
    def unseen(self) -> Tensor | None:
        return None if self.blocked is None else self.blocked.all(2).all(1)

    @property
    def empty(self) -> Tensor | None:
        return None if self.blocked is None else self.blocked.all(-1).all(1)[..., None]

    def widen(self, columns: int) -> None:
        """Follow so many stored patterns that were put behind the others, for every state to see."""
        for name in ("blocked", "added", "padding"):
            table = getattr(self, name)
            if columns and table is not None:
                setattr(self, name, functional.pad(table, (0, columns)))

    def fold(self, batch: int, heads: int, queries: int) -> None:
        """Follow states of a batch that were laid one behind the other: ``(1, heads, B * Q, N)``.

        Args:
            batch: B, the number of batch items.
            heads: The number of heads.
            queries: Q, the number of states of a batch item.
        """
        self.padding = None
        for name in ("blocked", "added"):
            table = getattr(self, name)
            if table is not None:
                wide = table.expand(batch, table.shape[1], queries, -1)
                setattr(self, name, wide.transpose(0, 1).reshape(1, table.shape[1], batch * queries, -1))


class Association(nn.Module):
    r"""What every Hopfield layer does between its projections, one head at a time.

    .. math:: y_h = V_h^\top \mathrm{sep}\big(\beta_h \, \mathrm{sim}_h(\Xi_h, x_h)\big)

    Args:
        dim: Width of the space where states and stored patterns are compared; None where it is not known.
        heads: How many heads.
        similarity: A name (each head then learns its own), a part (shared by all heads), or a list of one a head.
        separation: A separation, or its name.
        modulation: Applied to states and stored patterns before they are compared.
        scaling: :math:`\beta`, for all heads or one each. Kept in float32 at least, whatever the layer is cast to.
        learn_scaling: Learn it.

    Shape:
        stored ``(B, heads, N, d)``, state ``(B, heads, Q, d)``, values ``(B, heads, N, v)`` to ``(B, heads, Q, v)``.
    """

    log_beta: Tensor

    def __init__(
        self,
        dim: int | None,
        heads: int,
        similarity: Similarity | str | Sequence[Similarity],
        separation: Separation | str,
        modulation: Modulation | None,
        scaling: float | Sequence[float] | Tensor,
        learn_scaling: bool,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.similarities = nn.ModuleList(_similarities(similarity, dim, heads))
        self.separation = Separation.of(separation)
        if modulation is not None and not isinstance(modulation, Modulation):
            raise TypeError(f"modulation must be a Modulation or None, got {type(modulation).__name__}")
        self.modulation = modulation
        self.scaling = _per_head(scaling, heads)
        # A log, so that what is learned cannot cross zero.
        log_beta = single(torch.empty(heads))
        if learn_scaling:
            self.log_beta = nn.Parameter(log_beta)
        else:
            self.register_buffer("log_beta", log_beta)
        self._begin()

    def reset_parameters(self) -> None:
        """Begin anew: parts as they were made, and the inverse temperatures as they were given."""
        reset(*self.similarities, self.separation, self.modulation)
        self._begin()

    @torch.no_grad()
    def _begin(self) -> None:
        self.log_beta.copy_(self.log_beta.new_tensor([math.log(beta) for beta in self.scaling]))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Association:
        return super()._apply(never_half(fn), recurse)

    @property
    def beta(self) -> Tensor:
        """The inverse temperature of each head, ``(heads,)``."""
        return self.log_beta.exp()

    def scores(self, stored: Tensor, state: Tensor, mask: Mask) -> Tensor:
        """Similarities times beta plus what the mask adds, in float32 or better.

        Args:
            stored: Patterns, ``(B, heads, N, d)``.
            state: Queries, ``(B, heads, Q, d)``.
            mask: Which patterns a state may see.

        Returns:
            Scores, ``(B, heads, Q, N)``.
        """
        stored, state = self._modulated(stored, state)
        # A score in half precision could not tell close patterns apart.
        with torch.autocast(state.device.type, enabled=False):
            stored, state = single(stored), single(state)
            bases = self._kernel_bases(stored)
            if bases is not None:
                table = kernels.scores(stored, state, self._order_weights(), bases)
            elif len(self.similarities) == 1:
                table = self.similarities[0](stored, state)
            else:
                parts = zip(self.similarities, stored.unbind(1), state.unbind(1), strict=True)
                table = torch.stack([similarity(*sides) for similarity, *sides in parts], 1)
            table = table * single(self.beta)[:, None, None]
            return table if mask.added is None else table + mask.added

    def weights(self, stored: Tensor, state: Tensor, mask: Mask) -> Tensor:
        """The weight of each stored pattern in the readout; all are zero for a state that may see none.

        Args:
            stored, state, mask: As in :meth:`scores`.

        Returns:
            Weights, ``(B, heads, Q, N)``.
        """
        table = self._fenced(self.scores(stored, state, mask), mask)
        weights: Tensor = self.separation(table)
        return weights if mask.blocked is None else weights.masked_fill(mask.blocked, 0.0)

    def forward(self, stored: Tensor, state: Tensor, values: Tensor, mask: Mask, dropout: float = 0.0) -> Tensor:
        """Read out values.

        Args:
            stored, state, mask: As in :meth:`scores`.
            values: What the patterns stand for, ``(B, heads, N, v)``.
            dropout: The probability with which each weight is dropped.

        Returns:
            Readouts, ``(B, heads, Q, v)``.
        """
        if self._is_attention:
            return self._attention(stored, state, values, mask, dropout)
        if self._fuses(stored, state, values, mask, dropout):
            return self._fused(stored, state, values, mask)
        weights = self.weights(stored, state, mask)
        if dropout:
            weights = functional.dropout(weights, dropout)
        return weights.to(values.dtype) @ values

    def step(self, stored: Tensor, state: Tensor, mask: Mask) -> Tensor:
        """The next states; one that no pattern reaches stays where it is.

        Args:
            stored, state, mask: As in :meth:`scores`.
        """
        if not self.separation.bounded:
            return self.forward(stored, state, stored, mask)
        weights = self.weights(stored, state, mask)
        return torch.where(weights.any(-1, keepdim=True), weights.to(stored.dtype) @ stored, state)

    def energy(self, stored: Tensor, state: Tensor, mask: Mask) -> Tensor:
        r"""The energy of each state and head, ``(B, heads, Q)``.

        .. math:: E(x) = \tfrac12 \lVert x \rVert^2 [\mathrm{sim} = \mathrm{dot}]
            - \tfrac1\beta \Psi^\star(\beta\, \mathrm{sim}(\Xi, x))

        Large, but finite, for a state that may see nothing.

        Args:
            stored, state, mask: As in :meth:`scores`.
        """
        table = self._fenced(self.scores(stored, state, mask), mask)
        energy: Tensor = -self.separation.conjugate(table) / single(self.beta)[:, None]
        if not self.separation.in_a_bowl:
            return energy
        state = single(state if self.modulation is None else self.modulation(state))
        if len(self.similarities) == 1:
            bowl = self.similarities[0].bowl(state)  # type: ignore[operator]
            return energy if bowl is None else energy + bowl
        parts = zip(self.similarities, energy.unbind(1), state.unbind(1), strict=True)
        return torch.stack([own if (bowl := part.bowl(x)) is None else own + bowl for part, own, x in parts], 1)  # type: ignore[operator]

    # --- the ways to a readout -----------------------------------------------------------------------------

    @property
    def _is_attention(self) -> bool:
        """Whether this is softmax attention as PyTorch has it."""
        plain = len(self.similarities) == 1 and type(self.similarities[0]) is Dot
        return plain and type(self.separation) in (Exponential, Softmax)

    def _attention(self, stored: Tensor, state: Tensor, values: Tensor, mask: Mask, dropout: float) -> Tensor:
        stored, state = self._modulated(stored, state)
        # Its root on either side, so that neither leaves the range of half precision.
        inverse = self.separation.inverse_temperature
        root = (single(self.beta) * inverse).sqrt()[:, None, None]
        # A processor gains nothing by fewer digits.
        dtype = values.dtype if values.is_cuda else single(values).dtype
        allowed, empty = None, None
        if mask.blocked is not None:
            # A state that may see nothing sees everything, and its answer is thrown away: no NaN anywhere.
            empty = mask.blocked.all(-1, keepdim=True)
            allowed = ~mask.blocked | empty
            if mask.added is not None:
                allowed = (mask.added * inverse).masked_fill(~allowed, -torch.inf).to(dtype)
        with torch.autocast(state.device.type, enabled=False):
            state, stored = (state * root).to(dtype), (stored * root).to(dtype)
            readout = functional.scaled_dot_product_attention(
                state, stored, values.to(dtype), attn_mask=allowed, dropout_p=dropout, scale=1.0
            ).to(values.dtype)
        return readout if empty is None else readout.masked_fill(empty, 0.0)

    def _kernel_bases(self, stored: Tensor) -> list[str] | None:
        """The bases of adaptive similarities that one call of the kernels can do for all heads."""
        adaptive = self._adaptive()
        names = [similarity.kernel_bases(stored) for similarity in adaptive]
        alike = len(adaptive) == len(self.similarities) and all(other == names[0] for other in names)
        return names[0] if alike else None

    def _adaptive(self) -> list[Adaptive]:
        return [similarity for similarity in self.similarities if isinstance(similarity, Adaptive)]

    def _order_weights(self) -> Tensor:
        """Of every head where each has its own, ``(heads, B, d)``, else ``(B, d)``."""
        weights = [similarity.order_weights() for similarity in self._adaptive()]
        return single(weights[0] if len(weights) == 1 else torch.stack(weights))

    def _fuses(self, stored: Tensor, state: Tensor, values: Tensor, mask: Mask, dropout: float) -> bool:
        """Whether scores, softmax and readout go in one pass.

        Its backward pass makes the scores again; where keeping them costs little, that is the faster way to learn.
        """
        able = type(self.separation) in (Exponential, Softmax) and self._kernel_bases(stored) is not None
        able = able and not dropout and (mask.padding is not None or mask.blocked is None)
        table = 4 * state.shape[0] * self.heads * state.shape[2] * stored.shape[2]
        learns = torch.is_grad_enabled() and any(t.requires_grad for t in (stored, state, values, *self.parameters()))
        return able and (table > budget() or not learns)

    def _fused(self, stored: Tensor, state: Tensor, values: Tensor, mask: Mask) -> Tensor:
        stored, state = self._modulated(stored, state)
        bases = self._kernel_bases(stored)
        assert bases is not None
        with torch.autocast(state.device.type, enabled=False):
            beta = single(self.beta) * self.separation.inverse_temperature
            weights = self._order_weights() * beta[:, None, None]
            bias = None
            if mask.padding is not None:
                bias = torch.zeros(mask.padding.shape, dtype=torch.float32, device=state.device)
                bias = bias.masked_fill(mask.padding, -torch.inf)[:, None].expand(-1, self.heads, -1)
            sides = single(stored), single(state)
            return kernels.retrieve(*sides, weights, bases, single(values), bias=bias).to(values.dtype)

    def _modulated(self, stored: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        if self.modulation is None:
            return stored, state
        return self.modulation(stored), self.modulation(state)

    def _fenced(self, table: Tensor, mask: Mask) -> Tensor:
        """Scores of what may not be seen are put far below the others; not at minus infinity, which sums to NaN."""
        if mask.blocked is None:
            return table
        if not self.separation.probabilistic:
            return table.masked_fill(mask.blocked, 0.0)
        best = table.detach().masked_fill(mask.blocked, -torch.inf).amax(-1, keepdim=True)
        best = best.masked_fill(best == -torch.inf, 0.0)
        level = best
        if self.separation.total > 1:
            # Below the worst as well: where several patterns are wanted, these must not be preferred to it.
            level = torch.minimum(best, table.detach().masked_fill(mask.blocked, torch.inf).amin(-1, keepdim=True))
        temperature = 1 / torch.as_tensor(self.separation.inverse_temperature).detach()
        return torch.where(mask.blocked, level - _BLOCKED_GAP * (best.abs() + temperature), table)

    def extra_repr(self) -> str:
        return f"heads={self.heads}"


def _similarities(
    similarity: Similarity | str | Sequence[Similarity], dim: int | None, heads: int
) -> Sequence[Similarity]:
    if isinstance(similarity, str):
        # What learns begins where plain attention is, and every head learns its own.
        parts = [Similarity.of(similarity, dim) for _ in range(heads)]
        for part in parts:
            part.start_as("dot")
        return parts if parts[0].learns or any(True for _ in parts[0].parameters()) else parts[:1]
    if isinstance(similarity, Similarity):
        return [Similarity.of(similarity, dim)]
    some = list(similarity) if isinstance(similarity, Sequence) else [similarity]
    if len(some) != heads or not all(isinstance(part, Similarity) for part in some):
        kinds = [type(part).__name__ for part in some]
        raise ValueError(f"similarity must be a name, a Similarity, or one for each of {heads} heads; got {kinds}")
    return [Similarity.of(part, dim) for part in some]  # type: ignore[arg-type]


def _per_head(scaling: float | Sequence[float] | Tensor, heads: int) -> tuple[float, ...]:
    if isinstance(scaling, Tensor) and (scaling.requires_grad or scaling.is_meta):
        got = "on the meta device" if scaling.is_meta else "with a gradient, which would be lost"
        raise ValueError(f"scaling must be numbers, to be learned with learn_scaling=True; got a tensor {got}")
    try:
        values = np.asarray(scaling.tolist() if isinstance(scaling, Tensor) else scaling)
    except (TypeError, ValueError, RuntimeError):
        values = np.asarray(None)
    limits = torch.finfo(torch.get_default_dtype() if torch.get_default_dtype().itemsize > 4 else torch.float32)
    able = values.dtype.kind in "iuf" and values.shape in ((), (heads,))
    if not able or not bool(((values >= limits.tiny) & (values <= limits.max / 2)).all()):
        raise ValueError(f"scaling must be positive, one number or one for each of {heads} heads; got {scaling!r}")
    return tuple(np.broadcast_to(values, heads).astype(float).tolist())
