"""The nearest neighbour as a likelihood: a plain metric, after each side was brought to common coordinates."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._checks import as_tensor, choice
from ahop._queries import Queries
from ahop.similarity.base import Decomposable, Similarity
from ahop.similarity.codes import Asked, Codes, NoCodesError, refuse_masks
from ahop.similarity.density import Density
from ahop.similarity.families.posterior import Prior, expected
from ahop.similarity.fixed import Cosine, Distance, Manhattan

METRICS: dict[str, type[Similarity]] = {"distance": Distance, "manhattan": Manhattan, "cosine": Cosine}
_IN_WORDS = {"distance": "Euclidean distance", "manhattan": "L1 distance", "cosine": "cosine similarity"}

# Lengths that are taken for none.
_TINY = 1e-12


class Nearest(Density):
    r"""What anyone would try first, with a temperature: the metric of centred, standardised or mapped rows.

    .. math:: s(\xi, x) = \beta \, \mathrm{sim}\Big(\frac{\xi - c}{t},\; M \frac{x - c'}{t'}\Big) + \mathrm{const}

    With the squared distance this is a normal distribution around the pattern, with the L1 distance Laplace's, and
    with the cosine that of von Mises and Fisher (up to a constant). M is the identity, or a ridge regression of
    patterns on queries. :mod:`ahop.similarity.families.nearest.recipes` fits it to pairs and
    :mod:`ahop.similarity.families.nearest.learning` to queries.

    Args:
        dim: Number of dimensions d of patterns.
        metric: "distance" (squared), "manhattan" or "cosine".
        query_dim: Number of dimensions d' of queries; None is as many.
        mapped: Whether M is learned; queries of another width need it.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d')`` to ``(Q, N)``.

    Example:
        >>> nearest = Nearest(dim=2, metric="manhattan")
        >>> nearest(torch.eye(2), torch.tensor([[0.9, 0.2]])).argmax(1)
        tensor([0])
    """

    takes_spread = True
    dim: int
    query_dim: int

    def __init__(
        self, dim: int, metric: str = "distance", query_dim: int | None = None, *, mapped: bool = False
    ) -> None:
        super().__init__()
        self.dim, self.metric, self.query_dim, self.mapped = (
            dim,
            metric,
            dim if query_dim is None else query_dim,
            mapped,
        )
        choice(metric, "metric", tuple(METRICS))
        if dim < 1 or self.query_dim < 1:
            raise ValueError(f"dim and query_dim must be at least 1, got {dim} and {query_dim}")
        if self.query_dim != dim and not mapped:
            raise ValueError(f"mapped must be True for queries of another width than patterns, {query_dim} and {dim}")
        self.pattern_centre, self.query_centre = (
            nn.Parameter(torch.zeros(dim)),
            nn.Parameter(torch.zeros(self.query_dim)),
        )
        self.log_pattern_scale = nn.Parameter(torch.zeros(dim))
        self.log_query_scale = nn.Parameter(torch.zeros(self.query_dim))
        self.matrix = nn.Parameter(torch.eye(dim, self.query_dim) if mapped else torch.empty(0))
        self.log_beta = nn.Parameter(torch.zeros(()))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            parameter.zero_()
        if self.mapped:
            self.matrix.copy_(torch.eye(self.dim, self.query_dim))

    @property
    def similarity(self) -> Similarity:
        """The plain metric, as a similarity."""
        return METRICS[self.metric]()

    def stored(self, patterns: Tensor) -> Tensor:
        """Patterns in the coordinates of the comparison, ``(N, d)``; how far they scatter has no say."""
        return (patterns[..., : self.dim] - self.pattern_centre) * (-self.log_pattern_scale).exp()

    def asked(self, queries: Tensor) -> Tensor:
        """Queries in the coordinates of the comparison, ``(Q, d)``."""
        rows = (queries - self.query_centre) * (-self.log_query_scale).exp()
        return rows @ self.matrix.mT if self.mapped else rows

    def level(self, observed: Tensor | None) -> Tensor:
        """What makes a density of the scores of the two distances, ``()`` or ``(..., Q, 1)``; nought for the cosine."""
        if self.metric == "cosine" or self.mapped:
            return torch.zeros_like(self.log_beta)
        level = self.log_beta / 2 - math.log(math.pi) / 2 if self.metric == "distance" else self.log_beta - math.log(2)
        level = level - self.log_query_scale
        return level.sum() if observed is None else (level * observed).sum(-1, keepdim=True)

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        observed = self._require_complete(observed)
        scores: Tensor = self.similarity(self.stored(patterns), self.asked(queries), observed)
        return self.log_beta.exp() * scores + self.level(observed)

    def _require_complete(self, observed: Tensor | None) -> Tensor | None:
        if not self.mapped or observed is None:
            return observed
        if not bool(observed.all()):
            raise ValueError("observed must be None: this memory maps complete queries")
        return None

    def log_volume(self, queries: Tensor) -> Tensor:
        r"""What makes log densities of the scores of a metric, ``(n,)``: nought for the distances, which have it.

        For the cosine it is the constant of von Mises and Fisher's density of the direction, with a log-normal density
        of the length r, as :math:`\mathrm{d}x = r^{d-1} \, \mathrm{d}r \, \mathrm{d}u`.
        """
        if self.metric != "cosine":
            return queries.new_zeros(len(queries))
        log_length = self.asked(queries).double().norm(dim=1).clamp_min(_TINY).log()
        spread = log_length.std(unbiased=False).clamp_min(1e-3)
        length = -((log_length - log_length.mean()) / spread).square() / 2 - spread.log() - math.log(2 * math.pi) / 2
        beta, order, dim = float(self.log_beta.exp()), self.dim / 2 - 1, self.dim
        # The Bessel function by its uniform expansion (Debye), which neither overflows nor vanishes.
        root = math.hypot(order, beta)
        log_bessel = root + order * math.log(beta / (order + root)) - math.log(2 * math.pi * root) / 2
        direction = order * math.log(beta) - dim / 2 * math.log(2 * math.pi) - log_bessel
        return length + direction - dim * log_length - self.log_query_scale.sum()

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The log evidence ``(Q,)`` under a pattern whose dimensions are drawn from what the stored ones have there."""
        observed = self._require_complete(observed)
        stored, asked, beta = self.stored(patterns), self.asked(queries), self.log_beta.exp()
        if self.metric == "cosine":
            # No sum over dimensions: as many patterns as are stored stand for all, each of values of many of them.
            count, dim = stored.shape
            rows = (torch.arange(count)[:, None] + 7919 * torch.arange(dim)).to(stored.device) % count
            scores: Tensor = beta * self.similarity(stored.gather(0, rows), asked, observed)
            return scores.logsumexp(-1) - math.log(count)
        similarity, of_queries, parts = self.similarity, Queries(asked, observed), []
        assert isinstance(similarity, Decomposable)
        for part in split(len(asked), 4 * stored.numel() * asked.element_size()):
            some = of_queries[part]
            terms = (beta * similarity.terms(stored, some.rows[:, None])).logsumexp(1) - math.log(len(stored))
            parts.append(some.masked(terms).sum(-1))
        level = self.level(observed)
        return torch.cat([*parts, asked.new_empty(0)]) + (level.squeeze(-1) if level.ndim else level)

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor | None:
        """The noise stays; None after a map, which does not say what a query of another pattern is like."""
        if self.mapped:
            return None
        return queries + (others - own)[..., : self.dim] * (self.log_query_scale - self.log_pattern_scale).exp()

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        r"""From the coordinates of the comparison to those of patterns; what ridge regression maps there stays there.

        Noise is that of the metric: a variance of :math:`1 / 2\beta` of the squared distance, of :math:`2 / \beta^2`
        of the L1 distance, and of the patterns' mean squared length over :math:`\beta` of the cosine.
        """
        asked, beta = self.asked(queries.double()), self.log_beta.double().exp()
        scale = self.log_pattern_scale.double().exp()
        if self.mapped:
            self._require_complete(observed)
            return self.pattern_centre + scale * asked
        stored = self.stored(patterns.double())
        length = stored.square().sum(1).mean().clamp_min(_TINY)
        level = {"distance": 2 * beta, "manhattan": beta.square() / 2, "cosine": beta / length}[self.metric]
        precision = level * (torch.ones_like(scale) if observed is None else observed)
        prior = Prior.of(stored)
        found = expected(prior.mean, prior.covariance, prior.covariance, precision, asked - prior.mean)
        return self.pattern_centre + scale * found

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Nearest:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        new = copy.deepcopy(self)
        for centre in (new.pattern_centre, new.query_centre):
            centre.mul_(unit).add_(shift)
        for scale in (new.log_pattern_scale, new.log_query_scale):
            scale.add_(math.log(unit))
        return new

    def codes(self, patterns: Tensor, tolerance: float) -> NearestCodes:
        """See :class:`NearestCodes`; they need no tolerance."""
        if self.metric == "manhattan":
            raise NoCodesError("the L1 distance has no codes: its scores are not dot products")
        return NearestCodes(copy.deepcopy(self), self.stored(patterns).mean(0))

    @torch.no_grad()
    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        """Where each side is counted from, and in what units."""
        curves: list[tuple[str, Tensor, Tensor | None]] = [("centre of queries", self.query_centre.cpu(), None)]
        if float(self.log_query_scale.max() - self.log_query_scale.min()) > 0:
            curves.append(("spread of queries", self.log_query_scale.exp().cpu(), None))
        return curves

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words.

        Example:
            >>> print(Nearest(dim=3, metric="cosine").describe())
            Queries are compared with patterns by their cosine similarity.
        """
        lines = [f"Queries are compared with patterns by their {_IN_WORDS[self.metric]}."]
        if self.mapped:
            lines.append("A linear map (ridge regression) takes queries to patterns first.")
        elif float(self.log_query_scale.max() - self.log_query_scale.min()) > 0:
            lines.append("Each side is standardised first: around its own mean, in units of its own deviation.")
        elif float((self.query_centre - self.pattern_centre).abs().max()) > 0:
            lines.append("Each side is centred on its own mean first.")
        return "\n".join(lines)


class NearestCodes(Codes):
    r"""Dot products that are the scores of :class:`Nearest`, up to a constant of the query.

    .. math:: \phi(\xi) = (v - m,\, -\tfrac12 \lVert v - m \rVert^2), \qquad \psi(x) = 2 \beta \, (w - m,\, 1)

    for the squared distance of v and w, the two sides in the coordinates of the comparison; their directions times
    :math:`\beta` for the cosine.

    Args:
        likelihood: What was learned.
        centre: m, a point amid the patterns in the coordinates of the comparison, ``(d,)``.
    """

    dim: int
    centre: Tensor

    def __init__(self, likelihood: Nearest, centre: Tensor) -> None:
        super().__init__()
        self.likelihood, self.dim, self.query_dim = likelihood, likelihood.dim, likelihood.query_dim
        self.register_buffer("centre", centre.detach())

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store, ``(N, d)`` or ``(N, d + 1)``."""
        rows = self.likelihood.stored(as_tensor(patterns, "patterns").to(self.centre))
        if self.likelihood.metric == "cosine":
            return nn.functional.normalize(rows, dim=-1)
        rows = rows - self.centre
        return torch.cat([rows, -0.5 * rows.square().sum(-1, keepdim=True)], -1)

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with, as wide."""
        refuse_masks(observed, self)
        rows, beta = (
            self.likelihood.asked(as_tensor(queries, "queries").to(self.centre)),
            self.likelihood.log_beta.exp(),
        )
        if self.likelihood.metric == "cosine":
            return Asked(beta * nn.functional.normalize(rows, dim=-1))
        rows, level = rows - self.centre, self.likelihood.level(None)
        codes = 2 * beta * torch.cat([rows, torch.ones_like(rows[..., :1])], -1)
        return Asked(codes, level - beta * rows.square().sum(-1, keepdim=True))
