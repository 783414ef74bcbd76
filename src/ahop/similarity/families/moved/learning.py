r"""Learn a linear map between two spaces, :math:`x = A \xi + b + e`, from pairs.

Regression is drawn to what the pairs cannot tell. What that is (the identity, a scaled rotation, or nothing) and how
strongly, is chosen on origins left out; so is the noise e measured.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ahop.learning.chance import more_than_chance
from ahop.learning.holdout import folds_by_origin
from ahop.similarity.families import student
from ahop.similarity.families.moved.model import Moved
from ahop.similarity.families.moved.turns import nearest_rotation

_FOLDS = 5
# How strongly regression is drawn, in units of the mean square that the pairs have along a direction.
_STRENGTHS = (math.inf, 10.0, 3.0, 1.0, 0.3, 0.1, 1e-2, 1e-3)
_TAILS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, math.inf)
# Rivals and pairs that a choice is judged by, and temperatures to judge at.
_RIVALS, _JUDGED = 1024, 1024
_BETAS = (0.5, 0.25, 0.12, 0.06)
# Variances that are taken for none, in units of their own kind.
_ZERO_VARIANCE = 1e-6
_TINY = 1e-100
# A scale that changes by a smaller share than this has settled.
_SCALE_TOLERANCE = 1e-6


class Target(Enum):
    """The map that regression is drawn to."""

    IDENTITY = "identity"
    ROTATION = "rotation"
    NOTHING = "nothing"


# From what says most to what says least: targets, and how strongly regression may be drawn to each.
_TARGETS = (
    (Target.IDENTITY, (math.inf,)),
    (Target.ROTATION, _STRENGTHS),
    (Target.IDENTITY, _STRENGTHS),
    (Target.NOTHING, _STRENGTHS),
)


class Choice(NamedTuple):
    """What regression is drawn to, and how strongly."""

    target: Target
    strength: float


@torch.no_grad()
def fit_pairs(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int = 0, choice: Choice | None = None) -> Moved:
    """The map from patterns ``(N, d)`` to queries ``(n, d')`` whose origins ``(n,)`` are all known.

    Args:
        patterns, queries, origins: The pairs.
        seed: For what is left out.
        choice: What :func:`choose` said of pairs like these, to save time; None asks it.
    """
    target, strength = choose(patterns, queries, origins, seed) if choice is None else choice
    stored, asked, folds = patterns[origins].double(), queries.double(), _folds(origins, seed)
    weights = torch.ones_like(asked[:, 0])
    # Once as if the noise were normal, and once more with far-off pairs weighed down.
    for _ in range(2):
        trial = _Trial.of(stored, asked, weights, folds, target)
        gaps = trial.gaps(strength)
        squares = trial.squares(gaps)
        tails, size, weights = _tails(squares, torch.ones_like(squares), asked.shape[1])
    path = _Path.of(stored, asked, weights, target)
    matrix = path.matrix(strength)
    bias = path.mean_x - matrix @ path.mean_k
    explained = 1 - float(gaps.square().sum() / ((asked - path.mean_x).square().sum() + _TINY))
    return Moved.around(matrix, bias, size * shrunk(gaps) + _floor(asked), tails, explained).to(patterns)


# --- regression, drawn to something ----------------------------------------------------------------------------


class _Path(NamedTuple):
    """All regressions of one target, by strength: means, the target ``(d', d)``, the principal directions of the
    patterns with the variance there, and what the target leaves along them."""

    mean_x: Tensor
    mean_k: Tensor
    target: Tensor
    variances: Tensor
    directions: Tensor
    left: Tensor

    @classmethod
    def of(cls, stored: Tensor, asked: Tensor, weights: Tensor, target: Target) -> _Path:
        share = weights / weights.sum()
        mean_k, mean_x = share @ stored, share @ asked
        root = share.sqrt()[:, None]
        k, x = root * (stored - mean_k), root * (asked - mean_x)
        # Products of rows take nearly all of the time, and each is made once.
        own, cross = k.mT @ k, k.mT @ x
        wanted = _target(own, cross, target)
        variances, directions = _principal(k, own)
        return cls(mean_x, mean_k, wanted, variances, directions, directions @ (cross - own @ wanted.mT))

    def matrix(self, strength: float) -> Tensor:
        believed = strength * (self.variances.mean() + _TINY)
        return self.target + (self.left.mT / (self.variances + believed)) @ self.directions

    def gaps(self, stored: Tensor, asked: Tensor, strength: float) -> Tensor:
        """What is left of other pairs, ``(n, d')``."""
        return asked - self.mean_x - (stored - self.mean_k) @ self.matrix(strength).mT


def _principal(rows: Tensor, products: Tensor) -> tuple[Tensor, Tensor]:
    """The variance along each principal direction of rows ``(n, d)`` with these products ``(d, d)``, and the
    directions, as rows."""
    if len(rows) < rows.shape[1]:
        _, values, directions = torch.linalg.svd(rows, full_matrices=False)
        return values.square(), directions
    # Many rows: their products alone, which is five times as fast.
    variances, directions = torch.linalg.eigh(products)
    return variances.clamp_min(0), directions.mT


def _target(own: Tensor, cross: Tensor, target: Target) -> Tensor:
    """What regression is drawn to ``(d', d)``, by products of patterns ``(d, d)`` and of these with queries
    ``(d, d')``."""
    if target is Target.IDENTITY:
        return torch.eye(len(own)).to(own)
    if target is Target.NOTHING:
        return torch.zeros_like(cross.mT)
    rotation = nearest_rotation(cross.mT)
    return rotation * (rotation * cross.mT).sum() / (rotation @ own * rotation).sum().clamp_min(_TINY)


def _folds(origins: Tensor, seed: int) -> Tensor:
    return folds_by_origin(origins, _FOLDS, torch.Generator().manual_seed(seed))


class _Trial(NamedTuple):
    """Maps to one target, each learned without one fold of the pairs."""

    stored: Tensor
    asked: Tensor
    parts: list[tuple[_Path, Tensor]]

    @classmethod
    def of(cls, stored: Tensor, asked: Tensor, weights: Tensor, folds: Tensor, target: Target) -> _Trial:
        parts = []
        for fold in folds.unique():
            here = folds == fold
            # One origin alone can be judged by itself only.
            learn = ~here if bool((~here).any()) else here
            parts.append((_Path.of(stored[learn], asked[learn], weights[learn], target), here))
        return cls(stored, asked, parts)

    def gaps(self, strength: float) -> Tensor:
        """What is left of each pair, ``(n, d')``."""
        gaps = torch.empty_like(self.asked)
        for path, here in self.parts:
            gaps[here] = path.gaps(self.stored[here], self.asked[here], strength)
        return gaps

    def squares(self, gaps: Tensor) -> Tensor:
        """How far off each pair is by what is left of it ``(n, d')``, whitened by the other folds: in coordinates that
        it helped to make it lies too near."""
        squares = torch.empty_like(gaps[:, 0])
        for _, here in self.parts:
            others = ~here if len(self.parts) > 1 else here
            squares[here] = _whiten(torch.linalg.cholesky(shrunk(gaps[others])), gaps[here]).square().sum(1)
        return squares

    def loss(self, strength: float, rivals: Tensor, same: Tensor) -> Tensor:
        """How far each pair left out is from being told from its rivals, in nats, at the temperature all like best.

        The likelihood of the queries would not do: it rewards a map that shrinks all it is not sure of, and so brings
        patterns closer to each other.
        """
        ahead, squares = self.asked.new_empty(same.shape), torch.empty_like(self.asked[:, :1])
        for path, here in self.parts:
            # Whitened by the pairs that were learned from: any other covariance has seen the pairs that it would judge.
            learn = ~here if len(self.parts) > 1 else here
            factor = torch.linalg.cholesky(shrunk(path.gaps(self.stored[learn], self.asked[learn], strength)))
            asked = _whiten(factor, self.asked[here] - path.mean_x)
            own, others = (
                _whiten(factor, (some - path.mean_k) @ path.matrix(strength).mT) for some in (self.stored[here], rivals)
            )
            squares[here] = (asked - own).square().sum(1, keepdim=True)
            ahead[here] = squares[here] - torch.cdist(asked, others).square()
        # The noise is as large as the pairs left out say. A rival that is the origin itself is none.
        ahead = (ahead * self.asked.shape[1] / (squares.mean() + _TINY)).masked_fill(same, -math.inf)
        losses = [nn.functional.softplus((beta * ahead).logsumexp(1)) for beta in _BETAS]
        return min(losses, key=lambda loss: float(loss.mean()))


@torch.no_grad()
def choose(patterns: Tensor, queries: Tensor, origins: Tensor, seed: int = 0) -> Choice:
    """What the map is drawn to, and how strongly, by cross-validation over origins.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d')``.
        origins: The pattern of each query, ``(n,)``.
        seed: Seed of what is drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    judged, rivals = (
        torch.randperm(count, generator=generator)[:most].to(patterns.device)
        for count, most in ((len(queries), _JUDGED), (len(patterns), _RIVALS))
    )
    origins, against = origins[judged], patterns[rivals].double()
    stored, asked, folds = patterns[origins].double(), queries[judged].double(), _folds(origins, seed)
    same, even = origins[:, None] == rivals, torch.ones_like(asked[:, 0])
    same_width = stored.shape[1] == asked.shape[1]
    best, least = None, even * math.inf
    # A step must tell origins better by more than chance.
    for target, strengths in _TARGETS:
        if target is Target.IDENTITY and not same_width:
            continue
        trial = _Trial.of(stored, asked, even, folds, target)
        own, lowest = None, even * math.inf
        for strength in strengths:
            loss = trial.loss(strength, against, same)
            if own is None or more_than_chance(lowest - loss):
                own, lowest = Choice(target, strength), loss
        if best is None or more_than_chance(least - lowest):
            best, least = own, lowest
    assert best is not None
    return best


def _whiten(factor: Tensor, rows: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(factor, rows.mT, upper=False).mT


# --- what is left ----------------------------------------------------------------------------------------------


def shrunk(gaps: Tensor) -> Tensor:
    """Their covariance, drawn to a diagonal one as far as so many pairs cannot tell (Ledoit and Wolf)."""
    # Scikit-learn's is drawn to a multiple of the identity, which would give a dimension that has no noise that of the
    # others. It also works on a CPU alone, and makes the products of rows, which take nearly all of the time, twice.
    variance = gaps.square().mean(0)
    scale = (variance + _ZERO_VARIANCE * variance.mean() + _TINY).sqrt()
    rows = gaps / scale
    found = rows.mT @ rows / len(rows)
    plain = torch.diag(found.diagonal())
    by_chance = (rows.square().sum(1).square().mean() - found.square().sum()) / len(rows)
    drawn = float((by_chance / (found - plain).square().sum().clamp_min(_ZERO_VARIANCE)).clamp(0, 1))
    mixed = torch.lerp(found, plain, drawn) + _ZERO_VARIANCE * torch.eye(len(found)).to(found)
    return scale[:, None] * mixed * scale


def _floor(asked: Tensor) -> Tensor:
    """The least noise: a thousandth of how queries are spread, or else of their size."""
    variance = float(asked.var(0, unbiased=False).mean())
    return _ZERO_VARIANCE * (variance or float(asked.square().mean()) or 1.0) * torch.eye(asked.shape[1]).to(asked)


def _tails(squares: Tensor, trust: Tensor, dim: int) -> tuple[float, float, Tensor]:
    """The tails under which whitened squares are likeliest, a scale to go with them, and the weight of each in it."""
    share = trust / trust.sum()
    best = (-math.inf, math.inf, 1.0)
    for tails in _TAILS:
        size, before = 1.0, 0.0
        for _ in range(30 if math.isfinite(tails) else 1):
            if abs(size - before) <= _SCALE_TOLERANCE * size:
                break
            before, size = size, float(share @ (student.weight(squares / size, tails, dim) * squares)) / dim + _TINY
        fit = float(share @ student.log_density(squares / size, tails, dim)) - dim / 2 * math.log(size)
        best = max(best, (fit, tails, size))
    _, tails, size = best
    return tails, size, student.weight(squares / size, tails, dim)
