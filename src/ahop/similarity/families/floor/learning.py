r"""Learn what happens to values that are often at a floor, whether or not the origins of the queries are known.

Fits :class:`~ahop.similarity.Floor`. With a known origin, learning is counting: how often is a value off the floor
where its pattern is at this level, in this dimension, in this regime? Rare cells are drawn to what others share. Which
regime a query belongs to, and which pattern it came from where nobody knows, is shared out by expectation maximisation.

Dimensions are taken to be independent and are not, so likelihoods claim too much. Origins are shared out at an inverse
temperature that makes up for it (:func:`trust`): by how much more do scores vary than independent terms would?
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ahop._precision import reach
from ahop.learning.chance import more_than_chance
from ahop.learning.holdout import holdout_split
from ahop.learning.report import FitReport
from ahop.similarity.families import em
from ahop.similarity.families.floor.model import Floor
from ahop.similarity.families.shares import ruled_out
from ahop.similarity.families.training import TrainingData
from ahop.similarity.families.validation import CrossValidation, HeldOut

# The share of one value among the queries' that makes it a floor, and its share among the patterns'.
_FLOOR_SHARE = 0.25
_STORED_SHARE = 0.05
# Values that are looked at to see it.
_EXAMINED_VALUES = 2**20
# Ranges of values off the floor, at most.
_MAX_BINS = 12
# Numbers of regimes worth a try.
REGIMES = (1, 2, 4, 8)
# A cell is drawn to what others share as if these had been seen in it so many times.
_SHRINKAGE_COUNT = 30.0
# How sure the first guess at a regime is, and the first at an origin, which goes by the cosine above the floor.
_FIRST_REGIME = 0.8
_FIRST_ORIGIN = 60.0
# A query is shared out among so many patterns.
_CANDIDATES = 8
# Steps of expectation maximisation, with labels and without.
_STEPS_OF_PAIRS, _STEPS_OF_QUERIES = 5, 5
# Queries x patterns that origins are shared out in, and queries that tell how much to trust scores.
_MAX_SCORES = 2**20
_CALIBRATION_QUERIES = 256


def floor_of(queries: Tensor, observed: Tensor | None = None) -> float | None:
    """The value that at least a quarter of the entries share; None where there is none.

    Example:
        >>> floor_of(torch.eye(3)), floor_of(torch.rand(5, 3))
        (0.0, None)
    """
    some = slice(None, None, 1 + queries.numel() // _EXAMINED_VALUES)
    values = queries[some].flatten() if observed is None else queries[some][observed[some]]
    if not len(values):
        return None
    most = values.mode().values
    share = float((values == most).double().mean())
    return float(most) if _FLOOR_SHARE <= share < 1 else None


def has_floor(data: TrainingData) -> bool:
    """Whether many values of the queries lie at a floor, and some of the patterns' do.

    A value that queries share and no pattern has is no floor: those values were lost.
    """
    floor = floor_of(data.queries, data.observed)
    return floor is not None and float((data.means == floor).double().mean()) >= _STORED_SHARE


def begin(patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Floor:
    """A likelihood whose floor, levels and bins are those of the data; nothing else is learned yet.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d)``.
        observed: Which entries of the queries count, ``(n, d)``; None is all.
    """
    floor = floor_of(queries, observed)
    if floor is None:
        raise ValueError(
            "queries must have a floor, a value that a quarter of their entries share; none is that common"
        )
    asked = queries.flatten() if observed is None else queries[observed]
    above, stored = asked[asked != floor], patterns[patterns != floor]
    # Rounding must not lift a value off the floor when units change.
    nearest = min(float((some - floor).abs().min()) for some in (above, stored) if len(some))
    slack = max(nearest / 2, 8 * torch.finfo(queries.dtype).eps * float(queries.abs().max()))
    cuts, inner = _cuts(stored), _cuts(above)
    low, high = reach(above)
    sizes = {"levels": len(cuts) + 1, "bins": len(inner) + 1}
    model = Floor(patterns.shape[1], floor, slack=slack, **sizes).to(patterns)
    model.cuts.copy_(cuts)
    model.edges.copy_(torch.cat([inner.new_tensor([low]), inner, inner.new_tensor([high])]))
    return model


def _cuts(values: Tensor) -> Tensor:
    """Places between values, with about as many of these between any two."""
    values = values.sort().values
    last = torch.arange(1, _MAX_BINS, device=values.device) * len(values) // _MAX_BINS
    if not len(values):
        return values
    left = values[last].unique()
    right = torch.searchsorted(values, left, right=True)
    left, right = left[right < len(values)], right[right < len(values)]
    return left + (values[right] - left) / 2


class Cells:
    """Patterns by their levels ``(N, d)``, queries by their bins ``(n, d)``.

    Args:
        model: The floor, levels and bins.
        patterns: ``(N, d)``.
        queries: ``(n, d)``.
        observed: Which entries of the queries count, ``(n, d)``; None is all.
    """

    def __init__(self, model: Floor, patterns: Tensor, queries: Tensor, observed: Tensor | None) -> None:
        self.empty, self.patterns, self.queries, self.observed = model, patterns, queries, observed
        self.levels, self.places = model.level(patterns), model.place(queries)
        self.heard = self.places < model.bins
        if observed is not None:
            self.heard &= observed

    def seen(self, rows: Tensor) -> Tensor | None:
        return None if self.observed is None else self.observed[rows]

    def pairs(self, rows: Tensor, origins: Tensor) -> Pairs:
        """Queries in ``rows`` beside the patterns they are taken to come from."""
        known, inverse = origins.unique(return_inverse=True)
        pair, dim = self.heard[rows].nonzero(as_tuple=True)
        # A cell is a dimension and a level there; those off the floor are cut into bins.
        first = torch.arange(self.empty.dim, device=rows.device) * (self.empty.levels + 1)
        cells = first + self.levels[known]
        off = cells[inverse[pair], dim] * self.empty.bins + self.places[rows[pair], dim]
        return Pairs(cells, inverse, self.seen(rows), pair, off)


@dataclass(frozen=True)
class Pairs:
    """Pairs of queries and patterns: the cells of K patterns ``(K, d)``, which of them is whose, and what is off the
    floor: of which pair it is, and in which bin of its cell."""

    cells: Tensor
    inverse: Tensor
    observed: Tensor | None
    pair: Tensor
    off: Tensor

    def maximise(self, model: Floor, weights: Tensor) -> None:
        """Count, each pair in each regime as often as its weight ``(m, R)`` says, and solve for the likelihood."""
        regimes, (_, dim, levels) = weights.shape[1], model.heard_logits.shape
        counts = weights.new_zeros(dim * levels * model.bins, regimes).index_add_(0, self.off, weights[self.pair])
        counts = counts.mT.reshape(regimes, dim, levels, model.bins)
        total = torch.stack([self._total(own, dim * levels) for own in weights.mT]).reshape(regimes, dim, levels)
        model.heard_logits.copy_(_drawn_together(counts.sum(-1), total).logit())
        values = counts.sum(1)
        common = values.sum(0) + 0.5
        model.value_logits.copy_((values + _SHRINKAGE_COUNT * common / common.sum(-1, keepdim=True)).log())
        model.log_rho.copy_(((weights.sum(0) + 1) / (weights.sum() + regimes)).log())

    def _total(self, weights: Tensor, cells: int) -> Tensor:
        """How often values were seen in each cell, at the floor or off it."""
        count, dim = self.cells.shape
        each = weights[:, None] if self.observed is None else weights[:, None] * self.observed
        by_pattern = each.new_zeros(count, each.shape[1]).index_add_(0, self.inverse, each).expand(-1, dim)
        return each.new_zeros(cells).index_add_(0, self.cells.flatten(), by_pattern.flatten())

    def scores(self, model: Floor) -> Tensor:
        """The log-probability of each query under its pattern, in each regime, ``(m, R)``."""
        outcomes = model.outcomes().permute(1, 2, 3, 0)
        floor = outcomes[:, :, -1].flatten(0, 1)
        bags = torch.nn.functional.embedding_bag
        if self.observed is None:
            silent = bags(self.cells, floor, mode="sum")[self.inverse]
        else:
            seen = self.observed.to(floor)
            silent = bags(self.cells[self.inverse], floor, mode="sum", per_sample_weights=seen)
        more = (outcomes[:, :, :-1] - outcomes[:, :, -1:]).flatten(0, 2)
        return silent.index_add(0, self.pair, more[self.off])


def _drawn_together(above: Tensor, total: Tensor) -> Tensor:
    """Rates off the floor ``(R, d, levels)``, rare cells drawn to what their dimension and their regime lead to expect.

    A dimension is drawn to the rate of all; in a regime, the odds of its dimensions move together.
    """
    of_regime = ((above.sum(1) + 0.5) / (total.sum(1) + 1))[:, None]
    overall = (above.sum((0, 1)) + 0.5) / (total.sum((0, 1)) + 1)
    of_dimension = (above.sum(0) + _SHRINKAGE_COUNT * overall) / (total.sum(0) + _SHRINKAGE_COUNT)
    expected = (of_dimension.logit() + of_regime.logit() - overall.logit()).sigmoid()
    return ((above + _SHRINKAGE_COUNT * expected) / (total + _SHRINKAGE_COUNT)).clamp(1e-5, 1 - 1e-5)


def _first_regimes(cells: Cells, rows: Tensor, regimes: int) -> Tensor:
    """A first guess: those that hear as much are of one regime."""
    heard = cells.heard[rows].sum(1)
    rank = heard.argsort(stable=True).argsort()
    guess = torch.nn.functional.one_hot(rank * regimes // len(rows), regimes).to(cells.patterns)
    return _FIRST_REGIME * guess + (1 - _FIRST_REGIME) / regimes


# --- with labels ---------------------------------------------------------------------------------------------


@dataclass
class _OfPairs:
    """A likelihood, learned from queries and the patterns they came from; whose regimes are shared out."""

    model: Floor
    pairs: Pairs

    def expect(self) -> tuple[float, Tensor]:
        """The log evidence, and the share of each regime in each pair ``(m, R)``."""
        scores = self.pairs.scores(self.model) + self.model.log_rho
        return float(scores.logsumexp(1).mean()), torch.softmax(scores, 1)

    def maximise(self, shares: Tensor) -> None:
        self.pairs.maximise(self.model, shares)


@torch.no_grad()
def fit_pairs(cells: Cells, rows: Tensor, origins: Tensor, regimes: int = 1) -> Floor:
    """Fit regimes to pairs.

    Args:
        cells: The patterns' levels and the bins of the queries.
        rows: The queries to learn from, ``(m,)``.
        origins: Their origins, ``(m,)``.
        regimes: The number of regimes.
    """
    learner = _OfPairs(_of_regimes(cells.empty, regimes), cells.pairs(rows, origins))
    learner.maximise(_first_regimes(cells, rows, regimes))
    em.iterate(learner, _STEPS_OF_PAIRS if regimes > 1 else 0)
    return learner.model


def _of_regimes(empty: Floor, regimes: int) -> Floor:
    model = type(empty)(**{**empty.arguments(), "regimes": regimes}).to(empty.edges)
    model.cuts.copy_(empty.cuts)
    model.edges.copy_(empty.edges)
    return model


@torch.no_grad()
def by_retrieval(validation: CrossValidation) -> tuple[Floor, HeldOut]:
    """As many regimes as retrieve best on origins that were not seen; more have to be better by more than chance."""
    data = validation.data
    seen = data.patterns, data.queries, data.observed
    cells, origins = Cells(begin(*seen), *seen), data.all_origins

    def judged(regimes: int) -> HeldOut:
        return validation.evaluate(lambda rows: fit_pairs(cells, rows, origins[rows], regimes))

    regimes, held_out = 1, judged(1)
    for more in REGIMES[1:]:
        if (second := judged(more)).surer_than(held_out):
            regimes, held_out = more, second
    return fit_pairs(cells, data.rows, origins, regimes), held_out


# --- without labels, or with a few ---------------------------------------------------------------------------


@dataclass
class _OfQueries:
    """A likelihood, learned from the queries in ``rows``; an origin of -1 is shared out among the likeliest patterns.

    Shares are tempered by :func:`trust`, so that the evidence may fall.
    """

    model: Floor
    cells: Cells
    rows: Tensor
    origins: Tensor
    log_prior: Tensor
    generator: torch.Generator

    def expect(self) -> tuple[float, tuple[Tensor, Tensor]]:
        """The tempered log evidence, and what :func:`_shared_out` says."""
        model, cells, rows = self.model, self.cells, self.rows
        scores = model.by_regime(cells.patterns, cells.queries[rows], cells.seen(rows)) + model.log_rho
        logits = trust(model, cells, rows, scores, self.generator) * scores
        bound = (logits.logsumexp(-1) + self.log_prior).logsumexp(1).mean()
        return float(bound), _shared_out(logits, self.origins, self.log_prior)

    def maximise(self, shares: tuple[Tensor, Tensor]) -> None:
        candidates, weights = shares
        copies = self.rows.repeat_interleave(candidates.shape[1])
        self.cells.pairs(copies, candidates.flatten()).maximise(self.model, weights)


@torch.no_grad()
def fit_queries(cells: Cells, rows: Tensor, origins: Tensor, log_prior: Tensor, regimes: int, seed: int) -> Floor:
    """Fit regimes to queries of which some origins may be known.

    Args:
        cells: The patterns' levels and the bins of the queries.
        rows: The queries to learn from, ``(m,)``.
        origins: Their origins, ``(m,)``; one of -1 is shared out among the likeliest patterns.
        log_prior: The log prior of each pattern, ``(N,)``.
        regimes: The number of regimes.
        seed: Seed of what is drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    learner = _OfQueries(_of_regimes(cells.empty, regimes), cells, rows, origins, log_prior, generator)
    first = _first_regimes(cells, rows, regimes)[:, None]
    logits = _FIRST_ORIGIN * _cosines(cells, rows)[..., None] + first.log()
    learner.maximise(_shared_out(logits, origins, log_prior))
    em.iterate(learner, _STEPS_OF_QUERIES - 1)
    return learner.model


