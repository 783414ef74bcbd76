"""Separation: from similarity scores to weights over the stored patterns."""

from __future__ import annotations

import math
from abc import abstractmethod

import entmax
import torch
from torch import Tensor, nn

from ahop._checks import integer, within
from ahop._component import Component


class Separation(Component):
    """Turns scores ``(..., N)`` into weights ``(..., N)`` that favour the best patterns.

    ``probabilistic`` tells whether the weights are a distribution over the patterns; only then does a prior
    over them have a meaning. ``in_a_bowl`` tells whether an energy of it needs the similarity's bowl to fall.
    """

    probabilistic = True
    in_a_bowl = False

    @abstractmethod
    def forward(self, scores: Tensor) -> Tensor: ...

    @property
    def inverse_temperature(self) -> Tensor | float:
        """What the scores are multiplied by; a log prior is divided by it to count once."""
        return 1.0

    def conjugate(self, scores: Tensor) -> Tensor:
        """The convex function of the scores whose gradient the weights follow, ``(...)``; energies are made of it."""
        raise ValueError(f"{self.name} separation has no convex conjugate, so no energy is made of it")

    def probabilities(self, scores: Tensor) -> Tensor:
        """The weights as a distribution: negative ones, if any, cut off."""
        weights = self(scores)
        if self.probabilistic:
            return weights
        weights = weights.clamp_min(0)
        return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)


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

    def conjugate(self, scores: Tensor) -> Tensor:
        """The largest score."""
        return scores.amax(-1)


# Beyond these, a temperature and its inverse leave too little room in float32 for the scores.
COLDEST, HOTTEST = 1e20, 1e-20


class _Tempered(Separation, abstract=True):
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


class Softmax(_Tempered):
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

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The convex conjugate :math:`\tfrac1\beta \mathrm{lse}(\beta s)` that the energy is made of."""
        gaps, best = self._tempered(scores)
        return torch.logsumexp(gaps, dim=-1) / self.beta + best


class Sparsemax(_Tempered):
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

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The convex conjugate :math:`\tfrac1\beta \Psi^\star(\beta s)`, :math:`\Psi(p) = (p^\top p - 1)/2`."""
        weights = self(scores)
        return _mean(weights, scores) + (1 - weights.square().sum(-1)) / (2 * self.beta)


class Entmax(_Tempered):
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

    # Closer to 1 than this, the powers in entmax lose all their digits.
    _LEAST = 1.001

    def __init__(
        self, alpha: float = 1.5, beta: float = 1.0, *, learn: bool = False, learn_alpha: bool = False
    ) -> None:
        super().__init__(beta, learn=learn)
        alpha = within(alpha, "alpha", self._LEAST, 2)
        self.learn_alpha = learn_alpha
        self.alpha_logit = nn.Parameter(torch.empty(())) if learn_alpha else None
        self._alpha = alpha
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.alpha_logit is not None:
            # A gradient is zero at the ends of the interval, so a learned alpha starts a little inside.
            share = min(max((self._alpha - self._LEAST) / (2 - self._LEAST), 1e-4), 1 - 1e-4)
            self.alpha_logit.fill_(math.log(share / (1 - share)))

    @property
    def alpha(self) -> Tensor | float:
        if self.alpha_logit is None:
            return self._alpha
        return self._LEAST + (2 - self._LEAST) * self.alpha_logit.sigmoid()

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

    def conjugate(self, scores: Tensor) -> Tensor:
        r"""The convex conjugate :math:`\tfrac1\beta \Psi^\star(\beta s)` with :math:`\Psi = -H_\alpha`."""
        weights, alpha = self(scores), self.alpha
        entropy = (weights - weights**alpha).sum(-1) / (alpha * (alpha - 1))
        return _mean(weights, scores) + entropy / self.beta

    def extra_repr(self) -> str:
        alpha = self._alpha if self.log_beta.is_meta else torch.as_tensor(self.alpha).item()
        return f"alpha={alpha:g}, {super().extra_repr()}"


def _mean(weights: Tensor, scores: Tensor) -> Tensor:
    """The mean score, counted from the best on: large scores would leave nothing of the weights' slope."""
    best = scores.detach().amax(-1, keepdim=True)
    return (weights * (scores - best)).sum(-1) + best.squeeze(-1)
