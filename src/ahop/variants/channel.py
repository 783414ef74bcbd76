r"""What the corruptions so far have done to a value: the density :math:`p(x_i \mid \xi_i)`, in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ahop._blocks import pairwise

# The width given to a point mass: wide against rounding, narrow against any noise worth the name.
SHARP = 1e-4
_POINT_WIDTH = 1e-30
# Up to here the count of masked dimensions is followed exactly; it costs count x (d - count) steps for each pair.
_COUNTABLE = 1024

Density = Callable[[Tensor, Tensor], Tensor]
"""Values ``(n, d)`` and standard deviations ``(d,)`` of Gaussian noise added to the fill, to densities ``(n, d)``."""


@dataclass(frozen=True)
class Filled:
    """Values lost to a mask: how likely that is, what they were filled with, and what happened since."""

    chance: Tensor
    density: Density
    gain: Tensor
    shift: Tensor
    variance: Tensor


@dataclass(frozen=True)
class Channel:
    r"""A value is either still its pattern's, shifted and noisy, or was filled in by one of the masks.

    .. math:: p(x_i \mid \xi_i) = a_i \, N(x_i; h_i \xi_i + s_i, v_i) + \sum_m c_{m,i} \, g_m(x_i)

    Attributes:
        alive: The chance :math:`a` that no mask has hit, ``(d,)``.
        gain: What a value that no mask has hit was multiplied by, :math:`h`, ``(d,)``.
        shift, variance: What was added to it, ``(d,)`` each; ``(N, d)`` where patterns have a variance of their own.
        fills: One entry a mask, for values it was the last to hit.
        count: When exactly so many dimensions are masked; None when each is masked by itself.
    """

    alive: Tensor
    gain: Tensor
    shift: Tensor
    variance: Tensor
    fills: tuple[Filled, ...] = ()
    count: int | None = None

    @classmethod
    def clean(cls, dim: int) -> Channel:
        """Before any corruption."""
        return cls(torch.ones(dim), torch.ones(dim), shift=torch.zeros(dim), variance=torch.zeros(dim))

    @property
    def dim(self) -> int:
        return len(self.alive)

    def scaled(self, by: Tensor) -> Channel:
        fills = tuple(
            replace(
                fill,
                gain=fill.gain * by,
                shift=fill.shift * by,
                variance=fill.variance * by.square(),
            )
            for fill in self.fills
        )
        return replace(
            self, gain=self.gain * by, shift=self.shift * by, variance=self.variance * by.square(), fills=fills
        )

    def shifted(self, by: Tensor) -> Channel:
        fills = tuple(replace(fill, shift=fill.shift + by) for fill in self.fills)
        return replace(self, shift=self.shift + by, fills=fills)

    def noised(self, variance: Tensor) -> Channel:
        fills = tuple(replace(fill, variance=fill.variance + variance) for fill in self.fills)
        return replace(self, variance=self.variance + variance, fills=fills)

    def masked(self, chance: Tensor, density: Density, count: int | None) -> Channel:
        """The same, with some entries masked afterwards.

        Args:
            chance: The probability with which each dimension is masked, ``(d,)``.
            density: What masked entries are drawn from.
            count: How many entries of a query are masked, if always the same number; None if that varies.
        """
        fills = tuple(replace(fill, chance=fill.chance * (1 - chance)) for fill in self.fills)
        zero, one = torch.zeros(self.dim), torch.ones(self.dim)
        # Two masks of exact counts are followed as independent ones: how far they overlap is not known.
        count = count if not self.fills and self.dim <= _COUNTABLE else None
        fills = (*fills, Filled(chance, density, one, zero, zero))
        return replace(self, alive=self.alive * (1 - chance), fills=fills, count=count)

    def log_likelihood(self, patterns: Tensor, queries: Tensor) -> Tensor:
        """The sum over dimensions, ``(n, N)``; where a mask has an exact count, given that count."""
        alive, gain, shift, variance = (t.to(patterns) for t in (self.alive, self.gain, self.shift, self.variance))
        patterns = patterns * gain
        precision = 1 / variance.clamp_min(SHARP**2)
        # log(alive) - log sqrt(2 pi v), with a floor for dimensions that are always masked.
        level = alive.clamp_min(_POINT_WIDTH).log() - 0.5 * (2 * math.pi / precision).log()
        if not self.fills and variance.ndim == 1:
            scaled = precision.sqrt()
            exact = "donot_use_mm_for_euclid_dist"
            gaps = torch.cdist((queries - shift) * scaled, patterns * scaled, compute_mode=exact)
            return level.sum() - 0.5 * gaps.square()
        filled = self._filled(queries).clamp_min(_POINT_WIDTH).log()
        queries = queries - shift
        chance = 0.0 if self.count is None else _log_binomial(self.count, self.dim)

        def block(patterns: Tensor, queries: Tensor, level: Tensor, precision: Tensor, filled: Tensor) -> Tensor:
            kept = level - 0.5 * precision * (queries[:, None] - patterns).square()
            if not self.fills:
                return kept.sum(-1)
            if self.count is None:
                return torch.logaddexp(kept, filled[:, None]).sum(-1)
            return _log_subsets(kept, filled[:, None], self.count) - chance

        width = 4 * self.dim + 3 * (self.count or 0)
        own = (level.expand_as(patterns), precision.expand_as(patterns))
        return pairwise(block, patterns, queries, width=width, per_pattern=own, per_query=(filled,))

    def _filled(self, queries: Tensor) -> Tensor:
        """The density of a query's values if a mask gave them, which no pattern has a part in."""
        total = torch.zeros_like(queries)
        for fill in self.fills:
            chance, gain, shift, variance = (t.to(queries) for t in (fill.chance, fill.gain, fill.shift, fill.variance))
            density = fill.density((queries - shift) / gain, variance.sqrt() / gain.abs()) / gain.abs()
            total = total + chance * density
        return total


