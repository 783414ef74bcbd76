"""A transformer block whose forward pass goes down one energy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ahop._checks import integer, positive
from ahop.nn.association import Association, Mask
from ahop.nn.linear import Projection, linear
from ahop.nn.start import reset
from ahop.separation import Exponential
from ahop.similarity import Dot


class EnergyNorm(nn.Module):
    r"""Layer normalisation that is the gradient of a convex function, so that an energy of what it gives can fall.

    .. math:: g(x) = \gamma \frac{x - \bar x}{\sqrt{\mathrm{var}(x) + \varepsilon}} + \delta = \nabla L(x), \qquad
        L(x) = d \gamma \sqrt{\mathrm{var}(x) + \varepsilon} + \delta^\top x

    It differs from :class:`torch.nn.LayerNorm` in its scale :math:`\gamma`, which is one positive number.

    Args:
        size: Width d of the inputs.

    Shape:
        ``(..., d)`` to ``(..., d)``.

    Example:
        >>> EnergyNorm(2)(torch.tensor([3.0, 7.0]))
        tensor([-1.0000,  1.0000], grad_fn=<AddBackward0>)
    """

    _EPS = 1e-5

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = integer(size, "size", 1)
        self.log_gamma = nn.Parameter(torch.empty(()))
        self.delta = nn.Parameter(torch.empty(self.size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin anew, with a scale of one and no shift."""
        nn.init.zeros_(self.log_gamma)
        nn.init.zeros_(self.delta)

    def forward(self, tokens: Tensor) -> Tensor:
        normal = nn.functional.layer_norm(tokens, (self.size,), eps=self._EPS)
        return self.log_gamma.exp() * normal + self.delta

    def lagrangian(self, tokens: Tensor) -> Tensor:
        """L, ``(...)``."""
        spread = (tokens.var(-1, correction=0) + self._EPS).sqrt()
        return self.size * self.log_gamma.exp() * spread + tokens @ self.delta


