r"""Learn a corruption that moves many dimensions at once, whether or not the origins of the queries are known.

Fits :class:`~ahop.similarity.Correlated` by :mod:`.em`: an M-step is a factor analysis (Rubin and Thayer, 1982) of the
residuals, weighed by the origins' posteriors and by the heavy tails (Liu and Rubin, 1995). What no likelihood can tell
is how many hidden causes to allow: it rises with every one of them, while they begin to explain away what tells
patterns apart. So their number is chosen by retrieval where origins are known (:func:`by_retrieval`), and by the mutual
information between query and origin where they are not (:func:`by_information`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ahop._blocks import split
from ahop.similarity.families import em, stand_ins, student
from ahop.similarity.families.correlated.model import Correlated
from ahop.similarity.families.correlated.moments import Moments, PairMoments, ShareMoments, Spread
from ahop.similarity.families.correlated.scattered import Measured
from ahop.similarity.families.shares import ruled_out
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation, HeldOut
from ahop.similarity.scatter import mean_and_variance

# The numbers of hidden causes worth a try, and after how many failures in a row to stop.
RANKS = (0, 1, 2, 4, 8, 16)
_PATIENCE = 2
# Degrees of freedom of Student's t-distribution, where noise has heavy tails.
_HEAVY_TAILS = 4.0
# A share of a query that is as good as none, beside its largest.
_NEGLIGIBLE_SHARE = 1e-4
# Queries x patterns from which on origins are shared out in single precision.
_SINGLE_PRECISION_SCORES = 2**18
# Of patterns that scatter: steps from pairs, since what was measured of them is unknown, and what a step gains at
# least; patterns that a query is shared out among, and values (queries x patterns x dimensions) that takes.
_STEPS, _LEAST_GAIN, _CANDIDATES, _MAX_VALUES = 40, 1e-3, 64, 2**24


def ladder(queries: int, dim: int) -> list[int]:
    """The numbers of hidden causes that so many queries can tell apart."""
    return [rank for rank in RANKS if rank <= min(dim // 2, queries // 4)]


@dataclass(frozen=True)
class Form:
    """What is decided before a fit: what to make, its hidden causes and tails, what dimensions and gains may differ."""

    rank: int = 0
    tails: float = _HEAVY_TAILS
    shared_noise: bool = False
    learn_gain: bool = False

    @classmethod
    def of(cls, model: Correlated) -> Form:
        """The form that a model was fitted in."""
        shared = float(model.log_psi.max() - model.log_psi.min()) < 1e-6
        return cls(model.rank, model.tails, shared, learn_gain=float(model.gain) != 1.0)


def _floored(variance: Tensor) -> Tensor:
    return variance.clamp_min(1e-8 + 1e-3 * float(variance.mean()))


def maximise(model: Correlated, moments: Moments, form: Form) -> None:
    """The M-step: solve for gain, bias, hidden causes and noise, in place.

    Args:
        model: What is solved for.
        moments: The sums that the E-step gathered.
        form: What is learned, and with which rank.
    """
    if form.learn_gain:
        precision = (-model.log_psi).exp()
        power = (moments.kk * precision).sum()
        if power > 0:
            model.gain.copy_(((moments.xk * precision).sum() / power).clamp_min(0.05))
    model.bias.copy_(moments.mean_x - model.gain * moments.mean_k)
    _factor(model, moments.covariance(model.gain), form)


def _factor(model: Correlated, covariance: Spread, form: Form, rounds: int = 2) -> None:
    """Split a covariance into hidden causes and noises of single dimensions (factor analysis)."""
    diagonal = covariance.diagonal()
    least = 1e-3 * _floored(diagonal)

    def noise(rest: Tensor) -> Tensor:
        rest = _floored(torch.maximum(rest, least))
        return rest.mean().expand_as(rest) if form.shared_noise else rest

    psi = noise(diagonal)
    if form.rank:
        psi = torch.minimum(model.log_psi.exp(), psi)
        for _ in range(rounds):
            root = psi.sqrt()
            values, vectors = covariance.leading(root, form.rank, model.loading)
            strength = (values - 1).clamp_min(0).sqrt()
            model.loading.zero_()
            model.loading[:, form.rank - len(values) :] = root[:, None] * vectors * strength
            psi = noise(diagonal - model.loading.square().sum(1))
    model.log_psi.copy_(psi.log())


def _begin(bias: Tensor, variance: Tensor, form: Form, start: Correlated | None = None) -> Correlated:
    model = Correlated(len(bias), form.rank, tails=form.tails).to(bias)
    if start is None:
        model.bias.copy_(bias)
        model.log_psi.copy_(_floored(variance).log())
        return model
    for name in ("gain", "bias", "log_psi"):
        model.get_parameter(name).copy_(start.get_parameter(name))
    kept = min(form.rank, start.rank)
    model.loading[:, :kept] = start.loading[:, start.rank - kept :]
    return model


# --- with labels ---------------------------------------------------------------------------------------------


@dataclass
class _OfPairs:
    """One form of a model, learned from queries ``(n, d)`` and the patterns they came from: ``(n, d)``, or ``(n, 2d)``
    where they scatter."""

    model: Correlated
    form: Form
    queries: Tensor
    origins: Tensor

    def expect(self) -> tuple[float, Moments]:
        """Every query is its origin's; what the tails leave to say is how much each counts."""
        model, count = self.model, len(self.queries)
        if self.origins.shape[1] > model.dim:
            measured = Measured.of(model, self.origins, self.queries)
            bound = model.density(measured.squares, measured.log_determinant, model.dim).mean()
            return float(bound), PairMoments(
                self.queries, measured.origins, measured.weights(model.tails), count, measured.left
            )
        rows, log_determinant = model.whiten(self.queries - model.bias - model.gain * self.origins)
        squares = rows.square().sum(-1)
        bound = model.density(squares, log_determinant, model.dim).mean()
        weights = student.weight(squares, model.tails, model.dim)
        return float(bound), PairMoments(self.queries, self.origins, weights, count)

    def maximise(self, shares: Moments) -> None:
        maximise(self.model, shares, self.form)