def _log_subsets(kept: Tensor, filled: Tensor, count: int) -> Tensor:
    r"""The log of the sum over all subsets of ``count`` dimensions of what comes of masking just these.

    .. math:: \log \sum_{|S| = c} \prod_{i \in S} f_i \prod_{i \notin S} k_i
        = \sum_i \log(k_i + t f_i) - c \log t + \log P\Big(\sum_i B_i = c\Big), \qquad
        P(B_i = 1) = \frac{t f_i}{k_i + t f_i}

    for every :math:`t > 0`: both are the coefficient of :math:`z^c` in the generating function
    :math:`\prod_i (k_i + f_i z)`. The chance of c is found exactly: one dimension after the other, the distribution of
    how many are masked is carried along, :math:`P_j \leftarrow P_j (1-\rho) + P_{j-1} \rho`. With t = 1 it may be too
    small to be held where d is large, so t is chosen such that about c are expected.

    Args:
        kept, filled: Log densities of a value that was kept and of one that was masked, ``(..., d)``.
        count: How many are masked, c.

    Example:
        >>> _log_subsets(torch.zeros(3), torch.tensor([2.0, 3.0, 5.0]).log(), 2).exp()  # 2 * 3 + 2 * 5 + 3 * 5
        tensor(31.0000)
    """
    dim = kept.shape[-1]
    tilt = _tilt(filled - kept, count)
    filled = filled + tilt[..., None]
    before = kept.new_zeros(count + 2, *kept.shape[:-1])
    # Row j + 1 holds the chance of j masks, and row 0 stays empty.
    before[1] = 1
    after = before.clone()
    for place, chance in enumerate(torch.sigmoid(filled - kept).movedim(-1, 0).contiguous(), start=1):
        # Counts that cannot be yet, or from which the last one cannot be reached any more, are left alone.
        low, high = max(0, count - (dim - place)), min(place, count)
        torch.lerp(before[low + 1 : high + 2], before[low : high + 1], chance, out=after[low + 1 : high + 2])
        before, after = after, before
    chance = before[count + 1].clamp_min(torch.finfo(kept.dtype).tiny).log()
    return torch.logaddexp(kept, filled).sum(-1) - count * tilt + chance


def _tilt(odds: Tensor, count: int) -> Tensor:
    """What to add to log odds ``(..., d)`` for about ``count`` events to be expected, ``(...)``."""
    dim = odds.shape[-1]
    # The count-th largest is then at least even, the next one at most: within log d of that, the expected number passes
    # the count. As near to nothing as can be, since what is added to all is to be taken away again.
    level = odds.new_zeros(odds.shape[:-1])
    if count < dim:
        level = torch.maximum(level, odds.kthvalue(dim - count).values)
    if count > 0:
        level = torch.minimum(level, odds.kthvalue(dim - count + 1).values)
    low, high = -level - math.log(dim), -level + math.log(dim)
    for _ in range(7):
        middle = (low + high) / 2
        few = torch.sigmoid(odds + middle[..., None]).sum(-1) < count
        low, high = torch.where(few, middle, low), torch.where(few, high, middle)
    return (low + high) / 2


def _log_binomial(count: int, dim: int) -> float:
    """The log probability of so many masks when each dimension is masked with probability count / dim."""
    rate = count / dim
    if rate in (0, 1):
        return 0.0
    return math.log(math.comb(dim, count)) + count * math.log(rate) + (dim - count) * math.log1p(-rate)
