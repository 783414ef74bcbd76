"""An inverse temperature, and what a regulariser of the weights makes of it; softmax."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from ahop._checks import within
from ahop.separation.base import Separation

# Beyond these, a temperature and its inverse leave too little room in float32 for the scores.
COLDEST, HOTTEST = 1e20, 1e-20


class Tempered(Separation, abstract=True):
    """A separation with an inverse temperature ``beta``."""

    in_a_bowl = True

    def __init__(self, beta: float = 1.0, *, learn: bool = False) -> None:
        super().__init__()
        self.learn, self._start = learn, within(beta, "beta", HOTTEST, COLDEST)
        # Stored as a log so that a learned beta cannot cross zero.
        self.log_beta = nn.Parameter(torch.tensor(math.log(self._start)), requires_grad=learn)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.log_beta.fill_(math.log(self._start))

    @property
    def beta(self) -> Tensor:
        return self.log_beta.exp()

    @property
    def inverse_temperature(self) -> Tensor:
        return self.beta

    def _tempered(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        r"""How far each score is from the best, :math:`\beta (s - \max s)`, and the best itself, ``(...)``.

        Weights depend on nothing else, and however large scores and beta are, the best lies at zero.
        """
        best = scores.detach().amax(-1, keepdim=True)
        return self.beta * (scores - best), best.squeeze(-1)

    def extra_repr(self) -> str:
        return f"beta={self._start if self.log_beta.is_meta else self.beta.item():g}"


class Regularised(Tempered, abstract=True):
    r"""Weights that maximise similarity minus a convex regulariser :math:`\Omega = \Psi / \beta` of themselves.

    .. math:: \mathrm{sep}(s) = \arg\max_p \; p^\top s - \Omega(p) = \nabla \Omega^\star(s)

    :math:`\Psi` is zero where the weights are exact, all of them 0 or 1. A subclass gives it as :meth:`generator`.
    """

    @abstractmethod
    def generator(self, weights: Tensor) -> Tensor:
        r"""The convex :math:`\Psi(p)` of weights ``(..., N)`` at a temperature of 1, ``(...)``."""

    def regulariser(self, weights: Tensor) -> Tensor:
        r"""The convex :math:`\Omega(p) = \Psi(p) / \beta`."""
        return self.generator(weights) / self.beta

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The convex conjugate :math:`\Omega^\star(s) = \tfrac1\beta \Psi^\star(\beta s)`."""
        weights = self(scores)
        # From the last that belongs to the best on: large scores would leave nothing of the weights' slope.
        last = scores.detach().topk(self.total, -1).values[..., -1:]
        return (weights * (scores - last)).sum(-1) + self.total * last.squeeze(-1) - self.regulariser(weights)


class Softmax(Regularised):
    r"""Weights that maximise similarity plus entropy.

    .. math:: \mathrm{sep}(s) = \arg\max_{p \in \Delta} \; p^\top s + \tfrac{1}{\beta} H(p) = \mathrm{softmax}(\beta s)

    Large ``beta`` trusts the best pattern alone, small ``beta`` blends many.

    Args:
        beta: Inverse temperature, positive. Learned when ``learn=True``.

    Example:
        >>> Softmax(beta=2.0)(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, scores: Tensor) -> Tensor:
        return torch.softmax(self._tempered(scores)[0], dim=-1)

    def generator(self, weights: Tensor) -> Tensor:
        r"""The negative entropy :math:`\sum_i p_i \log p_i`."""
        return -torch.special.entr(weights).sum(-1)

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The convex conjugate :math:`\tfrac1\beta \mathrm{lse}(\beta s)` that the energy is made of."""
        gaps, best = self._tempered(scores)
        return torch.logsumexp(gaps, dim=-1) / self.beta + best
