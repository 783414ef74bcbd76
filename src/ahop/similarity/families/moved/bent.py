"""A likelihood for queries of another space that a bent map leads to, looked at from several sides."""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ahop._blocks import split
from ahop._checks import as_tensor, integer
from ahop._component import single
from ahop.similarity.bridge import Adapter
from ahop.similarity.codes import Asked, Codes, refuse_masks
from ahop.similarity.density import Density
from ahop.similarity.families.moved.model import Moved
from ahop.similarity.squares import squared_distances

# Landmarks that tell how well a place is known, and those that tell how densely patterns lie around it.
_LOCAL_LANDMARKS, _NEIGHBOURS = 16, 10
# Squared distances, in units of a pattern's length, that are taken for none.
_ZERO_DISTANCE = 1e-9
# What keeps a divisor or the base of a power from zero.
_TINY = 1e-9
VIEWS = ("distance", "by how well a place is known", "by its neighbours", "cosine there", "cosine here")


class Places(NamedTuple):
    """Where queries of each pattern are to be expected, and what else depends on patterns alone.

    Attributes:
        there: Whitened places among the queries, ``(..., N, d')``.
        precisions: 1, one over how well each place is known, and over how far its neighbours are, ``(3, ..., N)``.
        there_unit, here_unit: Directions of the places and of the patterns, ``(..., N, d')`` and ``(..., N, d)``.
    """

    there: Tensor
    precisions: Tensor
    there_unit: Tensor
    here_unit: Tensor


