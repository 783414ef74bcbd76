"""What anyone would try first: plain metrics, whitening and ridge regression, as likelihoods.

From pairs, each is a closed form, so that a choice can afford to try all of them. Without, a metric has a temperature
to learn, by expectation maximisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn

from ahop._blocks import parts_of, split
from ahop.similarity.density import Density
from ahop.similarity.families import em, stand_ins
from ahop.similarity.families.correlated.model import Correlated
from ahop.similarity.families.nearest.model import Nearest
from ahop.similarity.families.training import TrainingData

# How strongly ridge regression is drawn to zero, in units of the queries' mean square.
_STRENGTHS = (1e-4, 1e-2, 1e-1, 1.0)
METRICS = ("distance", "manhattan", "cosine")
_IN_WORDS = {"distance": "distance", "manhattan": "L1", "cosine": "cosine"}
_TINY = 1e-12
# Values' worth of belief that noise is as wide as the patterns are spread.
_BELIEF = 4.0
# Steps of expectation maximisation, at most, and by how much the log temperature still moves at the last one.
_STEPS = 30
_RESTS = 1e-3


@dataclass(frozen=True)
class Pairs:
    """Queries ``(n, d')`` and the patterns that they came from ``(n, d)``; values of nought lie at ``zero``; which
    values of the queries were observed ``(n, d')``, if not all."""

    queries: Tensor
    origins: Tensor
    zero: float = 0.0
    observed: Tensor | None = None


# How each side is counted, and the metric that compares them.
RECIPES = tuple(product(("", "centred", "z-scored"), METRICS))


def named(alignment: str, metric: str) -> str:
    """What tables and reports call it."""
    return f"{alignment} {_IN_WORDS[metric]}".strip()


@torch.no_grad()
def metric(alignment: str, metric: str, pairs: Pairs) -> dict[str, Density]:
    """One of the recipes, by its name."""
    model = _aligned(pairs.origins, pairs.queries, pairs.zero, alignment, metric, pairs.observed)
    return {named(alignment, metric): _tempered(model, pairs)}


@torch.no_grad()
def distance(pairs: Pairs, observed: Tensor | None = None) -> Nearest:
    """The distance of rows as they are: all that one pair can teach is how far queries lie from their patterns.

    That is drawn to how far a memory expects them that has learned nothing, as if it knew a few values of it.
    """
    model = Nearest(pairs.origins.shape[1]).to(pairs.queries)
    squares = (pairs.queries - pairs.origins).square()
    seen = torch.ones_like(squares) if observed is None else observed.to(squares)
    mean = (float((squares * seen).sum()) + _BELIEF) / (float(seen.sum()) + _BELIEF)
    model.log_beta.fill_(-math.log(2 * mean + _TINY))
    return model


def _aligned(
    patterns: Tensor, queries: Tensor, zero: float, alignment: str, metric: str, observed: Tensor | None = None
) -> Nearest:
    """Each side counted as the alignment says; at no temperature yet."""
    if observed is not None:
        # At the mean, which changes neither that nor, by much, the spread.
        mean = (queries * observed).sum(0) / observed.sum(0).clamp_min(1)
        queries = torch.where(observed, queries, mean)
    model = Nearest(patterns.shape[1], metric).to(queries)
    sides = (
        (patterns, model.pattern_centre, model.log_pattern_scale),
        (queries, model.query_centre, model.log_query_scale),
    )
    for rows, centre, log_scale in sides:
        centre.copy_(rows.mean(0)) if alignment else centre.fill_(zero)
        if alignment == "z-scored":
            log_scale.copy_(_deviation(rows).log())
    return model


def _deviation(rows: Tensor) -> Tensor:
    """The standard deviation of each column, and 1 for one that does not vary."""
    found = rows.std(0, unbiased=False)
    return torch.where(found > 1e-6 * found.max(), found, 1.0)


def _tempered(model: Nearest, pairs: Pairs) -> Nearest:
    """The same at the inverse temperature under which the pairs are likeliest."""
    stored, asked = model.stored(pairs.origins), model.asked(pairs.queries)
    if model.metric == "cosine":
        mean = float(nn.functional.cosine_similarity(stored, asked).mean())
    else:
        gaps = (stored - asked).square() if model.metric == "distance" else (stored - asked).abs()
        seen = torch.ones_like(gaps) if pairs.observed is None else pairs.observed.to(gaps)
        mean = -model.dim * float((gaps * seen).sum() / seen.sum().clamp_min(1))
    model.log_beta.fill_(_log_beta(model, mean))
    return model


def _log_beta(model: Nearest, mean: float) -> float:
    """The log inverse temperature under which pairs are likeliest whose similarity is ``mean`` on average."""
    if model.metric == "cosine":
        # The usual approximation for von Mises and Fisher's distribution (Banerjee and others, 2005).
        mean = min(max(mean, 0.01), 0.9999)
        return math.log(mean * max(1.0, model.dim - mean**2) / (1 - mean**2))
    return math.log(model.dim / (2 if model.metric == "distance" else 1) / (_TINY * model.dim - mean))


class _Temperature:
    """That of an aligned metric, from queries whose origins are shared out among all patterns, but for those known."""

    def __init__(self, model: Nearest, data: TrainingData) -> None:
        self.model, self.data = model, data
        stored, asked, observed = model.stored(data.patterns), model.asked(data.queries), data.observed
        size = 3 * 8 * len(stored)

        def table(part: slice) -> Tensor:
            return model.similarity(stored, asked[part], None if observed is None else observed[part]).double()

        self.parts = split(len(asked), size)
        self.tables = parts_of(table, len(asked), size)
        # A similarity of what was observed, for that of whole rows.
        self.whole = 1.0 if observed is None else 1 / max(_TINY, float(observed.double().mean()))
        # From the nearest patterns, which is too sure, to what explains the queries.
        nearest = float(torch.cat([similar.amax(1) for similar in self.tables()]).mean())
        self.log_beta = _log_beta(model, self.whole * nearest)
        model.log_beta.fill_(self.log_beta)

    def expect(self) -> tuple[float, float]:
        """The log evidence, and how similar queries are to the patterns that they are shared out among, on average."""
        data, evidence, means = self.data, [], []
        for part, similar in zip(self.parts, self.tables(), strict=True):
            logits = math.exp(self.log_beta) * similar + (0.0 if data.log_prior is None else data.log_prior)
            shares, origins = torch.softmax(logits, 1), data.all_origins[part]
            known = (origins >= 0).nonzero().squeeze(1)
            shares[known] = nn.functional.one_hot(origins[known], len(data.patterns)).to(shares)
            evidence.append(logits.logsumexp(1))
            means.append((shares * similar).sum(1))
        level = self.model.level(data.observed)
        constant = (level.squeeze(-1) if level.ndim else level) + self.model.log_volume(data.queries)
        return float((torch.cat(evidence) + constant).mean()), self.whole * float(torch.cat(means).mean())

    def maximise(self, shares: float) -> bool:
        before, self.log_beta = self.log_beta, _log_beta(self.model, shares)
        self.model.log_beta.fill_(self.log_beta)
        return abs(self.log_beta - before) < _RESTS


@torch.no_grad()
def fit_queries(data: TrainingData, alignment: str, metric: str) -> Nearest:
    """A plain metric at the temperature that explains the queries, whether or not their origins are known."""
    model = _aligned(data.patterns, data.queries, data.zero, alignment, metric, data.observed)
    # Which are nearest is the same at any temperature: one look at all patterns is enough.
    em.iterate(_Temperature(model, stand_ins.of(data, model).data), _STEPS)
    return model


@torch.no_grad()
def ridges(pairs: Pairs) -> dict[str, Density]:
    """Ridge regression of patterns on queries, of several strengths, compared by two metrics."""
    queries, origins = pairs.queries.double(), pairs.origins.double()
    centre, mean = queries.mean(0), origins.mean(0)
    left, values, right = torch.linalg.svd(queries - centre, full_matrices=False)
    wanted = left.mT @ (origins - mean)
    unit = float((queries - centre).square().sum(0).mean()) + _TINY
    found: dict[str, Density] = {}
    for strength in _STRENGTHS:
        matrix = wanted.mT @ ((values / (values.square() + strength * unit))[:, None] * right)
        for metric in ("distance", "cosine"):
            model = Nearest(origins.shape[1], metric, queries.shape[1], mapped=True).to(pairs.queries)
            model.pattern_centre.copy_(mean)
            model.query_centre.copy_(centre)
            model.matrix.copy_(matrix)
            found[f"ridge {strength:g}, {_IN_WORDS[metric]}"] = _tempered(model, pairs)
    return found


@torch.no_grad()
def whitening(pairs: Pairs) -> dict[str, Density]:
    """Distances after whitening by the shrunk covariance of residuals (Ledoit and Wolf, 2004).

    The covariance is a multiple of the identity and as many hidden causes as there are residuals, so that the model
    is a :class:`ahop.similarity.Correlated`, and nothing of ``d`` x ``d`` is made where pairs are few.
    """
    gaps = (pairs.queries - pairs.origins).double()
    bias = gaps.mean(0)
    gaps = gaps - bias
    count, dim = gaps.shape
    values, directions = _principal(gaps)
    mean = float(values.sum()) / dim
    # Both squared norms are per dimension, as in the paper.
    spread = float((values.square().sum() / dim) - mean**2)
    by_chance = float(gaps.square().sum(1).square().mean() / dim - values.square().sum() / dim) / count
    shrinkage = min(1.0, by_chance / spread) if spread > _TINY * mean**2 else 1.0
    model = Correlated(dim, len(values), tails=math.inf).to(gaps)
    model.bias.copy_(bias)
    model.loading.copy_(directions * ((1 - shrinkage) * values).clamp_min(0).sqrt())
    model.log_psi.fill_(math.log(max(shrinkage, 1e-6) * mean + _TINY))
    return {"whitening": model}


def _principal(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The positive eigenvalues of the covariance of centred rows ``(k,)``, and their directions ``(d, k)``."""
    count, dim = rows.shape
    gram = rows @ rows.mT / count if count < dim else rows.mT @ rows / count
    values, vectors = torch.linalg.eigh(gram)
    sound = values > 1e-10 * values.amax().clamp_min(_TINY)
    values, vectors = values[sound], vectors[:, sound]
    if count < dim:
        vectors = rows.mT @ vectors / (count * values).sqrt()
    return values, vectors
