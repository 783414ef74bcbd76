r"""The two steps of expectation maximisation where every dimension is hit by itself.

Each query has a few candidate patterns: its origin when that is known, the likeliest ones when it is not. What is
maximised is the log evidence of the candidates,

.. math:: \sum_x \log \sum_{k \in C(x)} \sum_r \rho_r \, p_r(x \mid \xi_k),

over regimes r, each a :class:`~ahop.similarity.Likelihood`. The E-step shares every query out among its candidates and
regimes, and every value among the kinds of noise and the background; the M-step solves for each parameter given those
shares. With the evidence goes the log of a weak prior: that dimensions are alike to some degree (:class:`Shrinkage`)
and that the background is flat, one value's worth of it. Patterns and queries come in units of the patterns' spread
(:class:`ahop._precision.Units`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ahop._queries import Queries
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.scatter import mean_and_variance

_TINY = 1e-12
# How much likelier kept than lost a value may be, as a logarithm: a float32 holds its exponential.
_MAX_LOG_ODDS = 80.0


@dataclass
class Shrinkage:
    """How many samples' worth of belief that all dimensions are alike; infinite: they are taken to be.

    ``rate`` is the mask rate that single dimensions are drawn to.
    """

    mask: float = math.inf
    scale: float = math.inf
    rate: float = 0.5

    def log_prior(self, likelihood: Likelihood) -> Tensor:
        """The log density of this belief, up to a constant; what each dimension's solution maximises with it."""
        total = torch.log_softmax(likelihood.background, 0).mean()
        if math.isfinite(self.mask):
            lost, kept = (
                nn.functional.logsigmoid(likelihood.mask_logits),
                nn.functional.logsigmoid(-likelihood.mask_logits),
            )
            total = total + self.mask * (self.rate * lost + (1 - self.rate) * kept).sum()
        if math.isfinite(self.scale):
            total = total - self.scale * (likelihood.log_scale + (-2 * likelihood.log_scale).exp() / 2).sum()
        return total


@dataclass
class Evidence:
    """Queries ``(n, d)`` and their candidate patterns ``(m, d)``, with the query that each is for and its log prior;
    ``(m, 2d)`` where they scatter.

    ``owner`` ``(m,)`` is the index of that query, ``log_prior`` ``(m,)``. ``observed`` ``(n, d)`` tells which values
    were seen; the others teach nothing. None: all were.
    """

    queries: Tensor
    candidates: Tensor
    owner: Tensor
    log_prior: Tensor
    observed: Tensor | None = None

    @classmethod
    def labelled(cls, patterns: Tensor, queries: Tensor, origins: Tensor, observed: Tensor | None) -> Evidence:
        """The evidence of queries whose origins are known: one candidate each.

        Args:
            patterns: ``(N, d)``.
            queries: ``(n, d)``.
            origins: The pattern of each query, ``(n,)``.
            observed: Which entries of the queries count, ``(n, d)``; None is all.
        """
        owner = torch.arange(len(queries), device=queries.device)
        return cls(queries, patterns[origins], owner, queries.new_zeros(len(queries)), observed)

    def part(self, rows: Tensor) -> Evidence:
        """The same of some queries alone."""
        place = self.owner.new_full((len(self.queries),), -1)
        place[rows] = torch.arange(len(rows), device=rows.device)
        kept = (place[self.owner] >= 0).nonzero().squeeze(1)
        some = Queries(self.queries, self.observed)[rows]
        owner, log_prior = place[self.owner[kept]], self.log_prior[kept]
        return Evidence(some.rows, self.candidates[kept], owner, log_prior, some.observed)

    def by_query(self, values: Tensor) -> Tensor:
        """Sums over the candidates of each query: ``(m, ...)`` to ``(n, ...)``."""
        return values.new_zeros(len(self.queries), *values.shape[1:]).index_add_(0, self.owner, values)

    def explained(self, likelihood: Likelihood) -> Explained:
        """Every value of every query, as each candidate would explain it."""
        lost = likelihood.lost(self.queries)
        if (compiled := self._compiled(likelihood, lost)) is not None:
            return compiled
        lost = lost[self.owner]
        odds = (likelihood.kept(self.candidates, self.queries[self.owner]) - lost).clamp_max_(_MAX_LOG_ODDS).exp_()
        whole = odds.sum(0).add_(1)
        total = lost + whole.log()
        if self.observed is not None:
            total = total * self.observed[self.owner]
        return Explained(odds, whole, total)

    def _compiled(self, likelihood: Likelihood, lost: Tensor) -> Explained | None:
        if not self.on_processor:
            return None
        # Numba takes a while to import.
        from ahop.kernels import mixture

        found = mixture.explain(
            *self.counted_from(likelihood), lost, likelihood.gain, likelihood.sigma, likelihood.level
        )
        if found is None or self.observed is None:
            return None if found is None else Explained(*found)
        odds, whole, total = found
        return Explained(odds, whole, total * self.observed[self.owner])

    @property
    def on_processor(self) -> bool:
        """Whether :mod:`ahop.kernels.mixture` can do the work."""
        return self.queries.dtype == torch.float32 and self.queries.device.type == "cpu" and not self.scattered

    @property
    def scattered(self) -> bool:
        """Whether candidates are means followed by standard deviations."""
        return self.candidates.shape[1] > self.queries.shape[1]

    def counted_from(self, likelihood: Likelihood) -> tuple[Tensor, Tensor, Tensor]:
        """Candidates counted from the centre of a likelihood, whose they are, and queries counted from its bias too."""
        return self.candidates - likelihood.centre, self.owner, self.queries - likelihood.centre - likelihood.bias

    def weigh(self, shares: Tensor) -> Tensor:
        """How much each value counts when its query is shared out so, ``(m, d)``, or ``(m, 1)`` if all alike."""
        weight = shares[:, None]
        return weight if self.observed is None else weight * self.observed[self.owner]