class Bent(Density):
    r"""Scores for queries that come from a space to which a map leads that is nearly, but not quite, linear.

    .. math:: f(\xi) = A \xi + b + \sum_i k(\xi, \xi_i)\, \alpha_i, \qquad k(\xi, \xi') = e^{-\lVert \xi - \xi'
        \rVert^2 / 2 \ell}

    is the mean of a Gaussian process given pairs :math:`(\xi_i, x_i)`, the landmarks. A landmark's own query has no
    part in its place, so that patterns whose queries are known are no better off than others. The score is what the
    softmax over patterns needs, a weighted sum of five views:

    .. math:: s(\xi, x) = -\Bigl(w_1 + \frac{w_2}{v(\xi)} + \frac{w_3}{\delta(\xi)^\gamma}\Bigr)
        \frac{\lVert L(x - f(\xi)) \rVert^2}{2 d'} + w_4 \cos(x, f(\xi)) + w_5 \cos(B x, \xi)

    with v the variance of the process, :math:`\delta` the mean squared distance to the ten nearest landmarks (noise
    grows with it), and B a linear map back. Weights are none below zero.
    :mod:`ahop.similarity.families.moved.bending` learns all of it. Queries with missing values are compared by the
    linear map alone.

    Args:
        dim: Number of dimensions d of patterns.
        query_dim: Number of dimensions d' of queries; None is as many.
        landmarks: How many pairs it was learned from.

    Attributes:
        straight: The linear map by itself, with its noise.
        weights: Those of the views, ``(5,)``.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d')`` to ``(Q, N)``.

    Example:
        >>> patterns = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> queries = torch.cat([patterns, patterns.square()], 1)
        >>> bent = Bent(dim=3, query_dim=6)
        >>> bent.fit(patterns, queries[:300], torch.arange(300)).converged
        True
        >>> float((bent(patterns, queries).argmax(1) == torch.arange(400)).double().mean()) > 0.95
        True
    """

    dim: int
    query_dim: int
    pattern_mean: Tensor
    pattern_length: Tensor
    query_mean: Tensor
    centre: Tensor
    inputs: Tensor
    alpha: Tensor
    own: Tensor
    matrix: Tensor
    whitener: Tensor
    back: Tensor
    back_bias: Tensor
    shape: Tensor

    def __init__(self, dim: int, query_dim: int | None = None, landmarks: int = 0) -> None:
        super().__init__()
        self.dim, self.query_dim = integer(dim, "dim", 1), integer(query_dim or dim, "query_dim", 1)
        self.landmarks = integer(landmarks, "landmarks", 0)
        self.straight = Moved(self.dim, self.query_dim)
        self.weights = nn.Parameter(torch.ones(len(VIEWS)))
        zeros: dict[str, tuple[int, ...]] = {
            **{"pattern_mean": (self.dim,), "query_mean": (self.query_dim,), "centre": (self.query_dim,)},
            **{"inputs": (self.landmarks, self.dim), "alpha": (self.landmarks, self.query_dim)},
            **{"own": (self.landmarks,), "back_bias": (self.dim,)},
        }
        for name, size in zeros.items():
            self.register_buffer(name, torch.zeros(size))
        self.register_buffer("pattern_length", torch.ones(()))
        self.register_buffer("matrix", torch.eye(self.dim, self.query_dim))
        self.register_buffer("whitener", torch.eye(self.query_dim))
        self.register_buffer("back", torch.eye(self.query_dim, self.dim))
        # Squared length, noise, and what v and the distance to neighbours are counted in; and the exponent of these.
        self.register_buffer("shape", torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0]))
        self._known: tuple[weakref.ref[Tensor], int, Places] | None = None

    # --- where queries of patterns are ------------------------------------------------------------------------

    def places(self, patterns: Tensor) -> Places:
        """Places of patterns ``(..., N, d)``: those of the last ones are kept, as long as nobody changes them."""
        if self._known is not None:
            ref, version, found = self._known
            if ref() is patterns and patterns._version == version and found.there.dtype == patterns.dtype:
                return found
        parts = split(patterns[..., 0].numel(), 8 * max(1, self.landmarks) * patterns.element_size())
        rows = patterns.detach().reshape(-1, self.dim)
        there, spread, near = (
            torch.cat(part) for part in zip(*(self.locate(rows[part]) for part in parts), strict=True)
        )
        found = self._arranged(rows, there, spread, near, patterns.shape[:-1])
        self._known = (weakref.ref(patterns), patterns._version, found)
        return found

    def _arranged(self, rows: Tensor, there: Tensor, spread: Tensor, near: Tensor, shape: torch.Size) -> Places:
        precisions = torch.stack([torch.ones_like(spread), 1 / spread, near ** -self.shape[4].to(near)])
        # Directions are those of what is not whitened.
        unwhitened = torch.linalg.solve(self.whitener.to(there).mT, there.mT).mT
        return Places(
            there.reshape(*shape, self.query_dim),
            precisions.reshape(3, *shape),
            nn.functional.normalize(unwhitened - self.centre.to(there), dim=-1).reshape(*shape, self.query_dim),
            nn.functional.normalize(rows - self.pattern_mean.to(rows), dim=-1).reshape(*shape, self.dim),
        )

    def locate(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Whitened places ``(n, d')`` of patterns, how well they are known ``(n,)``, and how far neighbours are."""
        inputs = (rows - self.pattern_mean.to(rows)) / self.pattern_length.to(rows)
        there = inputs @ (self.matrix @ self.whitener).to(rows)
        if not self.landmarks:
            return there, torch.ones_like(there[:, 0]), torch.ones_like(there[:, 0])
        marks, alpha = self.inputs.to(rows), (self.alpha @ self.whitener).to(rows)
        squares = torch.addmm(marks.square().sum(1), inputs, marks.mT, alpha=-2) + inputs.square().sum(1, keepdim=True)
        squares = squares.clamp_min_(0)
        # A pattern's own query has no part in its place.
        nearest = squares.argmin(1)
        same = (inputs - marks[nearest]).square().sum(1) < _ZERO_DISTANCE
        there = there + torch.exp(squares / (-2 * self.shape[0].to(rows))) @ alpha
        there = there - (same * self.own.to(rows)[nearest])[:, None] * alpha[nearest]
        squares[same.nonzero().squeeze(1), nearest[same]] = math.inf
        return there, *self.around(squares)

    def around(self, squares: Tensor) -> tuple[Tensor, Tensor]:
        """How well places are known ``(n,)``, and how far neighbours are, by squared distances ``(n, m)`` to the
        landmarks; those that are infinite do not count."""
        spread, near = squares.new_empty(2, len(squares))
        # The nearest landmarks of each, and what they have with each other.
        for part in split(len(squares), _LOCAL_LANDMARKS * (self.dim + 2 * _LOCAL_LANDMARKS) * squares.element_size()):
            spread[part], near[part] = self._around(squares[part])
        return spread, near

    def _around(self, squares: Tensor) -> tuple[Tensor, Tensor]:
        length, noise, typical_spread, typical_near, _ = self.shape.to(squares)
        around = squares.topk(min(_LOCAL_LANDMARKS, self.landmarks), 1, largest=False)
        near = around.values[:, :_NEIGHBOURS]
        near = torch.where(near.isfinite(), near, 0).sum(1) / near.isfinite().sum(1).clamp_min(1)
        kernel = torch.exp(-around.values / (2 * length))
        others = self.inputs.to(squares)[around.indices]
        # Many small products of a view that is transposed take six times as long on a CPU.
        products = others @ others.mT.contiguous()
        lengths = products.diagonal(dim1=-2, dim2=-1)
        gram = torch.exp(-(lengths.unsqueeze(-1) + lengths.unsqueeze(-2) - 2 * products) / (2 * length))
        gram = gram + noise * torch.eye(gram.shape[-1]).to(gram)
        spread = 1 + noise - (kernel * torch.linalg.solve(gram, kernel.unsqueeze(-1)).squeeze(-1)).sum(1)
        return spread / typical_spread, (near / typical_near).clamp_min(_TINY)

    # --- scores -----------------------------------------------------------------------------------------------

    @property
    def needs_complete_queries(self) -> bool:
        return True

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is not None and not bool(observed.all()):
            scores: Tensor = self.straight(patterns, queries, observed)
            return scores
        patterns, asked = single(patterns), single(queries)
        return self._weighed(self.places(patterns), asked).to(queries.dtype)

    def views(self, patterns: Tensor, queries: Tensor) -> Tensor:
        """The views by themselves, ``(5, Q, N)``."""
        places = self.places(patterns)
        whitened, there, here = self._asked(queries)
        closeness = -squared_distances(places.there, whitened) / (2 * self.query_dim)
        cosines = torch.stack([there @ places.there_unit.mT, here @ places.here_unit.mT])
        return torch.cat([places.precisions.unsqueeze(-2) * closeness, cosines])

    def _weighed(self, places: Places, queries: Tensor) -> Tensor:
        """The weighted sum of the views."""
        weights = self.weights.to(queries)
        whitened, there, here = self._asked(queries)
        precision = torch.tensordot(weights[:3], places.precisions.to(queries), 1).unsqueeze(-2)
        closeness = -precision * squared_distances(places.there, whitened) / (2 * self.query_dim)
        units = torch.cat([places.there_unit, places.here_unit], -1).to(queries)
        return closeness + torch.cat([weights[3] * there, weights[4] * here], -1) @ units.mT

    def _asked(self, queries: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries whitened, and their directions there and here."""
        rows = queries - self.query_mean.to(queries)
        here = queries @ self.back.to(queries) + (self.back_bias - self.pattern_mean).to(queries)
        directions = [nn.functional.normalize(part, dim=-1) for part in (rows - self.centre.to(rows), here)]
        return rows @ self.whitener.to(rows), directions[0], directions[1]

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is not None and not bool(observed.all()):
            return self.straight.exact(patterns, chosen, queries, observed)
        found = self.places(single(patterns))
        units = found.there_unit[chosen], found.here_unit[chosen]
        some = Places(found.there[chosen], found.precisions[:, chosen], *units)
        return self._weighed(some, single(queries)[:, None]).squeeze(1).to(queries.dtype)

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        # Places are learned from noisy queries: what rounding changes is far below what is known of them.
        return torch.zeros_like(best)

    # --- what else is asked of a likelihood -------------------------------------------------------------------

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """Nought, ``(Q,)``: scores are no densities, but fall with the distance to the place of the best pattern, which
        by itself tells queries of nothing stored."""
        if observed is not None and not bool(observed.all()):
            return self.straight.stranger(patterns, queries, observed)
        return torch.zeros_like(queries[..., 0])

    def transferred(self, queries: Tensor, own: Tensor, others: Tensor) -> Tensor:
        """What is left of the queries stays, around the places of the others."""
        before, after = (self.locate(rows)[0] for rows in (own, others))
        return queries + torch.linalg.solve(self.whitener.to(queries).mT, (after - before).mT).mT

    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """By the linear map alone."""
        return self.straight.restored(patterns, queries, observed)

    @torch.no_grad()
    def codes(self, patterns: Tensor, tolerance: float) -> Codes:
        """See :class:`BentCodes`; they need no tolerance."""
        return BentCodes(copy.deepcopy(self))

    def adapter(self, patterns: Tensor, metric: str = "cosine") -> Adapter:
        if not bool(self.weights.any()):
            raise ValueError("query_adapter needs a moved space, and fit found no map that is better than chance")
        return self.straight.adapter(patterns, metric)

    @torch.no_grad()
    def rescaled(self, unit: float, shift: float) -> Bent:
        """The same scores of values that were multiplied by ``unit`` and then moved by ``shift``."""
        new = copy.deepcopy(self)
        new._known = None
        new.straight = self.straight.rescaled(unit, shift)
        for mean in (new.pattern_mean, new.query_mean):
            mean.mul_(unit).add_(shift)
        new.pattern_length.mul_(unit)
        new.centre.mul_(unit)
        # Places keep their size in units of the noise.
        new.matrix.mul_(unit)
        new.alpha.mul_(unit)
        new.whitener.div_(unit)
        new.back_bias.copy_(unit * self.back_bias + shift * (1 - self.back.sum(0)))
        return new

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        self._known = None
        return super()._apply(fn, recurse)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self._known = None
        super()._load_from_state_dict(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": None}

    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        weights = self.weights.detach().cpu()
        return [*self.straight.curves(), ("weights of the views", weights, torch.arange(1.0, 1 + len(weights)))]

    @torch.no_grad()
    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words."""
        weights = self.weights / self.weights.sum().clamp_min(_TINY)
        shares = ", ".join(f"{name} {100 * weight:.0f} %" for name, weight in zip(VIEWS, weights.tolist(), strict=True))
        bent = f"The map is bent: {self.landmarks:,} pairs say where it is not linear."
        return "\n".join([self.straight.describe(columns), bent, f"Weights of the views: {shares}."])


class BentCodes(Codes):
    r"""Dot products that are the scores of a :class:`Bent` map, up to a constant of the query.

    Args:
        likelihood: What was learned.
    """

    dim: int

    def __init__(self, likelihood: Bent) -> None:
        super().__init__()
        self.likelihood, self.dim, self.query_dim = likelihood, likelihood.dim, likelihood.query_dim

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store, ``(N, 2 d' + d + 2)``."""
        patterns = single(as_tensor(patterns, "patterns"))
        found, weights = self.likelihood.places(patterns), self.likelihood.weights.detach().to(patterns)
        precision = torch.tensordot(weights[:3], found.precisions, 1)[..., None] / self.query_dim
        own = found.there.square().sum(-1, keepdim=True) / 2
        parts = [precision * found.there, precision, -precision * own]
        return torch.cat([*parts, weights[3] * found.there_unit, weights[4] * found.here_unit], -1)

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with, ``(Q, 2 d' + d + 2)``."""
        refuse_masks(observed, self)
        whitened, there, here = self.likelihood._asked(single(as_tensor(queries, "queries")))
        own = whitened.square().sum(-1, keepdim=True)
        return Asked(torch.cat([whitened, -own / 2, torch.ones_like(own), there, here], -1))
