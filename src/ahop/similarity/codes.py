"""A learned likelihood as plain dot products between encoded patterns and encoded queries."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._checks import as_tensor, positive
from ahop.similarity.base import Similarity
from ahop.similarity.reranking import Table

# Places at which a term is looked at: so many to the width of the noise along the values of patterns, within bounds;
# and along those of queries, to tell common values from rare ones.
_POINTS_PER_WIDTH = 8
_FEWEST_POINTS, _MOST_POINTS = 48, 256
_SHARPEST = 1.3 * _MOST_POINTS
_QUERY_POINTS = 256
# Quantiles that tell how values are spread.
_QUANTILES = 257
# How far beyond the tabulated values others may lie, in units of their range.
_MARGIN = 0.05
# Terms from which on dot products are faster, their making included; a GPU has so many at once that they never are.
_MANY_TERMS = 2**28


class ByDimension(Protocol):
    """What is asked of a likelihood that is a sum over dimensions, as :class:`ahop.similarity.Likelihood` has it."""

    dim: int
    low: float
    high: float
    centre: float
    shifted: bool
    bias: nn.Parameter
    gain: nn.Parameter

    @property
    def sigma(self) -> Tensor: ...

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor: ...

    def narrowed(self, part: slice) -> ByDimension: ...


class NoCodesError(ValueError):
    """No dot products can stand for this likelihood, or for these queries."""


class Asked(NamedTuple):
    """Codes to ask with ``(Q, w)``, and the way from their dot products ``(Q, n)`` to log-likelihoods: a constant of
    the query is added ``(Q, 1)``, or else a function is taken that keeps the order of each query's."""

    codes: Tensor
    level: Tensor | None = None
    bend: Callable[[Tensor], Tensor] | None = None

    def finish(self, products: Tensor) -> Tensor:
        """Log-likelihoods."""
        if self.bend is not None:
            return self.bend(products)
        return products if self.level is None else products + self.level


class Steps(NamedTuple):
    """Values that stand for all others of their dimension ``(L, d)``, and the edges between them ``(L - 1, d)``."""

    values: Tensor
    edges: Tensor


class Codes(Similarity, abstract=True):
    """Scores that are dot products of two codes, so that any vector index can serve a learned similarity."""

    dim: int

    @abstractmethod
    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store, ``(N, w)``."""

    @abstractmethod
    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with, and what their dot products mean."""

    def encode_queries(self, queries: Tensor) -> Tensor:
        """The codes to ask with, ``(Q, w)``."""
        return self.ask(queries).codes

    def steps(self, patterns: Tensor, count: int) -> Steps | None:
        """At most so many values a dimension that tell its values apart; None where scores are no sums over dimensions.

        Codes of values are then codes of sums: those of a dimension stand side by side, as many for each.
        """
        return None

    def covers(self, patterns: Tensor) -> bool:
        """Whether codes of these patterns are as good as of those that they were made for."""
        return True

    def fit_float32(self, patterns: Tensor) -> bool:
        """Whether dot products with codes of these patterns are right in float32."""
        return True

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        return self.ask(queries, observed).codes @ self.encode_patterns(patterns).mT


