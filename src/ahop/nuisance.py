r"""Learn a corruption that moves many dimensions at once, whether or not the origins of the queries are known.

Fits :class:`~ahop.similarity.Subspace` by expectation maximisation: an M-step is a factor analysis of the
residuals, weighed by the origins' posteriors and by the heavy tails. What no likelihood can tell is how many hidden
causes to allow: it rises with every one of them, while they begin to explain away what tells patterns apart. So
their number is chosen by retrieval where origins are known (:func:`by_retrieval`), and by the mutual information
between query and origin where they are not (:func:`by_information`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity import Similarity, Subspace

# The numbers of hidden causes worth a try, and after how many failures in a row to stop.
RANKS = (0, 1, 2, 4, 8, 16)
_PATIENCE = 2
_HEAVY = 4.0
# Few origins are left out one by one, many by the eighth.
_FEW = 64
_FOLDS = 8
# Enough queries and rivals to tell two models apart; more would only take longer.
_JUDGED = 2048
_RIVALS = 1024


def ladder(queries: int, dim: int) -> list[int]:
    """The numbers of hidden causes that so many queries can tell apart."""
    return [rank for rank in RANKS if rank <= min(dim // 2, queries // 4)]


@dataclass
class Moments:
    """Weighted means and covariances of queries x and the patterns k they are taken to come from.

    ``amount`` counts queries, before the heavy tails weigh them.
    """

    mean_x: Tensor
    mean_k: Tensor
    xx: Tensor
    xk: Tensor
    kk: Tensor
    amount: float

    @classmethod
    def of_pairs(cls, queries: Tensor, origins: Tensor, weights: Tensor) -> Moments:
        share = weights / weights.sum()
        mean_x, mean_k = share @ queries, share @ origins
        x, k = queries - mean_x, origins - mean_k
        heavy = weights[:, None]
        return cls(mean_x, mean_k, x.mT @ (heavy * x), x.mT @ (heavy * k), k.mT @ (heavy * k), len(queries))

    @classmethod
    def of_shares(cls, queries: Tensor, patterns: Tensor, weights: Tensor, amount: float) -> Moments:
        """``weights`` ``(n, N)`` share every query out among all patterns."""
        by_query, by_pattern = weights.sum(1), weights.sum(0)
        total = by_query.sum()
        mean_x, mean_k = by_query @ queries / total, by_pattern @ patterns / total
        x, k = queries - mean_x, patterns - mean_k
        xx, kk = x.mT @ (by_query[:, None] * x), k.mT @ (by_pattern[:, None] * k)
        return cls(mean_x, mean_k, xx, x.mT @ (weights @ k), kk, amount)

    def residuals(self, gain: Tensor) -> Tensor:
        """The covariance of what the patterns leave unexplained, ``(d, d)``."""
        return (self.xx - gain * (self.xk + self.xk.mT) + gain**2 * self.kk) / self.amount


@dataclass(frozen=True)
class Shape:
    """What is decided before a fit: hidden causes, tails, and what dimensions and gains may differ."""

    rank: int = 0
    tails: float = _HEAVY
    shared_noise: bool = False
    learn_gain: bool = False

    @classmethod
    def of(cls, model: Subspace) -> Shape:
        """The shape that a model was fitted in."""
        shared = float(model.log_psi.max() - model.log_psi.min()) < 1e-6
        return cls(model.rank, model.tails, shared, learn_gain=float(model.gain) != 1.0)


def _floored(variance: Tensor) -> Tensor:
    return variance.clamp_min(1e-8 + 1e-3 * float(variance.mean()))


def maximise(model: Subspace, moments: Moments, shape: Shape) -> None:
    """Solve for gain, bias, hidden causes and noise, given the moments."""
    if shape.learn_gain:
        precision = (-model.log_psi).exp()
        power = (moments.kk.diagonal() * precision).sum()
        if power > 0:
            model.gain.copy_(((moments.xk.diagonal() * precision).sum() / power).clamp_min(0.05))
    model.bias.copy_(moments.mean_x - model.gain * moments.mean_k)
    _factor(model, moments.residuals(model.gain), shape)


def _factor(model: Subspace, covariance: Tensor, shape: Shape, rounds: int = 2) -> None:
    """Split a covariance into hidden causes and noises of single dimensions (factor analysis)."""
    least = 1e-3 * _floored(covariance.diagonal())

    def noise(rest: Tensor) -> Tensor:
        rest = _floored(torch.maximum(rest, least))
        return rest.mean().expand_as(rest) if shape.shared_noise else rest

    psi = noise(covariance.diagonal())
    if shape.rank:
        psi = torch.minimum(model.log_psi.exp(), psi)
        for _ in range(rounds):
            root = psi.sqrt()
            values, vectors = torch.linalg.eigh(covariance / root[:, None] / root)
            strength = (values[-shape.rank :] - 1).clamp_min(0).sqrt()
            model.loading.copy_(root[:, None] * vectors[:, -shape.rank :] * strength)
            psi = noise(covariance.diagonal() - model.loading.square().sum(1))
    model.log_psi.copy_(psi.log())


def _begin(bias: Tensor, variance: Tensor, shape: Shape, start: Subspace | None = None) -> Subspace:
    model = Subspace(len(bias), shape.rank, tails=shape.tails).to(bias)
    if start is None:
        model.bias.copy_(bias)
        model.log_psi.copy_(_floored(variance).log())
        return model
    for name in ("gain", "bias", "log_psi"):
        model.get_parameter(name).copy_(start.get_parameter(name))
    kept = min(shape.rank, start.rank)
    model.loading[:, :kept] = start.loading[:, start.rank - kept :]
    return model


def _heaviness(model: Subspace, squares: Tensor) -> Tensor:
    """A query far from everything says little: that is what heavy tails mean."""
    if math.isinf(model.tails):
        return torch.ones_like(squares)
    return (model.tails + model.dim) / (model.tails + squares)


# --- with labels ---------------------------------------------------------------------------------------------


@torch.no_grad()
def fit_pairs(queries: Tensor, origins: Tensor, shape: Shape) -> Subspace:
    """Fit one shape to queries ``(n, d)`` and the patterns they came from ``(n, d)``."""
    gaps = queries - origins
    model = _begin(gaps.mean(0), gaps.var(0, unbiased=False), shape)
    for _ in range(3 if math.isfinite(shape.tails) else 1 + shape.learn_gain):
        rows, _ = model.whiten(queries - model.bias - model.gain * origins)
        maximise(model, Moments.of_pairs(queries, origins, _heaviness(model, rows.square().sum(-1))), shape)
    return model


@dataclass
class Judgement:
    """Held-out log posteriors ``(n,)`` of the origins ``(n,)``, at their best inverse temperature."""

    log_posterior: Tensor
    origins: Tensor
    log_beta: float

    def beats(self, other: Judgement) -> bool:
        """By more than chance; queries of one origin are no independent witnesses."""
        gain = self.log_posterior - other.log_posterior
        _, group = self.origins.unique(return_inverse=True)
        sums = torch.zeros_like(gain[: int(group.max()) + 1]).index_add_(0, group, gain - gain.mean())
        return float(gain.mean()) > max(1e-3, float(sums.square().sum().sqrt()) / len(gain))


class Jury:
    """Queries with known origins, cut into folds that share no origin, on which models are judged by retrieval."""

    def __init__(self, patterns: Tensor, queries: Tensor, origins: Tensor, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.patterns, self.queries, self.origins = patterns, queries, origins
        known, group = origins.unique(return_inverse=True)
        if len(known) < 2:
            raise ValueError(
                f"origins must be of at least two patterns to look for hidden causes, got {known.tolist()}"
            )
        folds = len(known) if len(known) <= _FEW else _FOLDS
        fold = self._permutation(len(known)) % folds
        self.rivals = self._permutation(len(patterns))[:_RIVALS]
        judged = torch.zeros_like(origins, dtype=torch.bool)
        judged[self._permutation(len(origins))[:_JUDGED]] = True
        # Rows to learn from, and rows to judge on.
        self.parts = [
            ((fold[group] != index).nonzero().squeeze(1), ((fold[group] == index) & judged).nonzero().squeeze(1))
            for index in range(folds)
        ]

    def _permutation(self, count: int) -> Tensor:
        return torch.randperm(count, generator=self.generator).to(self.patterns.device)

    def bundles(self) -> list[list[tuple[Tensor, Tensor]]]:
        """The parts in a few bundles, for models that take long to fit."""
        size = -(-len(self.parts) // _FOLDS)
        return [self.parts[start : start + size] for start in range(0, len(self.parts), size)]

    def judge(self, scores: list[Tensor]) -> Judgement:
        """``scores`` of each part's queries, as :meth:`score` gives them."""
        logs, log_beta = _tempered(torch.cat(scores))
        return Judgement(logs, torch.cat([self.origins[rows] for _, rows in self.parts]), log_beta)

    def score(
        self, similarity: Similarity, rows: Tensor, patterns: Tensor | None = None, queries: Tensor | None = None
    ) -> Tensor:
        """Scores of the true origin, first, and of the rivals; a rival equal to the origin counts for nothing.

        ``patterns`` and ``queries`` are the same ones in another precision.
        """
        patterns = self.patterns if patterns is None else patterns
        queries = (self.queries if queries is None else queries)[rows]
        own, against = patterns[self.origins[rows]], similarity(patterns[self.rivals], queries)
        same = self.origins[rows][:, None] == self.rivals
        # Each query against its own pattern alone, without a table of all pairs.
        mine = [similarity(own[i : i + 16], queries[i : i + 16]).diagonal() for i in range(0, len(rows), 16)]
        mine.append(against.new_empty(0))
        return torch.cat([torch.cat(mine)[:, None], against.masked_fill(same, -torch.inf)], 1)

    def shape(self, shape: Shape) -> Judgement:
        """The judgement on one shape, fitted anew for each fold."""
        scores = []
        for learn, rows in self.parts:
            model = fit_pairs(self.queries[learn], self.patterns[self.origins[learn]], shape)
            scores.append(self.score(model, rows))
        return self.judge(scores)


