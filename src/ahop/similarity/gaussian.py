"""The likelihood of a query where patterns are distributions: a mean, and how far measurements of it scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._queries import Queries
from ahop._warnings import warn
from ahop.learning.holdout import halves_by_origin
from ahop.learning.report import VERIFIED, FitReport
from ahop.similarity.base import Decomposable
from ahop.similarity.density import Density
from ahop.similarity.families import calibration, em, null
from ahop.similarity.families.candidate import Candidate, Refit
from ahop.similarity.families.shares import ruled_out
from ahop.similarity.families.training import TrainingData
from ahop.similarity.scatter import mean_and_variance

# Noise that dimensions share counts as much as so many queries, for few of them to be no surer than they may.
_SHARED_NOISE_QUERIES = 2.0
# The least noise beside what queries vary by, and beside the first guess.
_LEAST_NOISE_SHARE, _FIRST_NOISE_SHARE = 1e-8, 0.01
# Values' worth of belief that few queries are as noisy as patterns are spread.
_PRIOR_COUNT = 4.0
# Steps of expectation maximisation, at most, and the move, in standard deviations of the noise, at which they end;
# halvings of the interval that a root lies in; and what keeps a count of no queries from dividing by zero.
_STEPS, _TOLERANCE, _HALVINGS, _TINY = 200, 1e-3, 30, 1e-300
# Queries that are asked how sure it is, and the move at which steps end for the null.
_MAX_QUERIES, _ROUGH_TOLERANCE = 512, 0.02
# Fewer queries tell no bias that would be worth its own noise.
_MIN_QUERIES = 8


class Gaussian(Decomposable, Density):
    r"""The log-likelihood of a query that comes from a normal distribution, with normal noise beside it.

    .. math:: s(\xi, x) = \log N\big(x;\, \mu + b,\, \mathrm{diag}(\sigma^2 + \psi)\big)

    A pattern is its mean :math:`\mu`, followed by its standard deviations :math:`\sigma`; or the mean alone, of a
    pattern that does not scatter. Bias b and noise :math:`\psi` are what happens to queries beside that.
    :meth:`fit` learns both by expectation maximisation, with origins, without, or with some of them. Unless all are
    known, it then asks whether queries fit these patterns better than others like them
    (:mod:`ahop.similarity.families.null`).

    Args:
        dim: Number of dimensions d.

    Attributes:
        doubt: 1 where fit found nothing that is better than chance, else 0.

    Shape:
        patterns ``(..., N, d)`` or ``(..., N, 2d)``, queries ``(..., Q, d)`` to ``(..., Q, N)``.

    Example:
        >>> sharp, vague = [0.0, 0.1], [1.0, 3.0]                    # a mean and a standard deviation each
        >>> similarity = Gaussian(dim=1)
        >>> _ = similarity.log_noise.data.fill_(-2.0)
        >>> similarity(torch.tensor([sharp, vague]), torch.tensor([[0.0], [-1.0]])).argmax(1)
        tensor([0, 1])
    """

    takes_spread = True
    dim: int
    doubt: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        self.dim = dim
        self.bias = nn.Parameter(torch.zeros(dim))
        self.log_noise = nn.Parameter(torch.zeros(dim))
        self.register_buffer("doubt", torch.zeros(()))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # Files of earlier versions do not say whether anything was found.
        state_dict.setdefault(f"{prefix}doubt", self.doubt)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for own in (*self.parameters(), self.doubt):
            own.zero_()

    @property
    def noise(self) -> Tensor:
        """The standard deviation of the noise in each dimension, ``(d,)``."""
        return self.log_noise.exp()

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        mean, scatter = mean_and_variance(patterns, self.dim)
        variance = (2 * self.log_noise).exp() + scatter
        return -0.5 * ((queries - self.bias - mean).square() / variance + (2 * math.pi * variance).log())

    @torch.no_grad()
    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
        seed: int = 0,
    ) -> FitReport:
        """Learn bias and noise; see :class:`~ahop.similarity.Density`."""
        data = TrainingData(patterns.double(), queries.double(), origins, observed, log_prior)
        trace = self._learn(data, few=_few(data))
        judged = self._judged(data, seed)
        found = judged is not None and judged.beats_chance(len(patterns))
        if not found and (judged is None or judged.labels < VERIFIED):
            # Labels that are too few to tell are believed where there is nothing else.
            found = data.labelled or null.above_chance(data, Candidate("normal noise", self, data, again=_again), seed)
        self.doubt.fill_(not found)
        if not found:
            warn(null.warning(len(queries), 0 if judged is None else judged.labels))
        sure = (self._confidence(data) if null.can_tell(data) else math.nan) if found else 1 / len(patterns)
        report = FitReport("em", -trace[-1], len(trace), len(trace) < _STEPS, confidence=sure, found=found)
        return report if judged is None else judged.on(report)

    def _judged(self, data: TrainingData, seed: int) -> calibration.HeldOutLabels | None:
        """How many of the known origins are found by what was learned from the other half."""
        if data.origins is None or len(data.queries) < 2:
            return None
        one, other = halves_by_origin(data.all_origins, seed)
        refit = _again(data)
        return calibration.by_labels([(refit(one), other), (refit(other), one)], data)

    def _learn(self, data: TrainingData, tolerance: float = _TOLERANCE, few: bool = False) -> list[float]:
        """Bias and noise of some data; the bound before each step. Of ``few`` queries, no bias."""
        learning = _Learning(data.patterns, data.queries, data.origins, data.observed, data.log_prior, few, tolerance)
        trace = em.iterate(learning, _STEPS)
        self.bias.copy_(learning.bias)
        self.log_noise.copy_(learning.noise.log() / 2)
        return trace

    def _confidence(self, data: TrainingData) -> float:
        """The mean probability of the first choice, of some queries."""
        some = data.part(data.rows[:: max(1, len(data.queries) // _MAX_QUERIES)])
        sure = []
        for part in split(len(some.queries), 2 * len(some.patterns) * some.queries.element_size()):
            few = some.part(part)
            scores = self(few.patterns, few.queries, few.observed) + data.log_priors
            sure.append((scores.amax(1) - scores.logsumexp(1)).exp())
        return float(torch.cat(sure).mean())

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        r"""The log evidence under a pattern whose dimensions are drawn from what the stored ones have there, ``(Q,)``:
        :math:`\sum_i \log \operatorname*{mean}_k p(x_i \mid \xi_{k,i})`."""
        asked, parts = Queries(queries, observed), [queries.new_empty(0)]
        for part in split(len(queries), 4 * patterns.numel() * queries.element_size()):
            some = asked[part]
            terms = self.terms(patterns, some.rows[:, None]).logsumexp(1) - math.log(len(patterns))
            parts.append(some.masked(terms).sum(-1))
        return torch.cat(parts)

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Gaussian:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        new = Gaussian(self.dim).to(self.bias)
        new.bias.copy_(unit * self.bias)
        new.log_noise.copy_(self.log_noise + math.log(unit))
        new.doubt.copy_(self.doubt)
        return new

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words.

        Example:
            >>> print(Gaussian(dim=3).describe())
            Beside the scatter of its pattern, each dimension has normal noise, from 1 to 1.
            Values are shifted by 0 on average.
        """
        low, high, size = float(self.noise.min()), float(self.noise.max()), float(self.bias.abs().mean())
        noise = f"Beside the scatter of its pattern, each dimension has normal noise, from {low:.2g} to {high:.2g}."
        return f"{noise}\nValues are shifted by {size:.2g} on average."


