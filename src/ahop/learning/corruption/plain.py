"""What anyone would try first: plain metrics, whitening and ridge regression, as likelihoods.

From pairs, each is a closed form, so that a choice can afford to try all of them. Without, a metric has a temperature
to learn, by expectation maximisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from ahop.learning.corruption.lessons import Lessons

# How strongly ridge regression is drawn to zero, in units of the queries' mean square.
_STRENGTHS = (1e-4, 1e-2, 1e-1, 1.0)
METRICS = ("distance", "manhattan", "cosine")
_IN_WORDS = {"distance": "distance", "manhattan": "L1", "cosine": "cosine"}
_TINY = 1e-12
# Values' worth of belief that noise is as wide as the patterns are spread.
_BELIEF = 4.0


@dataclass(frozen=True)
class Pairs:
    """Queries ``(n, d')`` and the patterns that they came from ``(n, d)``; values of nought lie at ``zero``."""

    queries: Tensor
    origins: Tensor
    zero: float = 0.0


# How each side is counted, and the metric that compares them.
RECIPES = tuple(product(("", "centred", "z-scored"), METRICS))


def named(alignment: str, metric: str) -> str:
    """What tables and reports call it."""
    return f"{alignment} {_IN_WORDS[metric]}".strip()


@torch.no_grad()
def metric(kind: Any, alignment: str, metric: str, pairs: Pairs) -> dict[str, Any]:
    """One of the recipes, by its name; ``kind`` is :class:`ahop.similarity.Nearest`."""
    model = _aligned(kind, pairs.origins, pairs.queries, pairs.zero, alignment, metric)
    return {named(alignment, metric): _tempered(model, pairs)}


@torch.no_grad()
def distance(kind: Any, pairs: Pairs, observed: Tensor | None = None) -> Any:
    """The distance of rows as they are: all that one pair can teach is how far queries lie from their patterns.

    That is drawn to how far a memory expects them that has learned nothing, as if it knew a few values of it.
    """
    model = kind(pairs.origins.shape[1]).to(pairs.queries)
    squares = (pairs.queries - pairs.origins).square()
    seen = torch.ones_like(squares) if observed is None else observed.to(squares)
    mean = (float((squares * seen).sum()) + _BELIEF) / (float(seen.sum()) + _BELIEF)
    model.log_beta.fill_(-math.log(2 * mean + _TINY))
    return model


def _aligned(kind: Any, patterns: Tensor, queries: Tensor, zero: float, alignment: str, metric: str) -> Any:
    """Each side counted as the alignment says; at no temperature yet."""
    model = kind(patterns.shape[1], metric).to(queries)
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


def _tempered(model: Any, pairs: Pairs) -> Any:
    """The same at the inverse temperature under which the pairs are likeliest."""
    stored, asked = model.stored(pairs.origins), model.asked(pairs.queries)
    if model.metric == "cosine":
        mean = float(nn.functional.cosine_similarity(stored, asked).mean())
    elif model.metric == "distance":
        mean = -float((stored - asked).square().sum(1).mean())
    else:
        mean = -float((stored - asked).abs().sum(1).mean())
    model.log_beta.fill_(_log_beta(model, mean))
    return model


def _log_beta(model: Any, mean: float) -> float:
    """The log inverse temperature under which pairs are likeliest whose similarity is ``mean`` on average."""
    if model.metric == "cosine":
        # The usual approximation for von Mises and Fisher's distribution (Banerjee and others, 2005).
        mean = min(max(mean, 0.01), 0.9999)
        return math.log(mean * max(1.0, model.dim - mean**2) / (1 - mean**2))
    return math.log(model.dim / (2 if model.metric == "distance" else 1) / (_TINY * model.dim - mean))


@torch.no_grad()
def fit_queries(kind: Any, here: Lessons, alignment: str, metric: str, steps: int) -> Any:
    """A plain metric from queries whose origins are shared out among all patterns, but for those that are known."""
    model = _aligned(kind, here.patterns, here.queries, here.zero, alignment, metric)
    similar = model.similarity(model.stored(here.patterns), model.asked(here.queries)).double()
    log_prior = 0.0 if here.log_prior is None else here.log_prior
    known = None if here.origins is None else (here.origins >= 0).nonzero().squeeze(1)
    # From the nearest patterns, which is too sure, to what explains the queries.
    log_beta = _log_beta(model, float(similar.amax(1).mean()))
    for _ in range(steps):
        shares = torch.softmax(math.exp(log_beta) * similar + log_prior, 1)
        if known is not None and here.origins is not None:
            shares[known] = nn.functional.one_hot(here.origins[known], len(here.patterns)).to(shares)
        before, log_beta = log_beta, _log_beta(model, float((shares * similar).sum(1).mean()))
        if abs(log_beta - before) < 1e-3:
            break
    model.log_beta.fill_(log_beta)
    return model


def log_volume(model: Any, queries: Tensor) -> Tensor:
    r"""What makes log densities of the scores of a metric, ``(n,)``: nought for the distances, which have it.

    For the cosine it is the constant of von Mises and Fisher's density of the direction, with a log-normal density of
    the length r, as :math:`\mathrm{d}x = r^{d-1} \, \mathrm{d}r \, \mathrm{d}u`.
    """
    if model.metric != "cosine":
        return queries.new_zeros(len(queries))
    log_length = model.asked(queries).double().norm(dim=1).clamp_min(_TINY).log()
    spread = log_length.std(unbiased=False).clamp_min(1e-3)
    length = -((log_length - log_length.mean()) / spread).square() / 2 - spread.log() - math.log(2 * math.pi) / 2
    beta, order, dim = float(model.log_beta.exp()), model.dim / 2 - 1, model.dim
    # The Bessel function by its uniform expansion (Debye), which neither overflows nor vanishes.
    root = math.hypot(order, beta)
    log_bessel = root + order * math.log(beta / (order + root)) - math.log(2 * math.pi * root) / 2
    direction = order * math.log(beta) - dim / 2 * math.log(2 * math.pi) - log_bessel
    return length + direction - dim * log_length - model.log_query_scale.sum()


@torch.no_grad()
def ridges(kind: Any, pairs: Pairs) -> dict[str, Any]:
    """Ridge regression of patterns on queries, of several strengths, compared by two metrics."""
    queries, origins = pairs.queries.double(), pairs.origins.double()
    centre, mean = queries.mean(0), origins.mean(0)
    left, values, right = torch.linalg.svd(queries - centre, full_matrices=False)
    wanted = left.mT @ (origins - mean)
    unit = float((queries - centre).square().sum(0).mean()) + _TINY
    found = {}
    for strength in _STRENGTHS:
        matrix = wanted.mT @ ((values / (values.square() + strength * unit))[:, None] * right)
        for metric in ("distance", "cosine"):
            model = kind(origins.shape[1], metric, queries.shape[1], mapped=True).to(pairs.queries)
            model.pattern_centre.copy_(mean)
            model.query_centre.copy_(centre)
            model.matrix.copy_(matrix)
            found[f"ridge {strength:g}, {_IN_WORDS[metric]}"] = _tempered(model, pairs)
    return found


@torch.no_grad()
def whitening(kind: Any, pairs: Pairs) -> dict[str, Any]:
    """Distances after whitening by the shrunk covariance of residuals (Ledoit and Wolf, 2004).

    The covariance is a multiple of the identity and as many hidden causes as there are residuals, so that ``kind`` is
    :class:`ahop.similarity.Correlated`, and nothing of ``d`` x ``d`` is made where pairs are few.
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
    model = kind(dim, len(values), tails=math.inf).to(gaps)
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