def _tempered(scores: Tensor) -> tuple[Tensor, float]:
    """The inverse temperature under which the first column is likeliest: concave, so Newton's method finds it."""
    mine = scores[:, :1]
    gaps = (scores - mine).clamp_min(-1e30)
    present = torch.isfinite(scores)
    log_beta = 0.0
    for _ in range(40):
        posterior = torch.softmax((math.exp(log_beta) * gaps).masked_fill(~present, -torch.inf), 1)
        safe = gaps.masked_fill(~present, 0.0)
        mean = (posterior * safe).sum(1)
        slope = -float(mean.mean()) * math.exp(log_beta)
        bend = float(((posterior * safe.square()).sum(1) - mean.square()).mean()) * math.exp(2 * log_beta)
        step = slope / (bend + abs(slope) + 1e-12)
        log_beta = min(max(log_beta + step, -12.0), 3.0)
        if abs(step) < 1e-3:
            break
    logs = torch.log_softmax((math.exp(log_beta) * gaps).masked_fill(~present, -torch.inf), 1)[:, 0]
    return logs, log_beta


def _climb(jury: Jury, family: list[Shape]) -> tuple[Shape, Judgement]:
    """The best of shapes with more and more hidden causes, until a few in a row were no better."""
    best, failures = (family[0], jury.shape(family[0])), 0
    for shape in family[1:]:
        judgement = jury.shape(shape)
        if judgement.log_posterior.mean() > best[1].log_posterior.mean():
            best, failures = (shape, judgement), 0
        elif (failures := failures + 1) > _PATIENCE:
            break
    return best