class Explained(NamedTuple):
    """How likely single values are: by each kind of noise ``(J, m, d)`` as a multiple of lost, in all as such a
    multiple ``(m, d)``, and the logarithm of that as a density, nought where nothing was observed."""

    odds: Tensor
    whole: Tensor
    total: Tensor


@torch.no_grad()
def expect(evidence: Evidence, regimes: list[Likelihood], log_rho: Tensor) -> tuple[Tensor, Tensor]:
    """The E-step: share each query out among its candidates and the regimes.

    Args:
        evidence: The queries and their candidates.
        regimes: The R likelihoods.
        log_rho: The log share of each regime, ``(R,)``.

    Returns:
        The log evidence of each query ``(n,)``, and shares ``(m, R)`` that sum to one for each query.
    """
    return _share(evidence, [evidence.explained(regime) for regime in regimes], log_rho)


def _share(evidence: Evidence, explained: list[Explained], log_rho: Tensor) -> tuple[Tensor, Tensor]:
    joint = torch.stack([terms.total.sum(-1) for terms in explained], -1) + evidence.log_prior[:, None] + log_rho
    best = joint.new_full((len(evidence.queries),), -torch.inf)
    best = best.scatter_reduce(0, evidence.owner, joint.amax(1), "amax")
    shares = (joint - best[evidence.owner, None]).exp()
    sums = evidence.by_query(shares.sum(1))
    return best + sums.log(), shares / sums[evidence.owner, None]


@dataclass
class Learner:
    """Regimes ``(R,)`` of single dimensions and the log share of each, learned in place from the evidence.

    ``floor`` is the least noise.
    """

    evidence: Evidence
    regimes: list[Likelihood]
    log_rho: Tensor
    shrinkage: Shrinkage
    floor: float

    def expect(self) -> tuple[float, tuple[list[Explained], Tensor]]:
        explained = [self.evidence.explained(regime) for regime in self.regimes]
        total, shares = _share(self.evidence, explained, self.log_rho)
        belief = sum(float(self.shrinkage.log_prior(regime)) for regime in self.regimes)
        return float(total.mean()) + belief / len(total), (explained, shares)

    def maximise(self, shares: tuple[list[Explained], Tensor]) -> None:
        explained, by_regime = shares
        for regime, terms, share in zip(self.regimes, explained, by_regime.unbind(1), strict=True):
            maximise(self.evidence, regime, share, self.shrinkage, self.floor, terms)
        weights = by_regime.sum(0).clamp_min(_TINY)
        self.log_rho.copy_((weights / weights.sum()).log())


@torch.no_grad()
def maximise(
    evidence: Evidence,
    likelihood: Likelihood,
    shares: Tensor,
    shrinkage: Shrinkage,
    floor: float,
    explained: Explained | None = None,
) -> None:
    """The M-step: solve for every parameter of one regime in turn, in place.

    ``explained`` saves the work of finding out again.

    Args:
        evidence: The queries and their candidates.
        likelihood: The regime.
        shares: How much each candidate counts, ``(m,)``.
        shrinkage: How strongly dimensions are drawn to what they share.
        floor: The smallest noise allowed.
        explained: What ``evidence.explained(likelihood)`` gave, if that is known already.
    """
    explained = evidence.explained(likelihood) if explained is None else explained
    moments, lost, amount = _gathered(evidence, likelihood, shares, explained)
    masked = lost.sum(0)
    if amount.sum() <= _TINY:
        return
    prior = shrinkage.mask
    if math.isinf(prior):
        rates = (masked.sum() / amount.sum()).expand_as(masked)
    else:
        rates = (masked + prior * shrinkage.rate) / (amount + prior)
    rates = rates.clamp(1e-6, 1 - 1e-6)
    likelihood.mask_logits.copy_(rates.logit())

    sizes = torch.stack([found.amount.sum() for found in moments]).clamp_min(_TINY)
    likelihood.mix_logits.copy_((sizes / sizes.sum()).log())
    _solve_background(likelihood, evidence.queries, lost)
    _solve_noise(likelihood, moments, shrinkage, floor)
    _solve_bias(evidence, likelihood, moments, shares)