@torch.no_grad()
def fit_pairs(queries: Tensor, origins: Tensor, form: Form) -> Correlated:
    """Fit one form to queries and the patterns that they came from.

    Args:
        queries: ``(n, d)``.
        origins: The pattern of each query, ``(n, d)``, or ``(n, 2d)`` with its standard deviations.
        form: What is learned, and with which rank.
    """
    mean, scatter = mean_and_variance(origins, queries.shape[1])
    gaps = queries - mean
    model = _begin(gaps.mean(0), gaps.var(0, unbiased=False), form)
    learning = _OfPairs(model, form, queries, origins)
    if isinstance(scatter, Tensor):
        em.iterate(learning, _STEPS, _LEAST_GAIN)
    else:
        em.iterate(learning, 3 if math.isfinite(form.tails) else 1 + form.learn_gain)
    return model


def judged(validation: CrossValidation, form: Form, against: HeldOut | None = None) -> HeldOut:
    """Cross-validate one form: fitted anew for each fold, and scored on what was held out.

    Args:
        validation: The folds.
        form: What is learned, and with which rank.
        against: Results of another model, to stop early where this one is clearly worse.
    """
    return validation.evaluate(lambda rows: fit_rows(validation, rows, form), against)


def fit_rows(validation: CrossValidation, rows: Tensor, form: Form) -> Correlated:
    """Fit one form to some of a validation's queries.

    Args:
        validation: Where the queries and their origins are.
        rows: Indices of the queries to learn from.
        form: What is learned, and with which rank.
    """
    some = validation.data.part(rows)
    return fit_pairs(some.queries.double(), some.patterns[some.origins].double(), form)


def _climb(validation: CrossValidation, forms: list[Form]) -> tuple[Form, HeldOut]:
    """The best of forms with more and more hidden causes, until a few in a row were no better."""
    best, failures = (forms[0], judged(validation, forms[0])), 0
    for form in forms[1:]:
        held_out = judged(validation, form)
        if held_out.log_posterior.mean() > best[1].log_posterior.mean():
            best, failures = (form, held_out), 0
        elif (failures := failures + 1) > _PATIENCE:
            break
    return best


@torch.no_grad()
def by_retrieval(validation: CrossValidation, rank: int | None = None) -> Form:
    """The form that retrieves best on origins it has not seen; ``rank`` fixes the number of hidden causes."""
    ranks = ladder(*validation.data.queries.shape) if rank is None else [rank]
    form, held_out = _climb(validation, [Form(candidate) for candidate in ranks])
    # Other tails and a noise that all dimensions share have to be clearly better, not just a little.
    for tails, shared in ((_HEAVY_TAILS, True), (math.inf, False), (math.inf, True)):
        if judged(validation, Form(form.rank, tails, shared)).surer_than(held_out):
            form, held_out = _climb(validation, [Form(candidate, tails, shared) for candidate in ranks])
    gained = replace(form, learn_gain=True)
    return gained if judged(validation, gained).surer_than(held_out) else form


