r"""Learn a bent map from pairs: a Gaussian process whose kernel is linear plus smooth, and weights of its views.

.. math:: x_i = g(\xi_i) + e_i, \qquad \operatorname{cov} g = \xi^\top \xi' + k(\xi, \xi'), \qquad
    \alpha = G X, \quad G = (K + \nu I)^{-1}

1. Length and noise: those by which origins that were left out are told best.
2. Every fold is learned without its pairs from that same inverse: :math:`\alpha_{-F} = \alpha - G_{\cdot F}
   G_{FF}^{-1} \alpha_F`.
3. The weights of the views are those under which origins of folds that were left out are likeliest, beside the rivals
   that come nearest: a convex problem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop._blocks import budget, split
from ahop.similarity.families.moved import learning
from ahop.similarity.families.moved.bent import VIEWS, Bent

# The squared length of the kernel in units of a pattern's own (half of it and twice of it are level on five pairs of
# models), and noises that are tried, in units of what the process may add.
_LENGTH, _NOISES = 0.8, (0.1, 0.3, 1.0, 3.0)
# Pairs that choose among them, those of either half that judge, below what a log posterior counts no more, and the
# fewest that a bent map is learned from.
_SELECTION_PAIRS, _JUDGED, _LEAST_LOG_POSTERIOR, FEWEST = 2000, 256, -8.0, 48
# How strongly the map back is drawn to nothing, and a covariance to its diagonal.
_RIDGE, _SHRINKAGE = 1e-3, 1e-3
# Rivals that a query is told from: those drawn, and the nearest of them.
_DRAWN_RIVALS, _NEAREST = 8192, 256
# What weights are drawn to, and how strongly, as if by so many queries: what five pairs of models had in common.
PRIOR, _SHRINKAGE_COUNT = (8.0, 5.0, 5.0, 10.0, 20.0), 0.1
_TINY = 1e-30


class Shape(NamedTuple):
    """The squared length of the kernel, and the noise."""

    length: float
    noise: float


@dataclass
class Pairs:
    """One pair for each pattern that has any: inputs ``(m, d)``, mean queries ``(m, d')``, origins, and noise ``(m,)``.

    ``squares`` ``(m, m)`` are the squared distances of inputs, ``inverse`` and ``alpha`` those of all of them.
    """

    patterns: Tensor
    inputs: Tensor
    queries: Tensor
    origins: Tensor
    pattern_mean: Tensor
    pattern_length: Tensor
    query_mean: Tensor
    shape: Shape
    noise: Tensor
    squares: Tensor
    inverse: Tensor
    alpha: Tensor

    @classmethod
    def of(cls, patterns: Tensor, queries: Tensor, origins: Tensor, seed: int, shape: Shape) -> Pairs:
        """Prepare pairs for the regression; of too many, some are drawn.

        Args:
            patterns: ``(N, d)``.
            queries: ``(n, d')``.
            origins: The pattern of each query, ``(n,)``.
            seed: Seed of the draw.
            shape: The length scale and the noise.
        """
        known, group = origins.unique(return_inverse=True)
        count = torch.zeros_like(known, dtype=torch.float64).index_add_(0, group, torch.ones_like(group).double())
        sums = queries.new_zeros(len(known), queries.shape[1]).index_add_(0, group, queries).double()
        generator = torch.Generator().manual_seed(seed)
        kept = torch.randperm(len(known), generator=generator)[: _most()].sort().values.to(known.device)
        known, count, means = known[kept], count[kept], sums[kept] / count[kept][:, None]
        pattern_mean, query_mean = patterns.mean(0), means.mean(0)
        centred = patterns - pattern_mean
        length = centred.square().sum(1).mean().sqrt().clamp_min(_TINY)
        inputs, left = (centred[known] / length).double(), means - query_mean
        noise, squares = shape.noise / count, _squares(inputs)
        inverse = _inverse(inputs, squares, shape.length, noise)
        return cls(
            *(patterns, inputs, left, known, pattern_mean, length, query_mean.to(patterns), shape),
            *(noise, squares.to(patterns), inverse, inverse @ left),
        )

    def every(self, weights: Tensor) -> Bent:
        """The map of all pairs."""
        return self.model(self.origins[:0], weights)

    def without(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is kept ``(k,)`` where some pairs ``(r,)`` are left out, its ``alpha``, and the inverse's diagonal."""
        keep = torch.ones_like(self.origins, dtype=torch.bool)
        keep[rows] = False
        kept = keep.nonzero().squeeze(1)
        if not len(rows):
            return kept, self.alpha, self.inverse.diagonal()
        # It is symmetric, and most of its rows are kept.
        beside = self.inverse[rows][:, kept].mT
        solved = torch.linalg.solve(self.inverse[rows][:, rows], torch.cat([self.alpha[rows], beside.mT], 1))
        width = self.alpha.shape[1]
        alpha = self.alpha[kept] - beside @ solved[:, :width]
        diagonal = self.inverse.diagonal()[kept] - (beside * solved[:, width:].mT).sum(1)
        return kept, alpha, diagonal

    def model(self, rows: Tensor, weights: Tensor) -> Bent:
        """The map without some of the pairs ``(r,)``, with these weights of its views ``(5,)``."""
        kept, alpha, diagonal = self.without(rows)
        bent = Bent(self.patterns.shape[1], self.query_mean.shape[0], len(kept)).to(self.patterns)
        inputs, variance = self.inputs[kept], 1 / diagonal
        gaps = (alpha * variance[:, None]).to(self.patterns)
        values = {
            **{"pattern_mean": self.pattern_mean, "pattern_length": self.pattern_length},
            **{"query_mean": self.query_mean, "inputs": inputs, "alpha": alpha, "matrix": inputs.mT @ alpha},
            **{"own": variance - self.noise[kept]},
        }
        for name, value in values.items():
            getattr(bent, name).copy_(value)
        bent.shape[0], bent.shape[1] = self.shape
        stored = self.patterns[self.origins[kept]]
        spread, near = bent.around(self.squares[kept][:, kept].fill_diagonal_(math.inf))
        bent.whitener.copy_(_whitener(gaps / spread.sqrt()[:, None]))
        log_near = near.log()
        bent.shape[2], bent.shape[3] = spread.log().mean().exp(), log_near.mean().exp()
        bent.shape[4] = _slope(log_near - log_near.mean(), (gaps @ bent.whitener).square().mean(1))
        back, bias = _ridge(self.queries[kept], stored.double())
        bent.back.copy_(back)
        bent.back_bias.copy_(bias - self.query_mean.double() @ back)
        # Directions are counted from the middle of where patterns land; nothing is whitened yet.
        bent.centre.copy_((self.queries[kept] - gaps).mean(0))
        bent.weights.data.copy_(weights)
        return bent


def _most() -> int:
    """As many pairs as the inverse may have by the memory budget: it has as many rows, in float64."""
    return max(FEWEST, int(math.sqrt(budget() / 8)))


def _squares(inputs: Tensor) -> Tensor:
    """Squared distances to each other."""
    own = inputs.square().sum(1)
    return torch.addmm(own[:, None] + own, inputs, inputs.mT, alpha=-2).clamp_min_(0)


def _inverse(inputs: Tensor, squares: Tensor, length: float, noise: Tensor) -> Tensor:
    kernel = torch.addmm(torch.exp(squares / (-2 * length)), inputs, inputs.mT)
    kernel.diagonal().add_(noise)
    return torch.cholesky_inverse(torch.linalg.cholesky(kernel))


def choose(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int = 0) -> Shape:
    """The shape by which origins that were left out are told best, on some of the pairs.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
        seed: Seed of what is drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    some = torch.randperm(len(queries), generator=generator)[:_SELECTION_PAIRS].to(origins.device)
    rivals = torch.randperm(len(patterns), generator=generator)[:_SELECTION_PAIRS].to(origins.device)
    among = torch.cat([rivals, origins[some]]).unique()
    patterns, queries, origins = patterns[among], queries[some], torch.searchsorted(among, origins[some])
    # Folds share no origin.
    half = torch.isin(origins, origins.unique()[::2])
    folds = [(queries[side][:_JUDGED], origins[side][:_JUDGED]) for side in (half, ~half)]

    def score(shape: Shape) -> float:
        scores = weigh(Pairs.of(patterns, queries, origins, seed, shape), folds, seed).scores()
        return float(torch.cat(scores).log_softmax(1)[:, 0].clamp_min(_LEAST_LOG_POSTERIOR).mean())

    return max((Shape(_LENGTH, noise) for noise in _NOISES), key=score)


def _ridge(x: Tensor, y: Tensor, belief: float = _RIDGE) -> tuple[Tensor, Tensor]:
    """The map ``(d', d)`` and what it adds, from rows ``(n, d')`` to rows ``(n, d)``."""
    mean_x, mean_y = x.mean(0), y.mean(0)
    centred = x - mean_x
    gram = centred.mT @ centred
    gram.diagonal().add_(belief * gram.diagonal().mean() + _TINY)
    matrix = torch.linalg.solve(gram, centred.mT @ (y - mean_y))
    return matrix, mean_y - mean_x @ matrix


def _whitener(gaps: Tensor) -> Tensor:
    """Coordinates in which residuals ``(n, d')`` are uncorrelated, with variance one."""
    shrunk = learning.shrunk(gaps.double())
    shrunk.diagonal().add_(_SHRINKAGE * shrunk.diagonal().mean() + _TINY)
    return torch.linalg.cholesky(torch.linalg.inv(shrunk)).to(gaps)


def _slope(log_near: Tensor, squares: Tensor) -> float:
    """The exponent under which residuals are likeliest whose variance grows with the distance to neighbours."""
    from scipy.optimize import minimize

    x, found = (rows.double().cpu().numpy() for rows in (log_near, squares))

    def loss(at: np.ndarray) -> float:
        log_variance = at[0] + at[1] * x
        return float((log_variance + found * np.exp(-log_variance)).mean())

    start = np.array([np.log(found.mean() + _TINY), 0.0])
    return float(np.clip(minimize(loss, start, method="BFGS").x[1], 0.0, 2.0))


# --- weights of the views --------------------------------------------------------------------------------------


class Fold(NamedTuple):
    """Queries ``(q, d')``, their origins ``(q,)``, a map that no pair of these had a part in, and the views that it has
    of each query's own pattern ``(5, q, 1)``, and of this one and its nearest rivals: ``(5, r, 1 + R')`` of some of the
    queries each."""

    queries: Tensor
    origins: Tensor
    bent: Bent
    own: Tensor
    near: list[Tensor]


class Weighed(NamedTuple):
    """Weights of the views ``(5,)``, what they were learned on, and the rivals ``(R,)`` there, as patterns too."""

    weights: Tensor
    folds: list[Fold]
    rivals: Tensor
    stored: Tensor

    def scores(self) -> list[Tensor]:
        """Of each fold's queries: the score of the origin first, and of the rivals, ``(q, 1 + R)``."""
        return [self._of(fold, self.weights) for fold in self.folds]

    def apart(self) -> list[Tensor]:
        """The same by weights that the fold's own queries had no part in, to judge by."""
        found = []
        for place, fold in enumerate(self.folds):
            others = [part for other, one in enumerate(self.folds) if other != place for part in one.near]
            weights = _weights(others).to(self.weights) if others else self.weights
            found.append(self._of(fold, weights))
        return found

    @torch.no_grad()
    def _of(self, fold: Fold, weights: Tensor) -> Tensor:
        fold.bent.weights.data.copy_(weights)
        beside = fold.bent(self.stored, fold.queries).masked_fill_(fold.origins[:, None] == self.rivals, -math.inf)
        return torch.cat([torch.tensordot(weights, fold.own, 1), beside], 1)


def weigh(
    pairs: Pairs,
    folds: Sequence[tuple[Tensor, Tensor]],
    seed: int,
    rivals: Tensor | None = None,
) -> Weighed:
    """Weights by which origins of folds are told best that were left out.

    Args:
        pairs: What it is learned from.
        folds: Queries ``(q, d')`` and origins ``(q,)`` of each; no pair of these origins has a part in their maps.
        seed: For the rivals.
        rivals: Patterns that they are told from ``(r,)``, first; others are drawn, as many as the budget has room for.
    """
    drawn = torch.randperm(len(pairs.patterns), generator=torch.Generator().manual_seed(seed))[:_DRAWN_RIVALS]
    drawn = drawn.to(pairs.origins.device)
    given = drawn[:0] if rivals is None else rivals
    # The scores of all queries and rivals are judged in one table, in float64.
    room = budget() // (8 * sum(len(origins) for _, origins in folds)) - 1
    rivals = torch.cat([given, drawn[~torch.isin(drawn, given)]])[: max(len(given), room)]
    stored, prior = pairs.patterns[rivals], torch.tensor(PRIOR).to(pairs.patterns)
    learned = []
    for queries, origins in folds:
        bent = pairs.model(torch.isin(pairs.origins, origins).nonzero().squeeze(1), prior)
        own = bent.views(pairs.patterns[origins][:, None], queries[:, None]).squeeze(-1)
        near = []
        # All views of all rivals are the largest table of a fit.
        for part in split(len(queries), 2 * len(VIEWS) * len(rivals) * queries.element_size()):
            views = bent.views(stored, queries[part])
            beside = torch.tensordot(prior, views, 1).masked_fill_(origins[part, None] == rivals, -math.inf)
            first = beside.topk(min(_NEAREST, len(rivals) - 1), 1).indices
            near.append(torch.cat([own[:, part], views.gather(2, first.expand(len(views), -1, -1))], 2))
        learned.append(Fold(queries, origins, bent, own, near))
    weights = _weights([part for fold in learned for part in fold.near]).to(pairs.patterns)
    return Weighed(weights, learned, rivals, stored)


def _weights(views: Sequence[Tensor]) -> Tensor:
    """The weights, none below zero, under which the first column of the views ``(5, n, 1 + R)`` of some queries each is
    likeliest."""
    from scipy.optimize import minimize

    gaps = [(part - part[..., :1]).double() for part in views]
    count = sum(part.shape[1] for part in gaps)
    pull = _SHRINKAGE_COUNT / count
    squares = torch.stack([part.square().sum((1, 2)) for part in gaps]).sum(0)
    scale = (squares / (count * gaps[0].shape[2])).sqrt().clamp_min(_TINY)
    prior = torch.tensor(PRIOR, dtype=torch.float64).to(scale)

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        weights = torch.from_numpy(at).to(scale)
        drawn = scale * (weights - prior)
        value, slope = pull * drawn.square().sum(), 2 * pull * scale * drawn
        for part in gaps:
            scores = torch.tensordot(weights, part, 1)
            value = value + scores.logsumexp(1).sum() / count
            slope = slope + torch.einsum("knr,nr->k", part, torch.softmax(scores, 1)) / count
        return float(value), slope.cpu().numpy()

    found = minimize(loss, np.array(PRIOR), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(VIEWS))
    return torch.from_numpy(found.x)
