"""Values that are multiplied by a random gain each: log-normal noise, as of concentrations, counts and intensities.

The whole of a family in one file: its likelihood, how that is learned, and when it applies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._queries import Queries
from ahop.learning.chance import more_than_chance
from ahop.similarity.density import Density
from ahop.similarity.families import em, stand_ins
from ahop.similarity.families.family import Family, register
from ahop.similarity.families.posterior import Prior, expected
from ahop.similarity.families.shares import assign_known
from ahop.similarity.families.training import TrainingData
from ahop.similarity.squares import squared_distances

_LOG_TAU = math.log(2 * math.pi)
# Values are told from zero down to this share of their mean size.
_LEAST_SIZE_SHARE = 1e-3
# Spreads of single dimensions are drawn to their mean as if so many queries had shown it, and are no smaller than this.
_PRIOR_QUERIES, _LEAST_SPREAD = 4.0, 1e-3
# The first guess at the spread, in units of that of the patterns; steps from there; queries x patterns of each.
_FIRST_SPREAD, _STEPS, _MAX_SCORES = 0.5, 30, 2**20
# The share of values that must be told from zero, stored and asked.
_NONZERO_SHARE = 0.9
# Fewer pairs cannot show that noise grows with the value; so many are looked at; and by how many standard errors.
_MIN_PAIRS, _CHECKED_PAIRS, _MIN_STANDARD_ERRORS = 8, 256, 3.0


class Gain(Density):
    r"""The log-likelihood of a query whose values are those of its pattern times a gain each.

    .. math:: x_i = z + g_i (\xi_i - z), \qquad \log \lvert g_i \rvert \sim N(b_i, \sigma_i^2)

    with the sign of the pattern's value but for a share :math:`\varepsilon` of all values.

    Args:
        dim: Number of dimensions d.
        zero: Where values of nought lie, z.
        least: The smallest distance from there that is told from none.

    Shape:
        patterns ``(..., N, d)``, queries ``(..., Q, d)`` to ``(..., Q, N)``.

    Example:
        >>> patterns = torch.tensor([[1.0, 10.0], [10.0, 1.0]])
        >>> Gain(2)(patterns, torch.tensor([[2.0, 5.0]])).argmax().item()
        0
    """

    dim: int

    def __init__(self, dim: int, zero: float = 0.0, least: float = 1e-6) -> None:
        super().__init__()
        if dim < 1 or least <= 0:
            raise ValueError(f"dim must be at least 1 and least above 0, got {dim} and {least}")
        self.dim, self.zero, self.least = dim, zero, least
        self.bias = nn.Parameter(torch.zeros(dim))
        self.log_sigma = nn.Parameter(torch.full((dim,), -1.0))
        self.sign_logit = nn.Parameter(torch.tensor(4.0))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        self.bias.zero_()
        self.log_sigma.fill_(-1.0)
        self.sign_logit.fill_(4.0)

    def size(self, values: Tensor) -> Tensor:
        """The logarithm of how far each value lies from zero."""
        return (values - self.zero).abs().clamp_min(self.least).log()

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        sigma, sizes = self.log_sigma.exp(), self.size(queries)
        seen = Queries(queries, observed).mask
        squares = squared_distances(self.size(patterns) / sigma, (sizes - self.bias) / sigma, observed)
        # Signs agree or not: half the sum and half the difference of both logarithms.
        signs = (seen * (queries - self.zero).sign()) @ (patterns - self.zero).sign().mT
        return (self.sign_logit * signs - squares) / 2 + (seen * self._level(sizes)).sum(-1, keepdim=True)

    def _level(self, sizes: Tensor) -> Tensor:
        """What no pattern has a part in, for each value."""
        signs = nn.functional.logsigmoid(self.sign_logit) + nn.functional.logsigmoid(-self.sign_logit)
        return signs / 2 - self.log_sigma - _LOG_TAU / 2 - sizes

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """Under a pattern whose sizes are as widely spread as the stored ones', and whose signs are as common."""
        stored, sizes = self.size(patterns), self.size(queries)
        variance = stored.var(0, unbiased=False) + (2 * self.log_sigma).exp()
        above = ((patterns > self.zero).to(queries).mean(0)).clamp(1e-3, 1 - 1e-3)
        signs = torch.where(queries > self.zero, above.log(), (-above).log1p())
        gaps = (sizes - self.bias - stored.mean(0)).square() / variance
        terms = signs - (gaps + variance.log() + _LOG_TAU) / 2 - sizes
        return Queries(queries, observed).masked(terms).sum(-1)

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """The gains of queries, on other patterns."""
        gains = (self.size(queries) - self.size(own)).exp() * ((queries - self.zero) * (own - self.zero)).sign()
        return self.zero + gains * (others - self.zero)

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The size whose logarithm is the mean of what it may have been, with the sign of the query."""
        prior, precision = Prior.of(self.size(patterns.double())), (-2 * self.log_sigma).double().exp()
        precision = Queries(queries, observed).masked(precision)
        gaps = self.size(queries.double()) - self.bias - prior.mean
        sizes = expected(prior.mean, prior.covariance, prior.covariance, precision, gaps).exp()
        return self.zero + sizes * (queries - self.zero).sign()

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Gain:
        new = Gain(self.dim, unit * self.zero + shift, unit * self.least).to(self.bias)
        new.load_state_dict(self.state_dict())
        return new

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        factors, means = self.log_sigma.exp().exp(), self.bias.exp()
        lines = [
            f"Every value is multiplied by a gain, {float(means.mean()):.2g} on average, that varies by a factor of "
            f"{float(factors.mean()):.2g}, from {float(factors.min()):.2g} to {float(factors.max()):.2g} by dimension."
        ]
        flipped = 100 * float(torch.sigmoid(-self.sign_logit))
        return "\n".join(lines + ([f"Of 100 values, {flipped:.0f} change their sign."] if flipped >= 0.5 else []))

    def curve_unit(self, values: str) -> str:
        return "factor"

    @torch.no_grad()
    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        return [("mean gain", self.bias.exp(), None), ("factor that gains vary by", self.log_sigma.exp().exp(), None)]


@dataclass
class _Learner:
    """Gains, learned in place from queries whose origins are shared out among all patterns, but for those known."""

    model: Gain
    data: TrainingData

    def expect(self) -> tuple[float, Tensor]:
        """The log evidence, and the share of each pattern in each query ``(n, N)``."""
        scores = self.model(self.data.patterns, self.data.queries) + self.data.log_priors
        shares = torch.softmax(scores, 1)
        assign_known(shares, self.data.all_origins)
        return float(scores.logsumexp(1).mean()), shares

    def maximise(self, shares: Tensor) -> None:
        model, data = self.model, self.data
        stored, asked = model.size(data.patterns), model.size(data.queries)
        expected, weights = shares @ stored, shares.sum(0)
        model.bias.copy_((asked - expected).mean(0))
        asked = asked - model.bias
        squares = (asked.square() - 2 * asked * expected).sum(0) + weights @ stored.square()
        mean = squares.mean() / len(asked)
        variance = (squares + _PRIOR_QUERIES * mean) / (len(asked) + _PRIOR_QUERIES)
        model.log_sigma.copy_(variance.clamp_min(_LEAST_SPREAD**2).log() / 2)
        signs = (data.queries - model.zero).sign() * (shares @ (data.patterns - model.zero).sign())
        # As if one value of each kind had been seen beside them.
        agree = ((1 + signs).sum() / 2 + 1) / (signs.numel() + 2)
        model.sign_logit.copy_(agree.logit())


@register
class RandomGain(Family):
    """A log-normal gain of each value."""

    name = "a random gain"
    models = (Gain,)
    complexity = 30

    def applies(self, data: TrainingData, seed: int) -> bool:
        """Whether noise is larger where values are, so that ratios to the pattern explain queries better than gaps."""
        if not data.same_width or len(data.queries) < _MIN_PAIRS:
            return False
        some = data.part(data.rows[:: max(1, len(data.queries) // _CHECKED_PAIRS)])
        empty = self._empty(data)
        spread = data.patterns.std(0, unbiased=False) + 1e-6
        stored, parts = data.patterns / spread, split(len(some.queries), len(data.patterns) * spread.element_size())
        nearest = torch.cat([torch.cdist(some.queries[part] / spread, stored).argmin(1) for part in parts])
        stored = some.patterns[torch.where(some.all_origins < 0, nearest, some.all_origins)]
        if float((stored - data.zero).abs().gt(empty.least).double().mean()) < _NONZERO_SHARE:
            return False
        # No gain makes a zero of what is none: rounding does, and loss.
        if float((some.queries - data.zero).abs().gt(empty.least).double().mean()) < _NONZERO_SHARE:
            return False
        gaps, ratios = some.queries - stored, empty.size(some.queries) - empty.size(stored)
        gain = _log_normal(ratios) - empty.size(some.queries).sum(1) - _log_normal(gaps)
        return more_than_chance(gain, _MIN_STANDARD_ERRORS)

    def fit(self, data: TrainingData, seed: int) -> Gain:
        """In closed form from pairs, else by expectation maximisation on as many queries as a table holds."""
        model, most = self._empty(data), max(64, _MAX_SCORES // len(data.patterns))
        some = data if len(data.queries) <= most else data.part(data.rows[:most])
        stored = model.size(data.patterns)
        model.bias.copy_(model.size(data.queries).mean(0) - stored.mean(0))
        model.log_sigma.copy_((_FIRST_SPREAD * stored.std(0, unbiased=False)).clamp_min(_LEAST_SPREAD).log())
        for few, steps in stand_ins.rounds(some, model, 1 if data.labelled else _STEPS):
            em.iterate(_Learner(model, few), steps, tolerance=1e-3)
        return model

    def _empty(self, data: TrainingData) -> Gain:
        typical = float((data.patterns - data.zero).abs().mean())
        return Gain(data.patterns.shape[1], data.zero, _LEAST_SIZE_SHARE * typical + 1e-12).to(data.patterns)


def _log_normal(rows: Tensor) -> Tensor:
    """The log density of each row under the normal distribution of its columns, ``(n,)``."""
    variance = rows.var(0) + 1e-12
    return -(((rows - rows.mean(0)).square() / variance + variance.log() + _LOG_TAU) / 2).sum(1)