# --- without labels ------------------------------------------------------------------------------------------


@torch.no_grad()
def mutual_information(model: Correlated, patterns: Tensor, queries: Tensor) -> float:
    r"""How much a query tells of its origin, :math:`H(\text{mean posterior}) - \text{mean}\, H(\text{posterior})`.

    It presumes that the queries ask for many different patterns: a model that explains too much away crowds them
    onto a few.

    Args:
        model: A likelihood.
        patterns: ``(N, d)``.
        queries: ``(n, d)``.

    Example:
        >>> patterns = 50 * torch.eye(4)
        >>> round(mutual_information(Correlated(4, 0), patterns, patterns), 3)
        1.386
        >>> round(mutual_information(Correlated(4, 0), torch.ones(4, 4), patterns), 3)
        0.0
    """
    some = stand_ins.of(TrainingData(patterns, queries), model).data
    patterns, prior = some.patterns.to(queries), 0.0 if some.log_prior is None else some.log_prior.to(queries)
    asked, left = patterns.new_zeros(len(patterns)), 0.0
    for part in split(len(queries), 4 * len(patterns) * patterns.element_size()):
        posterior = torch.softmax(model(patterns, queries[part]) + prior, -1)
        asked += posterior.sum(0)
        left += float(torch.special.entr(posterior).sum())
    return float(torch.special.entr(asked / len(queries)).sum()) - left / len(queries)