def _few(data: TrainingData) -> bool:
    """Whether queries are too few to tell a bias."""
    return len(data.queries) < _MIN_QUERIES


def _again(data: TrainingData) -> Refit:
    """Learns from some of the queries."""

    def refit(rows: Tensor) -> Gaussian:
        model = Gaussian(data.queries.shape[1]).to(data.queries)
        model._learn(data.part(rows), _ROUGH_TOLERANCE, _few(data))
        return model

    return refit


class _Learning:
    r"""Bias and noise from queries that are shared out among the patterns they may come from.

    Given the shares, the bias is a mean that is weighed by how little patterns scatter, and the noise is where the
    likelihood has its top, drawn to that of all dimensions together. That moves as well, so the bound by itself may
    fall, and the learner rests where bias and noise do. Sums over the queries of each pattern are all that is needed.
    """

    def __init__(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None,
        observed: Tensor | None,
        log_prior: Tensor | None,
        few: bool,
        tolerance: float,
    ) -> None:
        self.tolerance = tolerance
        mean, scatter = mean_and_variance(patterns.double(), queries.shape[-1])
        self.scatter = torch.zeros_like(mean) + scatter
        # Around the patterns' mean, so that a common offset costs no digits.
        self.mean, self.queries = mean - mean.mean(0), queries.double() - mean.mean(0)
        # A query may come from a pattern that the prior rules out: a surprise, but no infinite one.
        self.log_prior = 0.0 if log_prior is None else log_prior.double().clamp_min(-1e4)
        self.seen = Queries(self.queries, observed).mask
        self.origins = origins
        count = self.seen.sum(0).clamp_min(1)
        self.biased = not few
        # To begin with, what the mean and the variance of queries have beside those of patterns.
        self.bias = (self.seen * self.queries).sum(0) / count * self.biased
        varies = (self.seen * (self.queries - self.bias)).square().sum(0) / count
        scale = float(varies.mean() + self.scatter.mean()) + float(self.mean.square().mean())
        self.least = _LEAST_NOISE_SHARE * scale or _LEAST_NOISE_SHARE
        # Few queries are as noisy as patterns are spread, as far as nothing else is known.
        spread = float(self.mean.square().mean())
        self.belief = _PRIOR_COUNT * spread if few else 0.0
        own = self.mean.square().mean(0) + self.scatter.mean(0)
        self.noise = (varies - own).clamp_min(_FIRST_NOISE_SHARE * float(varies.mean())).clamp_min(self.least)

    def expect(self) -> tuple[float, tuple[Tensor, Tensor, Tensor]]:
        """How many values each pattern has in each dimension, their sums and the sums of their squares, ``(N, d)``."""
        variance = self.scatter + self.noise
        bound, sums = 0.0, [torch.zeros_like(self.mean) for _ in range(3)]
        for part in split(len(self.queries), 3 * 8 * (len(self.mean) + self.mean.shape[1])):
            seen, rows = self.seen[part], self.queries[part] * self.seen[part]
            scores = self._scores(rows, seen, variance) + self.log_prior
            if self.origins is not None:
                scores = scores.masked_fill(ruled_out(self.origins[part], len(self.mean)), -math.inf)
            evidence = scores.logsumexp(1, keepdim=True)
            bound += float(evidence.sum())
            shares = (scores - evidence).exp()
            for total, values in zip(sums, (seen, rows, rows * rows), strict=True):
                total += shares.mT @ values
        return bound / len(self.queries), (sums[0], sums[1], sums[2])

    def _scores(self, rows: Tensor, seen: Tensor, variance: Tensor) -> Tensor:
        """By matrix products."""
        asked = (rows - self.bias) * seen
        squares = asked.square() @ (1 / variance).mT - 2 * asked @ (self.mean / variance).mT
        return -0.5 * (squares + seen @ (self.mean.square() / variance + (2 * math.pi * variance).log()).mT)

    def maximise(self, shares: tuple[Tensor, Tensor, Tensor]) -> bool:
        counts, sums, squares = shares
        bias, noise, variance = self.bias, self.noise, self.scatter + self.noise
        # Queries of patterns that scatter much say little of the bias.
        if self.biased:
            self.bias = ((sums - counts * self.mean) / variance).sum(0) / (counts / variance).sum(0).clamp_min(_TINY)
        stored = self.mean + self.bias
        gaps = (squares - 2 * sums * stored + counts * stored.square()).clamp_min(0)

        def slope(noise: Tensor) -> Tensor:
            """Of the log-likelihood in the noise, up to a factor; for each dimension by itself."""
            variance = self.scatter + noise
            return (gaps / variance.square() - counts / variance).sum(0)

        ends = self.least, float(gaps.sum()) + self.belief + self.least

        def believed(noise: Tensor) -> Tensor:
            """Of all dimensions together, with what is believed of a few values."""
            few = (self.belief / noise - _PRIOR_COUNT * (self.belief > 0)) / noise
            return (slope(noise).sum() + few).expand_as(noise)

        common = _root(believed, self.noise, *ends)

        def shrunk(noise: Tensor) -> Tensor:
            """For each dimension by itself, drawn to what is common."""
            return slope(noise) + _SHARED_NOISE_QUERIES * (common - noise) / noise.square()

        self.noise = _root(shrunk, self.noise, *ends)
        moves = torch.stack([(self.bias - bias) / self.noise.sqrt(), (self.noise / noise).log() / 2])
        return float(moves.abs().max()) < self.tolerance


def _root(slope: Callable[[Tensor], Tensor], like: Tensor, low: float, high: float) -> Tensor:
    """Where a slope is zero, by bisection of the logarithm; an end, where it is not."""
    # All dimensions at once, on their own device: scipy.optimize.brentq is for one root and numbers on a CPU.
    below, above = torch.full_like(like, low), torch.full_like(like, high)
    for _ in range(_HALVINGS):
        middle = (below * above).sqrt()
        rises = slope(middle) > 0
        below, above = torch.where(rises, middle, below), torch.where(rises, above, middle)
    return (below * above).sqrt()
