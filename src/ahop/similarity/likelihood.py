"""A learned likelihood: what happens to a value, one dimension at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ahop._blocks import pairwise
from ahop.similarity.base import Decomposable

_LOG_ROOT_TAU = 0.5 * math.log(2 * math.pi)
# Values far outside anything seen in fitting still have some density, so that no score is infinite.
_LEAST_DENSITY = 1e-6


class Likelihood(Decomposable):
    r"""The log-likelihood of a query under a learned corruption.

    .. math:: s(\xi, x) = \sum_i \log\Big((1 - m_i) \sum_j \pi_j \, N(x_i;\, a_j \xi_i + b_i,\, (\sigma_j t_i)^2)
        + m_i \, g(x_i)\Big)

    A value keeps a trace of its pattern's, with gain :math:`a_j`, bias :math:`b_i` and noise :math:`\sigma_j t_i`;
    or it is lost, with probability :math:`m_i`, and comes from a background :math:`g` that every dimension shares.
    The background is a density that is linear between knots. :mod:`ahop.em` fits all of it.

    Args:
        dim: Number of dimensions d.
        components: How many kinds of noise, J.
        shifted: The background lives on :math:`x_i - b_i`: values were lost before the bias came.
        low, high: The range of the background's knots.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> likelihood = Likelihood(dim=3)
        >>> likelihood(torch.eye(3), torch.eye(3)).argmax(1)
        tensor([0, 1, 2])
    """

    dim: int
    knots = 48

    def __init__(
        self, dim: int, components: int = 1, *, shifted: bool = False, low: float = -3.0, high: float = 3.0
    ) -> None:
        super().__init__()
        if dim < 1 or components < 1:
            raise ValueError(f"dim and components must be at least 1, got {dim} and {components}")
        if not low < high:
            raise ValueError(f"low must be less than high, got {low} and {high}")
        self.dim, self.components, self.shifted, self.low, self.high = dim, components, shifted, low, high
        self.bias = nn.Parameter(torch.zeros(dim))
        self.gain = nn.Parameter(torch.ones(components))
        self.log_sigma = nn.Parameter(torch.linspace(-0.5, 0.5, components) if components > 1 else torch.zeros(1))
        self.log_scale = nn.Parameter(torch.zeros(dim))
        self.mix_logits = nn.Parameter(torch.zeros(components))
        self.mask_logits = nn.Parameter(torch.full((dim,), -2.0))
        self.background = nn.Parameter(torch.zeros(self.knots))

    @property
    def sigma(self) -> Tensor:
        """The standard deviation of each kind of noise in each dimension, ``(J, d)``."""
        return (self.log_sigma[:, None] + self.log_scale).exp()

    @property
    def mask_rate(self) -> Tensor:
        """The probability that a value is lost, ``(d,)``."""
        return self.mask_logits.sigmoid()

    def place(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The knot to the left of each value, and how far it is on the way to the next."""
        position = (values - self.low) * ((self.knots - 1) / (self.high - self.low))
        left = position.detach().floor().clamp(0, self.knots - 2)
        return left.long(), (position - left).clamp(0, 1)

    def lost(self, queries: Tensor) -> Tensor:
        r"""The log of :math:`m_i \, g(x_i)`, which no pattern has a part in, ``(..., d)``."""
        values = queries - self.bias if self.shifted else queries
        left, way = self.place(values)
        # Knots at the ends carry half a hat.
        hats = torch.ones_like(self.background)
        hats[0] = hats[-1] = 0.5
        weights = torch.softmax(self.background, 0) / hats
        density = torch.lerp(weights[left], weights[left + 1], way) * ((self.knots - 1) / (self.high - self.low))
        inside = (values >= self.low) & (values <= self.high)
        density = torch.where(inside, density, 0.0).clamp_min(_LEAST_DENSITY)
        return nn.functional.logsigmoid(self.mask_logits) + density.log()

    def kept(self, patterns: Tensor, queries: Tensor) -> Tensor:
        r"""The log of :math:`(1-m_i) \, \pi_j N(\cdot)` for each kind of noise, ``(J, ..., d)``."""
        queries = queries - self.bias
        level = nn.functional.logsigmoid(-self.mask_logits) - _LOG_ROOT_TAU
        level = level + torch.log_softmax(self.mix_logits, 0)[:, None] - self.log_sigma[:, None] - self.log_scale
        inverse = 1 / self.sigma
        return torch.stack(
            [
                level[j] - 0.5 * ((queries - self.gain[j] * patterns) * inverse[j]).square()
                for j in range(self.components)
            ]
        )

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        kept = self.kept(patterns, queries)
        kept = kept[0] if self.components == 1 else kept.logsumexp(0)
        return torch.logaddexp(kept, self.lost(queries))

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        def block(patterns: Tensor, queries: Tensor, lost: Tensor, observed: Tensor | None) -> Tensor:
            kept = self.kept(patterns, queries[:, None])
            kept = kept[0] if self.components == 1 else kept.logsumexp(0)
            terms = torch.logaddexp(kept, lost[:, None])
            return (terms if observed is None else terms * observed[:, None]).sum(-1)

        width = (2 + 2 * self.components) * self.dim
        return pairwise(
            block, patterns, queries, width=width, per_query=(self.lost(queries), observed), learned=self.parameters()
        )