class InnerProduct(Codes):
    r"""Dot products that are the scores of a sum over dimensions, up to a constant of the query.

    .. math:: s(\xi, x) = \phi(\xi)^\top \psi(x), \qquad
        \phi_{i,r}(\xi_i) = \sum_h \mathrm{hat}_h(\xi_i) V_{i,h,r}, \qquad
        \psi_{i,r}(x_i) = \sum_h \omega_{i,h} V_{i,h,r} \, (q_i(v_h, x_i) - \text{mean})

    Each dimension has ``rank`` functions of a pattern's value, linear between evenly spaced places v, and as many of a
    query's value, which project its terms at those places. :func:`inner_product` makes them.

    Args:
        likelihood: What was learned.
        rank: Functions a dimension.
        values: First and last place along the patterns' values.
        places: How many.

    Shape:
        patterns ``(N, d)`` to ``(N, d * rank)``, queries ``(Q, d)`` to ``(Q, d * rank)``.
    """

    dim: int
    table: Tensor
    weights: Tensor

    def __init__(self, likelihood: ByDimension, rank: int, values: tuple[float, float], places: int) -> None:
        super().__init__()
        self.likelihood, self.dim, self.rank = likelihood, likelihood.dim, rank
        self.values, self.places = values, places
        self.register_buffer("table", torch.zeros(self.dim, places, rank))
        self.register_buffer("weights", torch.ones(self.dim, places) / places)

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        r"""The codes :math:`\phi(\xi)` to store."""
        patterns = as_tensor(patterns, "patterns").to(self.table)
        low, high = self.values
        position = ((patterns - low) * ((self.places - 1) / (high - low))).clamp(0, self.places - 1)
        left = position.floor().clamp_max(self.places - 2).long()
        dims = torch.arange(self.dim, device=patterns.device)
        codes = torch.lerp(self.table[dims, left], self.table[dims, left + 1], (position - left)[..., None])
        return codes.flatten(-2)

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        r"""The codes :math:`\psi(x)`, of observed dimensions alone; scores are products and a constant of the query."""
        queries = as_tensor(queries, "queries").to(self.table)
        places = torch.linspace(*self.values, self.places, dtype=queries.dtype, device=queries.device)
        basis = self.table * self.weights[..., None]
        # The mean over stored values is the constant of the query, and goes.
        basis = basis - self.weights[..., None] * basis.sum(1, keepdim=True)
        parts, means = [queries.new_empty(0, self.dim, self.rank)], [queries.new_empty(0, self.dim)]
        for part in split(len(queries), 4 * self.dim * self.places * queries.element_size()):
            terms = self.likelihood.terms(places[:, None, None].expand(-1, 1, self.dim), queries[part])
            parts.append(torch.einsum("hqi,ihr->qir", terms, basis))
            means.append(torch.einsum("hqi,ih->qi", terms, self.weights))
        codes, constant = torch.cat(parts), torch.cat(means)
        if observed is not None:
            codes, constant = codes * observed[..., None], constant * observed
        return Asked(codes.flatten(-2), constant.sum(-1, keepdim=True))

    def covers(self, patterns: Tensor) -> bool:
        """Whether their values lie within those that were tabulated, or hardly beyond."""
        low, high = self.values
        slack = _MARGIN * (high - low)
        return not patterns.numel() or low - slack <= float(patterns.min()) <= float(patterns.max()) <= high + slack

    def steps(self, patterns: Tensor, count: int) -> Steps:
        """The middles of ranges that are equally full and wide, half each: few values far off are told apart too."""
        levels = torch.linspace(0, 1, 2 * count + 1, dtype=patterns.dtype, device=patterns.device)[1::2].contiguous()
        shares = torch.linspace(0, 1, _QUANTILES, dtype=patterns.dtype, device=patterns.device)
        values = torch.stack([_between(column.quantile(shares), shares, levels) for column in patterns.mT], 1)
        return Steps(values, (values[1:] + values[:-1]) / 2)


def refuse_masks(observed: Tensor | None, codes: Similarity) -> None:
    """Refuse queries of which some values are missing, for codes that mix dimensions."""
    if observed is not None and not bool(observed.all()):
        raise NoCodesError(f"observed is not supported by {type(codes).__name__}: it asks with complete queries")


class Tempered(Codes):
    """Codes whose dot products are those of others, times an inverse temperature.

    Args:
        codes: The others.
        beta: The inverse temperature.
    """

    dim: int

    def __init__(self, codes: Codes, beta: float) -> None:
        super().__init__()
        self.codes, self.beta, self.dim, self.query_dim = codes, beta, codes.dim, codes.query_dim

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store."""
        return self.codes.encode_patterns(patterns)

    def covers(self, patterns: Tensor) -> bool:
        return self.codes.covers(patterns)

    def fit_float32(self, patterns: Tensor) -> bool:
        return self.codes.fit_float32(patterns)

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with."""
        asked = self.codes.ask(queries, observed)
        if asked.bend is None:
            return Asked(self.beta * asked.codes, None if asked.level is None else self.beta * asked.level)
        return Asked(self.beta * asked.codes, bend=lambda products: self.beta * asked.finish(products / self.beta))


@torch.no_grad()
def inner_product(likelihood: ByDimension, patterns: Tensor, tolerance: float) -> InnerProduct:
    r"""Dot products that equal the scores of stored patterns, up to a constant of the query.

    Each dimension's term is tabulated over values of patterns and queries, its mean over the stored values is
    taken away (that is the constant), and what is left is split into a sum of products by its singular values.
    The rank is the smallest that leaves a root mean square error of ``tolerance`` in a score.

    Args:
        likelihood: What was learned.
        patterns: ``(N, d)``; codes are good for these and for values between theirs.
        tolerance: In units of the scores, which are natural logarithms.
    """
    tolerance = positive(tolerance, "tolerance")
    inside = _ends(patterns.min(), patterns.max())
    wanted = _wanted(likelihood, inside)
    if wanted > _SHARPEST:
        width, reach = float(likelihood.sigma.min()), inside[1] - inside[0]
        raise NoCodesError(f"a noise of {width:.2g} is too sharp for dot products over values that span {reach:.2g}")
    places = int(min(max(wanted, _FEWEST_POINTS), _MOST_POINTS))
    values = torch.linspace(*inside, places, dtype=torch.float64, device=patterns.device)

    parts = []
    for part in split(likelihood.dim, 4 * places * _QUERY_POINTS * 8):
        exact = likelihood.narrowed(part)
        asked = _asked(exact, inside)
        # (values, 1, d) against (queries, d), then dimensions first.
        terms = exact.terms(values[:, None, None].expand(-1, 1, exact.dim), asked).permute(2, 1, 0)
        stored = _weights(patterns[:, part].double(), inside, places)
        asked_for = (terms.exp() * stored[:, None]).sum(-1)
        asked_for = asked_for / asked_for.sum(-1, keepdim=True)
        centred = terms - (terms * stored[:, None]).sum(-1, keepdim=True)
        # Weighed by how common the values are, so that the error that is left is the one that will be met.
        weighed = centred * asked_for.sqrt()[..., None] * stored.sqrt()[:, None]
        squares, vectors = torch.linalg.eigh(weighed.mT @ weighed)
        parts.append((squares.clamp_min(0).flip(-1), vectors.flip(-1), stored))
    squares, vectors, stored = (torch.cat(tensors) for tensors in zip(*parts, strict=True))

    left = squares.sum(0).flip(0).cumsum(0).flip(0)
    rank = max(1, int((left > tolerance**2).sum()))
    # A copy: what is learned later must not change codes that are already stored.
    code = InnerProduct(copy.deepcopy(likelihood), rank, inside, places)
    code.table.copy_(vectors[..., :rank] / stored.sqrt()[..., None])
    code.weights.copy_(stored)
    return code.to(patterns)