@torch.no_grad()
def by_retrieval(jury: Jury, rank: int | None = None) -> tuple[Subspace, Judgement]:
    """The shape that retrieves best on origins it has not seen; ``rank`` fixes the number of hidden causes."""
    ranks = ladder(len(jury.queries), jury.patterns.shape[1]) if rank is None else [rank]
    shape, judgement = _climb(jury, [Shape(candidate) for candidate in ranks])
    # Other tails and a noise that all dimensions share have to be clearly better, not just a little.
    for tails, shared in ((_HEAVY, True), (math.inf, False), (math.inf, True)):
        if jury.shape(Shape(shape.rank, tails, shared)).beats(judgement):
            shape, judgement = _climb(jury, [Shape(candidate, tails, shared) for candidate in ranks])
    gained = Shape(shape.rank, shape.tails, shape.shared_noise, learn_gain=True)
    if (second := jury.shape(gained)).beats(judgement):
        shape, judgement = gained, second
    model = fit_pairs(jury.queries, jury.patterns[jury.origins], shape)
    model.log_beta.fill_(judgement.log_beta)
    return model, judgement


# --- without labels ------------------------------------------------------------------------------------------


@torch.no_grad()
def mutual_information(scores: Tensor) -> float:
    r"""How much a query tells of its origin, :math:`H(\text{mean posterior}) - \text{mean}\, H(\text{posterior})`.

    It presumes that the queries ask for many different patterns: a model that explains too much away crowds them
    onto a few.

    Args:
        scores: ``(Q, N)``, log-likelihoods.

    Example:
        >>> round(mutual_information(50 * torch.eye(4)), 3), round(mutual_information(torch.zeros(4, 4)), 3)
        (1.386, 0.0)
    """
    posterior = torch.softmax(scores, -1)
    return float(torch.special.entr(posterior.mean(0)).sum() - torch.special.entr(posterior).sum(-1).mean())


