"""The three elementary corruptions: noise, masking, bias."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ahop._checks import as_tensor, require_finite
from ahop.variants.base import Variant
from ahop.variants.channel import SHARP, Channel, Density


class Noisy(Variant):
    r"""Gaussian noise, :math:`x = \xi + \sigma \odot \varepsilon`.

    Args:
        sigma: Standard deviation, one for all dimensions or one for each.
        seed: For the draws.

    Example:
        >>> Noisy(0.0).sample(torch.eye(2), 1).queries.sum()
        tensor(1.)
    """

    def __init__(self, sigma: float | Tensor, *, seed: int = 0) -> None:
        super().__init__(seed)
        values = as_tensor(sigma, "sigma")
        self.sigma = values if values.ndim else float(sigma)
        require_finite(values, "sigma")
        if bool((values < 0).any()):
            raise ValueError(f"sigma must not be negative, got {float(values.min())}")

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        sigma = _per_dimension(self.sigma, patterns.shape[1], "sigma").to(patterns)
        return patterns + sigma * torch.randn(patterns.shape, generator=generator).to(patterns)

    def pass_through(self, channel: Channel) -> Channel:
        return channel.noised(_per_dimension(self.sigma, channel.dim, "sigma").square())


class Biased(Variant):
    r"""The same shift for every query, :math:`x = \xi + b`.

    Args:
        bias: A number, for :math:`\pm` that number with one random sign a dimension, drawn once from ``seed``;
            or the shift of each dimension.
        seed: For the signs.

    Example:
        >>> Biased(torch.tensor([1.0, 0.0])).sample(torch.zeros(1, 2), 1).queries
        tensor([[1., 0.]])
    """

    def __init__(self, bias: float | Tensor, *, seed: int = 0) -> None:
        super().__init__(seed)
        values = as_tensor(bias, "bias")
        require_finite(values, "bias")
        self.bias = values if values.ndim else float(bias)

    def shift(self, dim: int) -> Tensor:
        """The shift of each dimension."""
        if isinstance(self.bias, Tensor):
            return _per_dimension(self.bias, dim, "bias")
        signs = torch.randint(2, (dim,), generator=torch.Generator().manual_seed(self.seed)) * 2.0 - 1.0
        return signs * self.bias

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        return patterns + self.shift(patterns.shape[1]).to(patterns)

    def pass_through(self, channel: Channel) -> Channel:
        return channel.shifted(self.shift(channel.dim))


class Scaled(Variant):
    r"""A gain, :math:`x = a \, \xi`: a louder microphone, another exposure.

    Args:
        gain: One number for all dimensions or one for each, not zero.
        seed: For the draws.

    Example:
        >>> Scaled(2.0).sample(torch.ones(1, 2), 1).queries
        tensor([[2., 2.]])
    """

    def __init__(self, gain: float | Tensor, *, seed: int = 0) -> None:
        super().__init__(seed)
        values = as_tensor(gain, "gain")
        require_finite(values, "gain")
        if bool((values == 0).any()):
            raise ValueError("gain must not be zero: nothing would be left of a pattern")
        self.gain = values if values.ndim else float(gain)

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        return patterns * _per_dimension(self.gain, patterns.shape[1], "gain").to(patterns)

    def pass_through(self, channel: Channel) -> Channel:
        return channel.scaled(_per_dimension(self.gain, channel.dim, "gain"))


class Masked(Variant):
    r"""Some values are lost and filled with others.

    .. math:: p(x_i \mid \xi_i) = (1 - r) \, \delta(x_i - \xi_i) + r \, g(x_i)

    Each dimension is masked by itself with probability ``rate``, or exactly ``count`` of them are. A count
    couples the dimensions: up to d = 1024 it is followed exactly, by a dynamic programme over how many are masked,
    which takes count x (d - count) steps for each pattern and query. Above that, or where several masks follow each
    other, the likelihood is an approximation: the one of independent masks of the same rate.

    Args:
        rate: Chance of a dimension to be masked, one for all or one for each.
        count: How many dimensions are masked, in place of ``rate``.
        exact: Mask exactly ``floor(rate * d)`` dimensions of every query.
        fill: ``"uniform"`` on [-1, 1], a pair ``(low, high)`` for uniform on that, a number, ``"salt-pepper"``
            for -1 or 1 at random, or a function ``fill(shape, generator)`` that draws values.
        density: The density of such a function's values, :math:`g`; needed to score, not to draw.
        seed: For the draws.

    Example:
        >>> Masked(count=2, fill=0.0).sample(torch.ones(1, 4), 1).queries.sum()
        tensor(2.)
    """

    def __init__(
        self,
        rate: float | Tensor | None = None,
        *,
        count: int | None = None,
        exact: bool = False,
        fill: str | float | tuple[float, float] | Callable[[torch.Size, torch.Generator], Tensor] = "uniform",
        density: Callable[[Tensor], Tensor] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(seed)
        if (rate is None) == (count is None):
            raise ValueError(f"one of rate and count must be given, got rate={rate} and count={count}")
        if rate is not None:
            rates = as_tensor(rate, "rate")
            if not bool(((rates >= 0) & (rates <= 1)).all()):
                raise ValueError(f"rate must be between 0 and 1, got {rate}")
            if exact and rates.ndim:
                raise ValueError("rate must be one number for an exact count, got one for each dimension")
        if count is not None and (count < 0 or count != int(count)):
            raise ValueError(f"count must be an integer, not negative, got {count}")
        if isinstance(fill, str) and fill not in ("uniform", "salt-pepper"):
            raise ValueError(
                f"fill must be 'uniform', 'salt-pepper', a number, a pair (low, high) or a function, got {fill!r}"
            )
        if isinstance(fill, (tuple, list)) and not (len(fill) == 2 and fill[0] < fill[1]):
            raise ValueError(f"fill must be a pair (low, high) with low < high, got {fill}")
        self.rate, self.count, self.exact, self.fill, self.density = rate, count, exact, fill, density

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        count = self._count(patterns.shape[1])
        chance = torch.rand(patterns.shape, generator=generator)
        if count is None:
            hit = chance < _per_dimension(self.rate, patterns.shape[1], "rate")  # type: ignore[arg-type]
        else:
            hit = torch.zeros(patterns.shape, dtype=torch.bool)
            hit.scatter_(1, chance.argsort(1)[:, :count], value=True)
        if callable(self.fill):
            values = self.fill(patterns.shape, generator).to(patterns)
        elif self.fill == "salt-pepper":
            values = (torch.randint(2, patterns.shape, generator=generator) * 2.0 - 1.0).to(patterns)
        else:
            low, high = self._interval()
            values = (low + (high - low) * torch.rand(patterns.shape, generator=generator)).to(patterns)
        return torch.where(hit.to(patterns.device), values, patterns)

    def pass_through(self, channel: Channel) -> Channel:
        count = self._count(channel.dim)
        rate = self.rate if count is None else count / channel.dim
        return channel.masked(_per_dimension(rate, channel.dim, "rate"), self._density(), count)  # type: ignore[arg-type]

    def _count(self, dim: int) -> int | None:
        """How many dimensions are masked, or None when each is masked by itself."""
        # Rounded first: 0.7 * 10 is a hair under 7.
        count = int(round(float(self.rate) * dim, 6)) if self.exact and self.count is None else self.count  # type: ignore[arg-type]
        if count is not None and count > dim:
            raise ValueError(f"count must be at most the number of dimensions, {dim}; got {count}")
        return count

    def _interval(self) -> tuple[float, float]:
        if self.fill == "uniform":
            return -1.0, 1.0
        if isinstance(self.fill, (tuple, list)):
            return float(self.fill[0]), float(self.fill[1])
        return float(self.fill), float(self.fill)  # type: ignore[arg-type]

    def _density(self) -> Density:
        if callable(self.fill):
            if self.density is None:
                raise ValueError("density must be given to score a mask that fills by a function")
            return _blurred(self.density)
        if self.fill == "salt-pepper":
            return lambda x, sigma: sum(_gaussian(x - c, sigma.clamp_min(SHARP)) for c in (-1.0, 1.0)) / 2  # type: ignore[return-value]
        low, high = self._interval()
        if low == high:
            return lambda x, sigma: _gaussian(x - low, sigma.clamp_min(SHARP))

        def uniform(x: Tensor, sigma: Tensor) -> Tensor:
            sigma = sigma.clamp_min(1e-6 * (high - low))
            below, above = torch.special.ndtr((x - low) / sigma), torch.special.ndtr((x - high) / sigma)
            return (below - above) / (high - low)

        return uniform


def _per_dimension(value: float | Tensor, dim: int, name: str) -> Tensor:
    values = torch.as_tensor(value, dtype=torch.float32)
    if values.ndim and values.shape != (dim,):
        raise ValueError(f"{name} must be one number or one per dimension, {dim}; got shape {tuple(values.shape)}")
    return values.expand(dim)


def _gaussian(x: Tensor, sigma: Tensor) -> Tensor:
    return torch.exp(-0.5 * (x / sigma).square()) / (sigma * math.sqrt(2 * math.pi))


def _blurred(density: Callable[[Tensor], Tensor]) -> Density:
    """A density with Gaussian noise added, by the trapezoid rule over six standard deviations to each side."""
    steps = torch.linspace(-6, 6, 97)
    weights = torch.softmax(-0.5 * steps.square(), 0)

    def blurred(x: Tensor, sigma: Tensor) -> Tensor:
        if not bool(sigma.any()):
            return density(x)
        total = torch.zeros_like(x)
        for step, weight in zip(steps.tolist(), weights.tolist(), strict=True):
            total = total + weight * density(x - step * sigma)
        return total

    return blurred
