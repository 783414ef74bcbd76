"""The separations that have no temperature: those of the binary networks, and the single best pattern."""

from __future__ import annotations

import torch
from torch import Tensor

from ahop._checks import integer
from ahop.separation.base import Separation


class Identity(Separation):
    r"""The scores themselves, :math:`\mathrm{sep}(s) = s`: the classical network.

    Example:
        >>> Identity()(torch.tensor([2.0, -1.0]))
        tensor([ 2., -1.])
    """

    probabilistic = False

    def forward(self, scores: Tensor) -> Tensor:
        return scores

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""Half of :math:`\sum_i s_i^2`."""
        return 0.5 * scores.square().sum(-1)


class Power(Separation):
    r"""Scores raised to the k-th power, :math:`\mathrm{sep}(s) \propto s^k`: the dense network.

    Scaled so that the absolute weights sum to one, which keeps large powers from overflowing and does not
    change the sign of the readout.

    Args:
        k: A whole number, at least 1. Odd powers keep the sign of a score.

    Example:
        >>> Power(2)(torch.tensor([1.0, 3.0]))
        tensor([0.1000, 0.9000])
    """

    probabilistic = False

    def __init__(self, k: int = 3) -> None:
        super().__init__()
        self.k = integer(k, "k", 1)

    def forward(self, scores: Tensor) -> Tensor:
        tiny = torch.finfo(scores.dtype).tiny
        powers = (scores / scores.abs().amax(-1, keepdim=True).clamp_min(tiny)) ** self.k
        return powers / powers.abs().sum(-1, keepdim=True).clamp_min(tiny)

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The sum :math:`\sum_i s_i^{k+1}`, in float64, where it overflows late."""
        return (scores.double() ** (self.k + 1)).sum(-1)

    def extra_repr(self) -> str:
        return f"k={self.k}"


class Exponential(Separation):
    r"""Exponentials of the scores, :math:`\mathrm{sep}(s) \propto e^s`, scaled to sum to one.

    Example:
        >>> Exponential()(torch.tensor([1000.0, 1000.0]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)

    def regulariser(self, weights: Tensor) -> Tensor:
        r"""The negative entropy :math:`\sum_i p_i \log p_i`."""
        return -torch.special.entr(weights).sum(-1)

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The log of :math:`\sum_i e^{s_i}`, which itself overflows early."""
        # From the best on: beside large scores, the slope of a plain one does not sum to one.
        best = scores.detach().amax(-1, keepdim=True)
        return torch.logsumexp(scores - best, dim=-1) + best.squeeze(-1)


class Argmax(Separation):
    """All the weight on the best pattern; on the first of them when several are best.

    Example:
        >>> Argmax()(torch.tensor([1.0, 3.0, 3.0]))
        tensor([0., 1., 0.])
    """

    def forward(self, scores: Tensor) -> Tensor:
        best = scores.argmax(-1, keepdim=True)
        return torch.zeros_like(scores).scatter(-1, best, 1.0)

    @property
    def margin(self) -> float:
        return 0.0

    def regulariser(self, weights: Tensor) -> Tensor:
        """None: zero everywhere."""
        return torch.zeros_like(weights[..., 0])

    def conjugate(self, scores: Tensor) -> Tensor:
        """The largest score."""
        return scores.amax(-1)
