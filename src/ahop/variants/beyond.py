"""Corruptions beyond a density for each value: each has a likelihood of its own, and noise with it."""

from __future__ import annotations

import math
from typing import NoReturn

import torch
from torch import Tensor

from ahop._blocks import pairwise, split
from ahop._checks import integer, positive, within
from ahop.variants.base import Variant
from ahop.variants.channel import Channel
from ahop.variants.elementary import Noisy

# The density of a filled value where there should be none: finite, so that no query is impossible.
_NOTHING = math.log(1e-30)


class Beyond(Variant, abstract=True):
    """A corruption that is scored as a whole; a subclass gives ``corrupt`` and ``_scores``."""

    def pass_through(self, channel: Channel) -> NoReturn:
        raise ValueError(f"{type(self).__name__} cannot be scored inside a composition: it acts on no value by itself")


class Dropped(Beyond):
    r"""A block of neighbouring values is lost, and noise on the others: a shadow, a hand before the camera.

    .. math:: p(x \mid \xi) = \frac{1}{d - l + 1} \sum_{s = 0}^{d - l} \;
        \prod_{i \in [s, s + l)} \tfrac12 [|x_i| \le 1] \prod_{i \notin [s, s + l)} N(x_i; \xi_i, \sigma^2)

    Args:
        length: How many neighbours are lost, l; they are filled with values uniform on [-1, 1].
        noise: Standard deviation of the noise on the others.
        seed: For the draws.

    Example:
        >>> queries = Dropped(3, 1e-3).sample(torch.full((1, 6), 9.0), 1).queries
        >>> (queries < 5).sum()
        tensor(3)
    """

    def __init__(self, length: int, noise: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.length, self.noise = integer(length, "length", 1), positive(noise, "noise")

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        places = torch.arange(patterns.shape[1])
        start = torch.randint(self._starts(patterns), (len(patterns), 1), generator=generator)
        hit = ((places >= start) & (places < start + self.length)).to(patterns.device)
        fill = (2 * torch.rand(patterns.shape, generator=generator) - 1).to(patterns)
        return torch.where(hit, fill, _noisy(patterns, self.noise, generator))

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        starts = self._starts(patterns)

        def block(patterns: Tensor, queries: Tensor) -> Tensor:
            kept = _log_gaussian(queries[:, None] - patterns, self.noise)
            filled = torch.where(queries.abs() <= 1, math.log(0.5), _NOTHING)
            gained = torch.nn.functional.pad((filled[:, None] - kept).cumsum(-1), (1, 0))
            lost = gained[..., self.length :] - gained[..., :starts]
            return kept.sum(-1) + torch.logsumexp(lost, -1) - math.log(starts)

        return pairwise(block, patterns, queries, width=6 * patterns.shape[1])

    def _starts(self, patterns: Tensor) -> int:
        dim = patterns.shape[1]
        if self.length > dim:
            raise ValueError(f"length must be at most the number of dimensions, {dim}; got {self.length}")
        return dim - self.length + 1


class Growing(Beyond):
    r"""Noise that grows with the value, :math:`x_i = \xi_i + (a + b \, |\xi_i|) \, \varepsilon_i`: counts of light.

    Args:
        noise: Standard deviation at zero, a.
        slope: By how much it grows, b.
        seed: For the draws.

    Example:
        >>> Growing(1e-6, 0.5).sample(torch.tensor([[0.0, 8.0]]), 1).queries[0, 0].abs() < 1e-4
        tensor(True)
    """

    def __init__(self, noise: float, slope: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.noise, self.slope = positive(noise, "noise"), positive(slope, "slope")

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        return patterns + self._deviation(patterns) * torch.randn(patterns.shape, generator=generator).to(patterns)

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        def block(patterns: Tensor, queries: Tensor, deviation: Tensor) -> Tensor:
            return _log_gaussian(queries[:, None] - patterns, deviation).sum(-1)

        extra = (self._deviation(patterns),)
        return pairwise(block, patterns, queries, width=4 * patterns.shape[1], per_pattern=extra)

    def _deviation(self, patterns: Tensor) -> Tensor:
        return self.noise + self.slope * patterns.abs()


class Correlated(Beyond):
    r"""Noise that neighbours share, of covariance :math:`\sigma^2 \rho^{|i - j|}`: a drifting baseline, weather.

    Args:
        noise: Standard deviation of each value's noise, :math:`\sigma`.
        correlation: Of the noise of neighbours, :math:`\rho`, from 0 to below 1.
        seed: For the draws.

    Example:
        >>> ahop.variants.Correlated(2.0, 0.5).covariance(3)
        tensor([[4., 2., 1.],
                [2., 4., 2.],
                [1., 2., 4.]], dtype=torch.float64)
    """

    def __init__(self, noise: float, correlation: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.noise, self.correlation = positive(noise, "noise"), within(correlation, "correlation", 0, 0.999)

    def covariance(self, dim: int) -> Tensor:
        """Of the noise, ``(d, d)``."""
        places = torch.arange(dim, dtype=torch.float64)
        return self.noise**2 * self.correlation ** (places[:, None] - places).abs()

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        root = torch.linalg.cholesky(self.covariance(patterns.shape[1])).to(patterns)
        return patterns + torch.randn(patterns.shape, generator=generator).to(patterns) @ root.T

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        root = torch.linalg.cholesky(self.covariance(patterns.shape[1]))
        white = torch.linalg.inv(root).to(patterns).T
        return _log_distances(patterns @ white, queries @ white, 1.0) - float(root.diagonal().log().sum())

    def _scattered_scores(self, patterns: Tensor, variance: Tensor, queries: Tensor) -> Tensor:
        covariance, found = self.covariance(patterns.shape[1]).to(variance.device), []
        for part in split(len(patterns), 3 * (covariance.numel() + queries.numel()) * covariance.element_size()):
            root = torch.linalg.cholesky(covariance + torch.diag_embed(variance[part].double()))
            gaps = (queries - patterns[part, None]).double()
            white = torch.linalg.solve_triangular(root, gaps.mT, upper=False)
            level = root.diagonal(dim1=1, dim2=2).log().sum(1) + patterns.shape[1] * math.log(2 * math.pi) / 2
            found.append(-0.5 * white.square().sum(1) - level[:, None])
        return torch.cat(found).mT.to(patterns)


class Rotated(Beyond):
    r"""A rotation, :math:`x = R \xi + \sigma \varepsilon`: another camera angle, an embedding model trained again.

    Args:
        degrees: By how much each of the planes turns that a random basis falls into, drawn once from ``seed``. Turned
            by 90, a query has nothing in common with its pattern.
        noise: Standard deviation of the noise.
        seed: For the basis and the draws.

    Example:
        >>> pattern = torch.tensor([[3.0, 4.0]])
        >>> round(float((Rotated(90, 1e-6).sample(pattern, 1).queries * pattern).sum().abs()), 3)
        0.0
    """

    def __init__(self, degrees: float, noise: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.degrees, self.noise = within(degrees, "degrees", -180, 180), positive(noise, "noise")

    def rotation(self, dim: int) -> Tensor:
        """The matrix R, ``(d, d)``; with an odd number of dimensions, one axis stays where it is."""
        generator = torch.Generator().manual_seed(self.seed)
        basis = torch.linalg.qr(torch.randn(dim, dim, generator=generator, dtype=torch.float64)).Q
        turn = torch.eye(dim, dtype=torch.float64)
        angle = math.radians(self.degrees)
        for place in range(0, dim - 1, 2):
            turn[place, place] = turn[place + 1, place + 1] = math.cos(angle)
            turn[place + 1, place] = math.sin(angle)
            turn[place, place + 1] = -math.sin(angle)
        return basis @ turn @ basis.T

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        return _noisy(patterns @ self.rotation(patterns.shape[1]).T.to(patterns), self.noise, generator)

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return _log_distances(patterns @ self.rotation(patterns.shape[1]).T.to(patterns), queries, self.noise)

    def _scattered_scores(self, patterns: Tensor, variance: Tensor, queries: Tensor) -> Tensor:
        # Turned back, the noise is as it was, and every value is hit by itself.
        return Noisy(self.noise)._scattered_scores(
            patterns, variance, queries @ self.rotation(queries.shape[1]).to(queries)
        )


class Gained(Beyond):
    r"""A gain of each query's own, :math:`x = g \xi + \sigma \varepsilon` with g uniform: another exposure every time.

    .. math:: p(x \mid \xi) = \frac{1}{h - l} \int_l^h N(x; g \, \xi, \sigma^2 I) \, dg

    The integrand is a Gaussian in g around :math:`\hat g = x^\top \xi / \lVert\xi\rVert^2`, so the integral is that of$
    an interval of it.

    Args:
        low, high: Between which the gain lies, l and h.
        noise: Standard deviation of the noise.
        seed: For the draws.

    Example:
        >>> queries = Gained(2.0, 3.0, 1e-6).sample(torch.ones(1, 4), 1).queries
        >>> bool((queries > 1.99).all() and queries.std() < 1e-4)
        True
    """

    def __init__(self, low: float, high: float, noise: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"low must be less than high, got {low} and {high}")
        self.low, self.high, self.noise = float(low), float(high), positive(noise, "noise")

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        gain = self.low + (self.high - self.low) * torch.rand(len(patterns), 1, generator=generator)
        return _noisy(gain.to(patterns) * patterns, self.noise, generator)

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        # In float64: what the best gain leaves unexplained is a difference of large numbers.
        stored, asked = patterns.double(), queries.double()
        length = stored.square().sum(1).clamp_min(1e-12)
        best = asked @ stored.T / length
        left = asked.square().sum(1, keepdim=True) - best.square() * length
        width = self.noise / length.sqrt()
        inside = _log_interval((self.low - best) / width, (self.high - best) / width)
        level = width.log() - math.log(self.high - self.low) - asked.shape[1] * math.log(self.noise)
        spread = 0.5 * (asked.shape[1] - 1) * math.log(2 * math.pi)
        return (inside + level - spread - 0.5 * left / self.noise**2).to(patterns)


class Quantised(Beyond):
    r"""Values with noise, rounded to multiples of a step: few bits, a coarse scale.

    .. math:: P(x_i \mid \xi_i) = \Phi\Big(\frac{x_i + h/2 - \xi_i}{\sigma}\Big)
        - \Phi\Big(\frac{x_i - h/2 - \xi_i}{\sigma}\Big)

    Args:
        step: Between one value and the next, h.
        noise: Standard deviation of the noise before rounding.
        seed: For the draws.

    Example:
        >>> Quantised(0.5, 1e-6).sample(torch.tensor([[0.2, 0.9]]), 1).queries
        tensor([[0., 1.]])
    """

    def __init__(self, step: float, noise: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.step, self.noise = positive(step, "step"), positive(noise, "noise")

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        # Plus nothing: there is one zero, not two.
        return (_noisy(patterns, self.noise, generator) / self.step).round() * self.step + 0.0

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        scores = queries.new_zeros(len(queries), len(patterns))
        # There are few values, so each is scored once for all queries that have it.
        for value in queries.unique():
            low, high = ((value + side * self.step / 2 - patterns) / self.noise for side in (-1, 1))
            scores += (queries == value).to(patterns) @ _log_interval(low, high).T
        return scores


class Swapped(Beyond):
    r"""Neighbours that changed places, and noise: letters of a word, peaks that cross.

    From the first value to the last, each changes places with the next one with probability r, unless it just did. The
    sum over all ways in which that can happen follows from a recursion over the values that are explained,

    .. math:: f_{i+1} = (1 - r) \, N(x_i; \xi_i) \, f_i + r \, N(x_{i-1}; \xi_i) \, N(x_i; \xi_{i-1}) \, f_{i-1},

    where the last value, if it is left, stays for sure.

    Args:
        rate: The probability r.
        noise: Standard deviation of the noise.
        seed: For the draws.

    Example:
        >>> Swapped(1.0, 1e-6).sample(torch.tensor([[1.0, 2.0, 3.0]]), 1).queries.round()
        tensor([[2., 1., 3.]])
    """

    def __init__(self, rate: float, noise: float, *, seed: int = 0) -> None:
        super().__init__(seed)
        self.rate, self.noise = within(rate, "rate", 0, 1), positive(noise, "noise")

    def corrupt(self, patterns: Tensor, generator: torch.Generator) -> Tensor:
        queries = patterns.clone()
        chance = torch.rand(patterns.shape, generator=generator)
        free = torch.ones(len(patterns), dtype=torch.bool)
        for place in range(patterns.shape[1] - 1):
            swap = free & (chance[:, place] < self.rate)
            rows = swap.to(patterns.device)
            queries[rows, place : place + 2] = patterns[rows, place : place + 2].flip(1)
            free = ~swap
        return _noisy(queries, self.noise, generator)

    def _scores(self, patterns: Tensor, queries: Tensor) -> Tensor:
        dim = patterns.shape[1]
        stay, swap = (math.log(chance) if chance > 0 else -math.inf for chance in (1 - self.rate, self.rate))

        def block(patterns: Tensor, queries: Tensor) -> Tensor:
            asked = queries[:, None]
            own = _log_gaussian(asked - patterns, self.noise)
            next_one = _log_gaussian(asked[..., :-1] - patterns[:, 1:], self.noise)
            last_one = _log_gaussian(asked[..., 1:] - patterns[:, :-1], self.noise)
            crossed = next_one + last_one + swap
            before, here = own.new_full(own.shape[:-1], -torch.inf), torch.zeros_like(own[..., 0])
            for place in range(dim):
                stays = here + own[..., place] + (stay if place < dim - 1 else 0.0)
                swaps = before + crossed[..., place - 1] if place else before
                before, here = here, torch.logaddexp(stays, swaps)
            return here

        return pairwise(block, patterns, queries, width=8 * dim)


def _noisy(values: Tensor, noise: float, generator: torch.Generator) -> Tensor:
    return values + noise * torch.randn(values.shape, generator=generator).to(values)


def _log_gaussian(gaps: Tensor, deviation: float | Tensor) -> Tensor:
    level = torch.as_tensor(deviation, dtype=gaps.dtype, device=gaps.device).log() + 0.5 * math.log(2 * math.pi)
    return -0.5 * (gaps / deviation).square() - level


def _log_distances(patterns: Tensor, queries: Tensor, noise: float) -> Tensor:
    """The log density of white noise around each pattern, ``(n, N)``."""
    gaps = torch.cdist(queries, patterns, compute_mode="donot_use_mm_for_euclid_dist") / noise
    return -0.5 * gaps.square() - patterns.shape[1] * (math.log(noise) + 0.5 * math.log(2 * math.pi))


def _log_interval(low: Tensor, high: Tensor) -> Tensor:
    """The log probability that a standard Gaussian falls between them; in its lower tail, where digits are kept."""
    low, high = torch.where(low > 0, -high, low), torch.where(low > 0, -low, high)
    low, high = torch.special.log_ndtr(low), torch.special.log_ndtr(high)
    return high + torch.log(-torch.expm1(low - high))