class EnergyTransformer(nn.Module):
    r"""A deep network of one block, which pulls tokens down one energy, where a transformer stacks blocks untied.

    .. math:: x \leftarrow x - \alpha \frac{\partial E}{\partial g}, \quad g = \mathrm{norm}(x), \qquad
        E = -\sum_{h,c} \tfrac1\beta \log \sum_{b \ne c} e^{\beta \, (K_h g_b)^\top Q_h g_c}
        - \tfrac12 \sum_{\mu,c} \mathrm{ReLU}(\xi_\mu^\top g_c)^2

    (Hoover et al., "Energy transformer", 2023). Queries ask keys, and keys are drawn to those who ask for them: there
    are no values. The second term is a memory of learned patterns :math:`\xi_\mu` that every token looks up for itself.
    As the norm is the gradient of a convex function (:class:`EnergyNorm`), E falls along the flow, and at every step if
    ``alpha`` is small enough.

    Args:
        input_size: Width d of the tokens.
        hidden_size: Width of queries and keys in one head; ``input_size / num_heads`` when None.
        num_heads: How many heads.
        quantity: How many patterns the memory learns; ``4 * input_size`` when None.
        steps: How many steps down.
        alpha: Their size.
        scaling: :math:`\beta`; ``hidden_size ** -0.5`` when None.

    Shape:
        ``(B, L, d)`` or ``(L, d)`` to the same. Tokens have no order unless they carry it in themselves.

    Example:
        >>> block = ahop.nn.EnergyTransformer(16, num_heads=4)
        >>> tokens = torch.randn(2, 10, 16)
        >>> block(tokens).shape
        torch.Size([2, 10, 16])
        >>> bool((block.energy(block(tokens)) < block.energy(tokens)).all())
        True
    """

    def __init__(
        self,
        input_size: int,
        *,
        hidden_size: int | None = None,
        num_heads: int = 1,
        quantity: int | None = None,
        steps: int = 12,
        alpha: float = 0.1,
        scaling: float | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.num_heads = integer(input_size, "input_size", 1), integer(num_heads, "num_heads", 1)
        if hidden_size is None and self.input_size % self.num_heads:
            raise ValueError(f"hidden_size must be given: {input_size} values are not divisible by {num_heads} heads")
        hidden_size = self.input_size // num_heads if hidden_size is None else hidden_size
        self.hidden_size = integer(hidden_size, "hidden_size", 1)
        self.quantity = 4 * self.input_size if quantity is None else integer(quantity, "quantity", 1)
        self.steps, self.alpha = integer(steps, "steps", 1), positive(alpha, "alpha")
        self.norm = EnergyNorm(self.input_size)
        self.query = Projection(self.input_size, num_heads * self.hidden_size, bias=False)
        self.key = Projection(self.input_size, num_heads * self.hidden_size, bias=False)
        beta = self.hidden_size**-0.5 if scaling is None else scaling
        self.association = Association(self.hidden_size, num_heads, Dot(), Exponential(), None, beta, False)
        self.patterns = nn.Parameter(torch.empty(self.quantity, self.input_size))
        self._begin()

    def reset_parameters(self) -> None:
        """Begin anew, as a layer built with the same arguments does; after ``to_empty()``, for example."""
        reset(self.norm, self.query, self.key, self.association)
        self._begin()

    def _begin(self) -> None:
        nn.init.normal_(self.patterns, std=self.input_size**-0.5)

    def forward(
        self,
        input: Tensor,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """The tokens, so many steps further down.

        Args:
            input: The tokens.
            stored_pattern_padding_mask: ``(B, L)``, True where a token is padding: it stays as it is, and no other
                sees it, be it NaN.
            association_mask: ``(L, L)``, ``(B * heads, L, L)`` or ``(B, heads, L, L)``: True where a token (row) must
                not ask another (column), or numbers to add to the scores.
        """
        tokens, mask, padding = self._check(input, stored_pattern_padding_mask, association_mask)
        for _ in range(self.steps):
            tokens = tokens + self.alpha * self._pull(self.norm(tokens), mask, padding)
        tokens = tokens.reshape(input.shape)
        return tokens if padding is None else torch.where(padding.reshape(*input.shape[:-1], 1), input, tokens)

    def energy(
        self,
        input: Tensor,
        stored_pattern_padding_mask: Tensor | None = None,
        association_mask: Tensor | None = None,
    ) -> Tensor:
        """The energy of all tokens together, ``(B,)``, or ``()`` without a batch.

        A token that may ask no other has no part in that of attention.

        Args:
            input, stored_pattern_padding_mask, association_mask: As in :meth:`forward`.
        """
        tokens, mask, padding = self._check(input, stored_pattern_padding_mask, association_mask)
        normal = self.norm(tokens)
        assert mask.blocked is not None
        attention = self.association.energy(self._heads(self.key, normal), self._heads(self.query, normal), mask)
        attention = attention.masked_fill(mask.blocked.all(-1), 0.0).sum((1, 2))
        looked_up = self._looked_up(normal, padding).square().sum((1, 2)) / 2
        energy = attention - looked_up
        return energy if input.ndim == 3 else energy.squeeze(0)

    def _pull(self, normal: Tensor, mask: Mask, padding: Tensor | None) -> Tensor:
        """The negative gradient of the energy by what the norm gives."""
        keys, queries = self._heads(self.key, normal), self._heads(self.query, normal)
        weights = self.association.weights(keys, queries, mask).to(normal.dtype)
        asked, asking = (weights @ keys).transpose(1, 2).flatten(2), (weights.mT @ queries).transpose(1, 2).flatten(2)
        attention = linear(asked, self.query.weight.T) + linear(asking, self.key.weight.T)
        return attention + linear(self._looked_up(normal, padding), self.patterns.T)

    def _looked_up(self, normal: Tensor, padding: Tensor | None) -> Tensor:
        """How far each token overlaps with each pattern of the memory, ``(B, L, quantity)``."""
        overlaps = linear(normal, self.patterns).relu()
        return overlaps if padding is None else overlaps.masked_fill(padding[..., None], 0.0)

    def _heads(self, projection: Projection, normal: Tensor) -> Tensor:
        return projection(normal).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def _check(
        self, input: Tensor, padding: Tensor | None, association: Tensor | None
    ) -> tuple[Tensor, Mask, Tensor | None]:
        """Tokens with a batch and zeros for padding, who may ask whom, and the padding with a batch."""
        shape = f"(B, L, {self.input_size}) or (L, {self.input_size})"
        if not isinstance(input, Tensor):
            raise ValueError(f"input must be a tensor {shape}; got {type(input).__name__}")
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ValueError(f"input must have shape {shape}; got {tuple(input.shape)}")
        tokens = input if input.ndim == 3 else input[None]
        if input.ndim == 2 and isinstance(padding, Tensor) and padding.ndim == 1:
            padding = padding[None]
        batch, length = tokens.shape[:2]
        mask = Mask(padding, association, (batch, self.num_heads, length, length))
        # No token asks itself, and padding asks none.
        blocked = torch.eye(length, dtype=torch.bool, device=tokens.device)
        if padding is not None:
            blocked = blocked | padding[:, None, :, None]
            tokens = tokens.masked_fill(padding[..., None], 0.0)
        mask.blocked = blocked.expand(batch, 1, length, length) if mask.blocked is None else mask.blocked | blocked
        return tokens, mask, padding

    def extra_repr(self) -> str:
        sizes = f"input_size={self.input_size}, hidden_size={self.hidden_size}, num_heads={self.num_heads}"
        return f"{sizes}, quantity={self.quantity}, steps={self.steps}, alpha={self.alpha:g}"