@torch.no_grad()
def fit_queries(patterns: Tensor, queries: Tensor, shape: Shape, steps: int, start: Subspace | None) -> Subspace:
    """Fit one shape to queries alone; their origins are shared out among all patterns each time.

    The gain stays as it is: a smaller one would let noise explain what tells patterns apart.
    """
    gap = queries.mean(0) - patterns.mean(0)
    model = _begin(gap, (queries - patterns.mean(0)).var(0, unbiased=False), shape, start)
    for _ in range(steps):
        stored, log_determinant = model.whiten(model.gain * patterns)
        asked, _ = model.whiten(queries - model.bias)
        weights = queries.new_empty(len(queries), len(patterns))
        for part in split(len(queries), 4 * len(patterns) * queries.element_size()):
            squares = torch.cdist(asked[part], stored).square()
            shares = torch.softmax(model.density(squares, log_determinant, model.dim), -1)
            weights[part] = shares * _heaviness(model, squares)
        maximise(model, Moments.of_shares(queries, patterns, weights, len(queries)), shape)
    return model


@torch.no_grad()
def by_information(patterns: Tensor, queries: Tensor, ranks: list[int], advance: Callable[[], None]) -> Subspace:
    """Climb from few hidden causes to more, from the best so far each time, as long as the information rises.

    A noise for each dimension and one that all share are two starts.
    """
    best: tuple[Subspace, float] | None = None
    for shared in (False, True):
        current, value = None, -math.inf
        for rank in ranks:
            model, keep = current, None
            for steps in (15,) if current is None else (4, 4, 4):
                model = fit_queries(patterns, queries, Shape(rank, shared_noise=shared), steps, model)
                told = mutual_information(model(patterns, queries))
                if told > value:
                    keep, value = model, told
            current = keep or current
            advance()
        assert current is not None
        if best is None or value > best[1]:
            best = current, value
    assert best is not None
    return best[0]
