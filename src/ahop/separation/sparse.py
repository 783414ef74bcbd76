"""Sparse separations: the weights of patterns far behind the best are exactly zero."""

from __future__ import annotations

import math

import entmax
import torch
from torch import Tensor, nn

from ahop._checks import within
from ahop.separation.tempered import Regularised

# Closer to 1 than this, the powers of both families lose all their digits.
_LEAST_ALPHA = 1.001


class Sparsemax(Regularised):
    r"""Weights that are exactly zero for patterns far behind the best.

    .. math:: \mathrm{sep}(s) = \arg\max_{p \in \Delta} \; p^\top \beta s - \tfrac12 \lVert p \rVert^2

    Args:
        beta: Inverse temperature, positive. Learned when ``learn=True``.

    Example:
        >>> Sparsemax()(torch.tensor([0.0, 0.5, 3.0]))
        tensor([0., 0., 1.])
    """

    def forward(self, scores: Tensor) -> Tensor:
        weights: Tensor = entmax.sparsemax(self._tempered(scores)[0], dim=-1)
        return weights

    def generator(self, weights: Tensor) -> Tensor:
        r"""Half of :math:`p^\top p - 1`."""
        return (weights.square().sum(-1) - 1) / 2

    @property
    def margin(self) -> float:
        return 1.0


class Entmax(Regularised):
    r"""Sparse weights between softmax and sparsemax.

    .. math:: \mathrm{sep}(s) = \arg\max_{p \in \Delta} \; p^\top \beta s + H_\alpha(p), \qquad
        H_\alpha(p) = \frac{1}{\alpha(\alpha-1)} \sum_i (p_i - p_i^\alpha)

    Args:
        alpha: Above 1 (softmax, not reached) and at most 2 (sparsemax).
        beta: Inverse temperature, positive. Learned when ``learn=True``.
        learn_alpha: Learn ``alpha`` too; it cannot leave its interval.

    Example:
        >>> Entmax(alpha=1.5)(torch.tensor([0.0, 0.0, 4.0]))
        tensor([0., 0., 1.])
    """

    def __init__(
        self, alpha: float = 1.5, beta: float = 1.0, *, learn: bool = False, learn_alpha: bool = False
    ) -> None:
        super().__init__(beta, learn=learn)
        alpha = within(alpha, "alpha", _LEAST_ALPHA, 2)
        self.learn_alpha = learn_alpha
        self.alpha_logit = nn.Parameter(torch.empty(())) if learn_alpha else None
        self._alpha = alpha
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.alpha_logit is not None:
            # A gradient is zero at the ends of the interval, so a learned alpha starts a little inside.
            share = min(max((self._alpha - _LEAST_ALPHA) / (2 - _LEAST_ALPHA), 1e-4), 1 - 1e-4)
            self.alpha_logit.fill_(math.log(share / (1 - share)))

    @property
    def alpha(self) -> Tensor | float:
        if self.alpha_logit is None:
            return self._alpha
        return _LEAST_ALPHA + (2 - _LEAST_ALPHA) * self.alpha_logit.sigmoid()

    def forward(self, scores: Tensor) -> Tensor:
        (scores, _), alpha = self._tempered(scores), self.alpha
        weights: Tensor
        # A learned alpha takes the general way even where a shorter one exists: that one gives it no gradient.
        if alpha == 2 and self.alpha_logit is None:
            weights = entmax.sparsemax(scores, dim=-1)
        elif alpha == 1.5 and self.alpha_logit is None:
            weights = entmax.entmax15(scores, dim=-1)
        else:
            weights = entmax.entmax_bisect(scores, alpha=alpha, dim=-1)
        return weights

    def generator(self, weights: Tensor) -> Tensor:
        r"""The negative entropy :math:`-H_\alpha(p)`."""
        return (weights**self.alpha - weights).sum(-1) / (self.alpha * (self.alpha - 1))

    @property
    def margin(self) -> float:
        r"""It is :math:`1 / (\alpha - 1)`."""
        return 1 / (torch.as_tensor(self.alpha).item() - 1)

    def extra_repr(self) -> str:
        alpha = self._alpha if self.log_beta.is_meta else torch.as_tensor(self.alpha).item()
        return f"alpha={alpha:g}, {super().extra_repr()}"


class Normmax(Regularised):
    r"""Keeps a few patterns and lets them have an even say, where sparsemax lets the best of them outweigh the rest.

    .. math:: \mathrm{sep}(s) = \arg\max_{p \in \Delta} \; p^\top \beta s - \lVert p \rVert_\alpha

    Of Blondel, Martins and Niculae (2020); in Hopfield networks by Santos and others (Hopfield-Fenchel-Young networks,
    2024). Weights are the more even the larger ``alpha``; its margin is 1 whatever that is.

    Args:
        alpha: Above 1 (the single best pattern, not reached) and at most 5, where float32 still holds the powers of
            small weights.
        beta: Inverse temperature, positive. Learned when ``learn=True``.

    Example:
        >>> scores = torch.tensor([1.0, 0.8, 0.0])
        >>> Sparsemax()(scores)
        tensor([0.6000, 0.4000, 0.0000])
        >>> Normmax(alpha=5)(scores)
        tensor([0.5221, 0.4779, 0.0000])
    """

    def __init__(self, alpha: float = 2.0, beta: float = 1.0, *, learn: bool = False) -> None:
        super().__init__(beta, learn=learn)
        self.alpha = within(alpha, "alpha", _LEAST_ALPHA, 5)

    def forward(self, scores: Tensor) -> Tensor:
        weights: Tensor = entmax.normmax_bisect(self._tempered(scores)[0], alpha=self.alpha, dim=-1)
        return weights

    def generator(self, weights: Tensor) -> Tensor:
        r"""The norm :math:`\lVert p \rVert_\alpha - 1`."""
        return (weights**self.alpha).sum(-1) ** (1 / self.alpha) - 1

    @property
    def margin(self) -> float:
        return 1.0

    def extra_repr(self) -> str:
        return f"alpha={self.alpha:g}, {super().extra_repr()}"