def _gathered(
    evidence: Evidence, likelihood: Likelihood, shares: Tensor, explained: Explained
) -> tuple[list[_Moments], Tensor, Tensor]:
    """What each kind of noise answers for, how much of each query's values is lost ``(n, d)``, and all of it."""
    odds, whole, _ = explained
    if evidence.on_processor:
        from ahop.kernels import mixture

        candidates, owner, queries = evidence.counted_from(likelihood)
        sums, lost, amount = mixture.gather(
            candidates, owner, queries, likelihood.gain, odds, whole, shares, evidence.observed
        )
        return [_Moments(*kind) for kind in sums], lost, amount
    weight = evidence.weigh(shares)
    by_background = weight / whole
    moments = [
        _Moments.of(amounts, one)
        for amounts, one in zip(odds * by_background, _kept(evidence, likelihood), strict=True)
    ]
    return moments, evidence.by_query(by_background), weight.sum(0).expand_as(likelihood.bias)


class _Kept(NamedTuple):
    """What one kind of noise takes candidates to have been when they were measured, what gap that leaves to the query,
    both ``(m, d)``, the variance of the former, and the gain."""

    stored: Tensor
    gaps: Tensor
    variance: Tensor | float
    gain: Tensor

    @property
    def squares(self) -> Tensor:
        """Of the gaps, on average."""
        return self.gaps.square() + self.gain**2 * self.variance


def _kept(evidence: Evidence, likelihood: Likelihood) -> Iterator[_Kept]:
    r"""For each kind of noise. Of a pattern that scatters, what was measured is told by the query as well:

    .. math:: \mathbb{E}[y \mid x] = \xi + \frac{a s^2}{a^2 s^2 + \sigma^2} (x - a \xi - b), \qquad
        \mathrm{Var}[y \mid x] = \frac{s^2 \sigma^2}{a^2 s^2 + \sigma^2}
    """
    mean, scatter = mean_and_variance(evidence.candidates, likelihood.dim)
    stored = mean - likelihood.centre
    queries = (evidence.queries - likelihood.centre - likelihood.bias)[evidence.owner]
    for gain, noise in zip(likelihood.gain, likelihood.sigma.square(), strict=True):
        gaps = queries - gain * stored
        total = gain**2 * scatter + noise
        yield _Kept(stored + gain * scatter / total * gaps, noise / total * gaps, scatter * noise / total, gain)


class _Moments(NamedTuple):
    """Sums over queries and candidates, ``(d,)`` each: of the amounts that one kind of noise answers for, and of
    what it left as gap e, times powers of e and of the candidate c."""

    amount: Tensor
    e: Tensor
    ee: Tensor
    c: Tensor
    cc: Tensor
    ec: Tensor

    @classmethod
    def of(cls, amounts: Tensor, kept: _Kept) -> _Moments:
        e, c, left = amounts * kept.gaps, amounts * kept.stored, amounts * kept.variance
        squares = (amounts * kept.squares, c * kept.stored + left, e * kept.stored - kept.gain * left)
        return cls(*(values.sum(0) for values in (amounts, e, squares[0], c, *squares[1:])))

    def with_gain(self, change: Tensor) -> _Moments:
        """The same after the gain has changed by so much."""
        e, ec = self.e - change * self.c, self.ec - change * self.cc
        ee = self.ee - 2 * change * self.ec + change**2 * self.cc
        return self._replace(e=e, ee=ee.clamp_min(0), ec=ec)