@dataclass
class _OfQueries:
    """The same, from queries alone: their origins are shared out among all patterns, but for those known."""

    model: Correlated
    form: Form
    queries: Tensor
    patterns: Tensor
    origins: Tensor | None = None
    log_prior: Tensor | None = None

    def expect(self) -> tuple[float, Tensor]:
        """The posterior of every origin, times how much the tails let it count, ``(n, N)``."""
        model = self.model
        if self.scattered:
            return self._shared_out()
        stored, log_determinant = model.whiten(model.gain * self.patterns)
        asked, _ = model.whiten(self.queries - model.bias)
        if len(asked) * len(stored) > _SINGLE_PRECISION_SCORES:
            # Whitened distances of so many pairs need no more digits.
            stored, asked = stored.float(), asked.float()
        weights, bound = asked.new_empty(len(asked), len(stored)), 0.0
        for part in split(len(asked), 4 * len(stored) * asked.element_size()):
            squares = torch.cdist(asked[part], stored).square()
            scores = self._beside_known(model.density(squares, log_determinant.to(squares), model.dim), part)
            evidence = scores.logsumexp(-1, keepdim=True)
            weights[part] = (scores - evidence).exp() * student.weight(squares, model.tails, model.dim)
            bound += float(evidence.sum()) / len(asked)
        return bound - self._uniform, weights

    @property
    def scattered(self) -> bool:
        return self.patterns.shape[1] > self.model.dim

    @property
    def _uniform(self) -> float:
        """What a uniform prior takes from the log evidence; another one is part of the scores."""
        return math.log(len(self.patterns)) if self.log_prior is None else 0.0

    def _beside_known(self, scores: Tensor, part: slice) -> Tensor:
        """With the prior, and without all but the origin where that is known."""
        if self.log_prior is not None:
            scores = scores + self.log_prior.to(scores)
        if self.origins is not None:
            scores = scores.masked_fill(ruled_out(self.origins[part], len(self.patterns)), -torch.inf)
        return scores

    def _shared_out(self) -> tuple[float, Tensor]:
        """The posterior of every origin that scatters, ``(n, N)``; what the tails say of each follows from pairs."""
        count = len(self.queries)
        shares, bound = self.queries.new_empty(count, len(self.patterns)), 0.0
        for part in split(count, 4 * len(self.patterns) * self.queries.element_size()):
            scores = self._beside_known(self.model(self.patterns, self.queries[part]), part)
            evidence = scores.logsumexp(-1, keepdim=True)
            shares[part] = (scores - evidence).exp()
            bound += float(evidence.sum()) / count
        return bound - self._uniform, shares

    def _of_likeliest(self, shares: Tensor) -> Moments:
        """What the likeliest patterns of each query say, which scatter."""
        most = min(len(self.patterns), max(8, min(_CANDIDATES, _MAX_VALUES // self.queries.numel())))
        best = shares.topk(most, 1)
        own = torch.where(best.values > _NEGLIGIBLE_SHARE * best.values[:, :1], best.values, 0.0)
        query, place = own.nonzero(as_tuple=True)
        asked, own = self.queries[query], (own / own.sum(1, keepdim=True))[query, place]
        measured = Measured.of(self.model, self.patterns[best.indices[query, place]], asked, own)
        return PairMoments(
            asked, measured.origins, own * measured.weights(self.model.tails), len(self.queries), measured.left
        )

    def maximise(self, shares: Tensor) -> None:
        if self.scattered:
            maximise(self.model, self._of_likeliest(shares), self.form)
            return
        # Few pairs are left once origins are nearly sure; they are much less work than all.
        likely, dim = shares > _NEGLIGIBLE_SHARE * shares.amax(1, keepdim=True), self.queries.shape[1]
        pairs = int(likely.sum())
        if pairs * 3 * dim <= shares.numel() or pairs <= 2 * dim:
            query, pattern = likely.nonzero(as_tuple=True)
            own, count = shares[query, pattern].to(self.queries), len(self.queries)
            moments: Moments = PairMoments(self.queries[query], self.patterns[pattern], own, count)
        else:
            moments = ShareMoments(self.queries, self.patterns, shares)
        maximise(self.model, moments, self.form)


@torch.no_grad()
def fit_queries(
    patterns: Tensor,
    queries: Tensor,
    form: Form,
    steps: int,
    start: Correlated | None,
    origins: Tensor | None = None,
    log_prior: Tensor | None = None,
) -> Correlated:
    """Fit one form to queries alone; their origins are shared out among all patterns each time.

    The gain stays as it is: a smaller one would let noise explain what tells patterns apart.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d)``.
        form: What is learned, and with which rank.
        steps: The number of EM steps.
        start: A model to start from; None starts from the means.
        origins: The known origins, ``(n,)``, -1 where unknown; None knows none.
        log_prior: The log prior of each pattern, ``(N,)``; None is uniform.
    """
    mean = patterns[:, : queries.shape[1]].mean(0, dtype=queries.dtype)
    model = _begin(queries.mean(0) - mean, (queries - mean).var(0, unbiased=False), form, start)
    for few, count in stand_ins.rounds(TrainingData(patterns, queries, origins, None, log_prior), model, steps):
        stored = few.patterns.to(queries)
        em.iterate(_OfQueries(model, form, queries, stored, few.origins, few.log_prior), count)
    return model


@torch.no_grad()
def by_information(
    patterns: Tensor,
    queries: Tensor,
    origins: Tensor | None,
    log_prior: Tensor | None,
    ranks: list[int],
    advance: Callable[[], None],
) -> Correlated:
    """Climb from few hidden causes to more, from the best so far each time, as long as the information rises.

    A noise for each dimension and one that all share are two starts.

    Args:
        patterns, queries, origins, log_prior: As in :func:`fit_queries`.
        ranks: The numbers of hidden causes to try, in order.
        advance: Called after each climb.
    """
    best: tuple[Correlated, float] | None = None
    for shared in (False, True):
        current, value = None, -math.inf
        for rank in ranks:
            model, keep = current, None
            for steps in (15,) if current is None else (4, 4, 4):
                form = Form(rank, shared_noise=shared)
                model = fit_queries(patterns, queries, form, steps, model, origins, log_prior)
                information = mutual_information(model, patterns, queries)
                if information > value:
                    keep, value = model, information
            current = keep or current
            advance()
        assert current is not None
        if best is None or value > best[1]:
            best = current, value
    assert best is not None
    return best[0]


@torch.no_grad()
def follow(model: Correlated, patterns: Tensor, queries: Tensor, origins: Tensor | None) -> Correlated:
    """A few EM steps from a model to what further queries say.

    Args:
        model: Where to start.
        patterns: ``(N, d)``.
        queries: The further queries, ``(n, d)``.
        origins: Their origins, ``(n,)``, -1 where unknown; None knows none.
    """
    form = Form.of(model)
    if origins is None or bool((origins < 0).any()):
        new = fit_queries(patterns, queries, form, 4, model, origins)
    else:
        new = fit_pairs(queries, patterns[origins].to(queries), form)
    new.log_beta.copy_(model.log_beta)
    return new