@torch.no_grad()
def approximate(likelihood: ByDimension, patterns: Tensor, queries: int, tolerance: float = 0.01) -> Table | None:
    """The likelihood's own scores by way of dot products, or None where these would not be faster.

    Args:
        likelihood: What scores.
        patterns: ``(N, d)``.
        queries: How many queries are to be scored.
        tolerance: How far scores may be off.

    Returns:
        What gives the scores ``(Q, N)`` of queries ``(Q, d)``; None where it would not be faster.
    """
    if patterns.is_cuda or queries * patterns.numel() < _MANY_TERMS:
        return None
    wanted = _wanted(likelihood, _ends(patterns.min(), patterns.max()))
    # The singular values of each dimension take time as well.
    if wanted > _SHARPEST or queries * len(patterns) < 16 * max(wanted, _FEWEST_POINTS) ** 2:
        return None
    code = inner_product(likelihood, patterns, tolerance)

    def table(queries: Tensor) -> Tensor:
        asked = code.encode_queries(queries)
        # Codes are many times as wide as patterns: those of a few patterns at a time.
        parts = split(len(patterns), 4 * asked.shape[1] * asked.element_size())
        products = torch.cat([asked @ code.encode_patterns(patterns[part]).mT for part in parts], 1)
        # The constant of each query, from its exact score with one pattern.
        first = likelihood.terms(patterns[:1], queries).sum(-1, keepdim=True)
        return products + (first - products[:, :1])

    return table


def _between(places: Tensor, shares: Tensor, levels: Tensor) -> Tensor:
    """Where a distribution reaches these levels that is half like values with such quantiles, half even over them."""
    width = (places[-1] - places[0]).clamp_min(torch.finfo(places.dtype).tiny)
    # Even shares would jump over a gap between values: places within it are looked at as well.
    even = torch.lerp(places[0], places[-1], shares)
    every, _ = torch.cat([places, even]).sort()
    right = torch.searchsorted(places, every, right=True).clamp(1, len(places) - 1)
    low, high = places[right - 1], places[right]
    part = torch.where(high > low, (every - low) / (high - low), 1.0).clamp(0, 1)
    reached = (torch.lerp(shares[right - 1], shares[right], part) + (every - places[0]) / width) / 2
    return every[torch.searchsorted(reached, levels).clamp_max(len(every) - 1)]


def _wanted(likelihood: ByDimension, ends: tuple[float, float]) -> float:
    gain = float(likelihood.gain.detach().abs().max())
    return _POINTS_PER_WIDTH * gain * (ends[1] - ends[0]) / float(likelihood.sigma.detach().min())


def _ends(low: Tensor, high: Tensor) -> tuple[float, float]:
    first, last = float(low), float(high)
    # Values that are all the same have no range, but a size.
    size = abs(first) or 1.0
    return (first, last) if last > first else (first - size, last + size)


def _asked(likelihood: ByDimension, inside: tuple[float, float]) -> Tensor:
    """Values that queries take in each dimension, ``(places, d)``."""
    bias, width, centre = likelihood.bias, 4 * likelihood.sigma.amax(0), likelihood.centre
    kept = torch.stack([centre + gain * (value - centre) for gain in likelihood.gain for value in inside])
    shift = bias if likelihood.shifted else torch.zeros_like(bias)
    low = torch.minimum(kept.min() + bias - width, likelihood.low + shift)
    high = torch.maximum(kept.max() + bias + width, likelihood.high + shift)
    steps = torch.linspace(0, 1, _QUERY_POINTS, dtype=bias.dtype, device=bias.device)[:, None]
    return low + (high - low) * steps


def _weights(values: Tensor, ends: tuple[float, float], places: int) -> Tensor:
    """How common each place is among the stored values of each dimension, ``(d, places)``; none is ruled out."""
    position = ((values - ends[0]) * ((places - 1) / (ends[1] - ends[0]))).round().long()
    counts = torch.zeros(values.shape[1], places, dtype=values.dtype, device=values.device)
    counts.scatter_add_(1, position.mT, torch.ones_like(values.mT))
    counts = counts + 0.1 * len(values) / places
    return counts / counts.sum(1, keepdim=True)