def _cosines(cells: Cells, rows: Tensor) -> Tensor:
    """Cosines of what is above the floor, ``(n, N)``."""

    def directions(values: Tensor) -> Tensor:
        above = values - cells.empty.floor
        above = above / above.abs().amax(1, keepdim=True).clamp_min(cells.empty.slack or 1e-30)
        return torch.nn.functional.normalize(above)

    asked = torch.where(cells.heard[rows], cells.queries[rows], cells.empty.floor)
    return directions(asked) @ directions(cells.patterns).mT


def _shared_out(logits: Tensor, origins: Tensor, log_prior: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest patterns of each query ``(n, K)``, and the weight of each in each regime ``(n * K, R)``."""
    patterns, regimes = logits.shape[1:]
    by_pattern = (logits.logsumexp(-1) + log_prior).masked_fill(ruled_out(origins, patterns), -torch.inf)
    best = by_pattern.topk(min(_CANDIDATES, patterns))
    within = torch.log_softmax(logits.gather(1, best.indices[..., None].expand(-1, -1, regimes)), -1)
    weights = (torch.log_softmax(best.values, 1)[..., None] + within).exp()
    return best.indices, weights.flatten(0, 1)


def trust(model: Floor, cells: Cells, rows: Tensor, scores: Tensor, generator: torch.Generator) -> float:
    r"""The inverse temperature that makes up for dimensions that are not independent.

    How much better a query's likeliest pattern explains it than another pattern drawn at random is a sum over
    dimensions, :math:`\sum_i \delta_i`. If they were independent, its variance would be the sum of theirs, which the
    likelihood knows; what it is in truth is larger by some factor, and so are the scores.

    Args:
        scores: ``(n, N, R)``.
    """
    some = torch.randperm(len(rows), generator=generator)[:_CALIBRATION_QUERIES].to(rows.device)
    rivals = torch.randint(len(cells.patterns), (len(some),), generator=generator).to(rows.device)
    best = scores[some].flatten(1).argmax(1)
    origins, regimes = best // scores.shape[2], (best % scores.shape[2])[:, None]
    outcomes, dims = model.outcomes(), torch.arange(model.dim, device=rows.device)
    own, other = (outcomes[regimes, dims, cells.levels[one]] for one in (origins, rivals))
    gap, chance = own - other, own.exp()
    mean = (chance * gap).sum(-1)
    variance = (chance * gap.square()).sum(-1) - mean.square()
    excess = gap.gather(-1, cells.places[rows[some]][..., None]).squeeze(-1) - mean
    if cells.observed is not None:
        seen = cells.observed[rows[some]]
        excess, variance = excess * seen, variance * seen
    return 1 / max(1.0, float(excess.sum(1).square().sum() / variance.sum().clamp_min(1e-12)))


@torch.no_grad()
def by_evidence(cells: Cells, rows: Tensor, origins: Tensor, log_prior: Tensor, seed: int) -> Floor:
    """As many regimes as explain queries better that were not learned from, by more than chance.

    Args:
        cells, rows, origins, log_prior: As in :func:`fit_queries`.
        seed: Seed of the hold-out split and of the fits.
    """
    learn, judge = holdout_split(len(rows), seed, rows.device)

    def judged(regimes: int) -> Tensor:
        model = fit_queries(cells, rows[learn], origins[learn], log_prior, regimes, seed)
        return _evidence(model, cells, rows[judge], log_prior)

    regimes = 1
    if len(rows) >= 8 * REGIMES[-1]:
        evidence = judged(1)
        for more in REGIMES[1:]:
            if not more_than_chance((second := judged(more)) - evidence):
                break
            regimes, evidence = more, second
    return fit_queries(cells, rows, origins, log_prior, regimes, seed)


def _evidence(model: Floor, cells: Cells, rows: Tensor, log_prior: Tensor) -> Tensor:
    return (model(cells.patterns, cells.queries[rows], cells.seen(rows)) + log_prior).logsumexp(1)


# --- what there is to learn from decides ---------------------------------------------------------------------


@torch.no_grad()
def learn(data: TrainingData, seed: int = 0) -> tuple[Floor, FitReport]:
    """The likelihood with a floor that explains the queries, and how the fit went."""
    patterns, queries, observed = data.patterns, data.queries, data.observed
    origins, log_prior = data.all_origins, data.log_priors
    cells = Cells(begin(patterns, queries, observed), patterns, queries, observed)
    # In any order, those with known origins first.
    rows = torch.randperm(len(queries), generator=torch.Generator().manual_seed(seed)).to(queries.device)
    rows = rows[(origins[rows] < 0).long().argsort(stable=True)]
    some = rows[: max(64, _MAX_SCORES // len(patterns))]
    if bool((origins < 0).any()):
        model = by_evidence(cells, some, origins[some], log_prior, seed)
    elif len(origins.unique()) > 1:
        model, _ = by_retrieval(CrossValidation(data, seed))
    else:
        model = fit_pairs(cells, rows, origins[rows])
    loss = -float(_evidence(model, cells, some[-_CALIBRATION_QUERIES:], log_prior).mean())
    return model, FitReport("em", loss, 0, converged=True)