def _solve_background(likelihood: Likelihood, queries: Tensor, by_background: Tensor) -> None:
    values = (queries - likelihood.bias if likelihood.shifted else queries).flatten()
    left, way = likelihood.place(values)
    inside = (values >= likelihood.low) & (values <= likelihood.high)
    amounts = torch.where(inside, by_background.flatten(), 0.0)
    weights = torch.softmax(likelihood.background, 0)
    hats = torch.ones_like(weights)
    hats[0] = hats[-1] = 0.5
    heights = weights / hats
    # A value between two knots belongs to the hats of both, in proportion to their heights there.
    data, there = heights[left] * (1 - way), heights[left + 1] * way
    share = amounts / (data + there).clamp_min(_TINY)
    counts = torch.zeros_like(weights)
    counts.index_add_(0, left, share * data)
    counts.index_add_(0, left + 1, share * there)
    # One value's worth of a flat density keeps unseen places possible.
    counts = counts + 1.0 / len(counts)
    likelihood.background.copy_((counts / counts.sum()).log())


def _solve_noise(likelihood: Likelihood, moments: list[_Moments], shrinkage: Shrinkage, floor: float) -> None:
    """Gain and width of each kind of noise in turn, then how much wider or narrower each dimension is."""
    precision = (-2 * likelihood.log_scale).exp()
    squares = torch.zeros_like(likelihood.bias)
    for kind, found in enumerate(moments):
        size = found.amount.sum()
        if size <= 1e-6:
            continue
        power = (precision * found.cc).sum()
        if power > _TINY:
            change = (precision * found.ec).sum() / power
            likelihood.gain[kind] += change
            found = moments[kind] = found.with_gain(change)
        variance = (found.ee * precision).sum() / size
        likelihood.log_sigma[kind] = 0.5 * variance.clamp_min(floor**2).log()
        squares += found.ee * (-2 * likelihood.log_sigma[kind]).exp()
    if math.isfinite(shrinkage.scale):
        sizes = torch.stack([found.amount for found in moments]).sum(0)
        scale = (squares + shrinkage.scale) / (sizes + shrinkage.scale)
        likelihood.log_scale.copy_(0.5 * scale.clamp(1e-4, 1e4).log())


def _solve_bias(evidence: Evidence, likelihood: Likelihood, moments: list[_Moments], shares: Tensor) -> None:
    precision = (-2 * likelihood.log_sigma).exp()[:, None]
    known = (precision * torch.stack([found.amount for found in moments])).sum(0)
    move = (precision * torch.stack([found.e for found in moments])).sum(0) / known.clamp_min(_TINY)
    old = likelihood.bias.clone()
    new = torch.where(known > _TINY, old + move, old)
    if not likelihood.shifted:
        likelihood.bias.copy_(new)
        return
    # The background moves with the bias, which the formula does not see: keep the move only where it helps.
    before = shares @ evidence.explained(likelihood).total
    likelihood.bias.copy_(new)
    after = shares @ evidence.explained(likelihood).total
    likelihood.bias.copy_(torch.where(after >= before, new, old))


@torch.no_grad()
def estimate_shrinkage(evidence: Evidence, regimes: list[Likelihood], log_rho: Tensor) -> Shrinkage:
    """Empirical Bayes: how much more dimensions differ than chance alone would make them.

    Args:
        evidence: The queries and their candidates.
        regimes: The R likelihoods.
        log_rho: The log share of each regime, ``(R,)``.
    """
    _, shares = expect(evidence, regimes, log_rho)
    common = int(shares.sum(0).argmax())
    likelihood, weight = regimes[common], evidence.weigh(shares[:, common])
    odds, whole, _ = evidence.explained(likelihood)
    by_background = weight / whole
    by_kind = odds * by_background

    masked = by_background.sum(0)
    amount = weight.sum(0).expand_as(masked)
    rates = masked / amount.clamp_min(_TINY)
    # The shares are soft: less is known of a rate than if masks were seen, by this factor.
    softness = (by_background * (1 - 1 / whole)).sum() / (amount * rates * (1 - rates)).sum().clamp_min(_TINY)
    effective = amount * (1 - softness.clamp(0, 0.95))
    chance = (rates * (1 - rates) / effective.clamp_min(1.0)).mean()
    # Soft shares pull the raw rates together by the same factor.
    between = rates.var(unbiased=False) / (1 - softness.clamp(0, 0.95)).square() - chance
    rate = rates.mean()
    mask = math.inf if between <= 0 else float((rate * (1 - rate) / between - 1).clamp(1.0, 1e6))

    sizes = by_kind.sum((0, 1)).clamp_min(1.0)
    squares = torch.stack([one.squares for one in _kept(evidence, likelihood)])
    precision = (-2 * likelihood.log_sigma).exp()[:, None, None]
    ratio = ((by_kind * squares * precision).sum((0, 1)) / sizes).clamp_min(1e-8)
    between = ratio.log().var(unbiased=False) - (2 / sizes).mean()
    scale = math.inf if between <= 0 else float((2 / between).clamp(1.0, 1e6))
    return Shrinkage(mask, scale, float(rate.clamp(1e-6, 1 - 1e-6)))
