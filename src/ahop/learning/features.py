"""What the weights of an adaptive similarity multiply, in every pair that a fit looks at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ahop import kernels
from ahop._blocks import budget, split
from ahop._precision import unit_of
from ahop._queries import Queries

# The features of all pairs are kept while they take no more than so many budgets; past that, fewer pairs are.
_CACHE_BUDGETS = 4
_NEGATIVES = 128
# Samples worked on together; on a GPU, all that fit.
_PART_SAMPLES = 16
# Pairs that the curvature is estimated from: enough for a good first step, and soon done.
_CURVATURE_PAIRS = 2**18
# Samples on which the temperature of the start is tried.
_TEMPERATURE_SAMPLES = 32
# From so many numbers on, reading the features once instead of twice is worth a compiled loop.
_COMPILED_NUMBERS = 2**24


class Weighted(Protocol):
    """What is asked of a similarity whose order weights are fitted, as :class:`ahop.similarity.Adaptive` has it."""

    dim: int
    sort: bool
    bases: nn.ModuleList
    weight: nn.Parameter
    deviation: Tensor | None
    matrix_values: Tensor | None

    def order_weights(self) -> Tensor: ...

    def set_order_weights(self, u: Tensor) -> None: ...

    def features(self, base: int, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor: ...

    def kernel_bases(self, patterns: Tensor) -> list[str] | None: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


class Features:
    """The sorted terms of samples and patterns: kept while they fit, made again when not.

    Terms are measured in units of their own (:meth:`_units`), so that a weight is as large whatever the data are
    measured in. With fewer knots than dimensions, the sorted terms are summed into the hat functions of the knots, so
    that weights that are linear between knots are one number per knot here.

    Args:
        similarity: Whose weights are fitted.
        patterns, queries, origins: ``(N, d)``, ``(n, d)``, ``(n,)``.
        observed: Which entries of the queries to learn from, ``(n, d)``; None is all.
        negatives: How many patterns besides the origin a query is told apart from; 0 takes all, None as many as fit.
        knots: Weights of each base.
        seed: For the random negatives, and for the samples that the curvature is estimated from.
    """

    def __init__(
        self,
        similarity: Weighted,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor,
        observed: Tensor | None,
        negatives: int | None,
        knots: int,
        seed: int,
    ) -> None:
        self.similarity, self.patterns, self.queries = similarity, patterns, Queries(queries, observed)
        self.units = self._units()
        self.hats = _hats(similarity.dim, knots).to(patterns) if knots < similarity.dim else None
        self.bases, self.samples = len(similarity.bases), len(queries)
        self.width = self.bases * min(knots, similarity.dim)
        size = self.width * patterns.element_size()
        if negatives is None:
            negatives = 0 if self.samples * len(patterns) * size <= _CACHE_BUDGETS * budget() else _NEGATIVES
        if negatives < 0:
            raise ValueError(f"negatives must be at least 1, 0 for all patterns, or None; got {negatives}")
        self.chosen: Tensor | None = None
        self.offsets = patterns.new_zeros(len(patterns))
        self.target = origins
        if 0 < negatives < len(patterns) - 1:
            self.chosen, self.offsets = self._candidates(origins, negatives, seed)
            self.target = torch.zeros_like(origins)
        self.pairs = len(self.offsets)
        # Making features takes room for all dimensions of all bases, and for a sort beside them.
        self.room = max(1, budget() // (4 * self.bases * similarity.dim * patterns.element_size()))
        self.rows = max(1, min(self.samples if patterns.is_cuda else _PART_SAMPLES, self.room // self.pairs))
        self.parts = [slice(start, start + self.rows) for start in range(0, self.samples, self.rows)]
        self.kept: Tensor | None = None
        if self.samples * self.pairs * size <= _CACHE_BUDGETS * budget():
            self.kept = self._make_all()
            # What is already there can be worked on all at once; a GPU would only wait between parts.
            whole = patterns.is_cuda and similarity.deviation is None
            self.parts = [slice(None)] if whole else self.parts
        order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(seed))
        self.order = order.to(patterns.device)

    def to_knots(self, u: Tensor) -> Tensor:
        """Weights ``(bases, d)`` at the knots, in the units of the terms."""
        u = u.to(self.patterns.dtype) * self.units
        return u if self.hats is None else u @ torch.linalg.pinv(self.hats).mT

    def from_knots(self, values: Tensor) -> Tensor:
        """Weights of all ranks, linear between the knots, in the units of the data."""
        return (values if self.hats is None else values @ self.hats.mT) / self.units

    def start(self) -> Tensor:
        """All ranks of all bases alike, as cold as some samples like it best: from there the way down is short."""
        some = self.order[:_TEMPERATURE_SAMPLES]
        totals = (self._make(some) if self.kept is None else self.kept[some]).sum(-1)
        best, value = 1.0, math.inf
        for step in range(12):
            loss = float(cross_entropy(4.0**-step * totals + self.offsets, self.target[some]))
            if not loss < value:
                break
            best, value = 4.0**-step, loss
        return self.patterns.new_full((self.width,), best)

    def even_shares(self) -> Tensor:
        """Every sample counts alike."""
        return self.patterns.new_full((self.samples,), 1 / self.samples)

    def loss_and_gradient(
        self, u: Tensor, smoothness: float = 0.0, shares: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The penalised loss of shared weights ``u``, flat, and its gradient.

        Args:
            shares: How much each sample counts, ``(n,)``, one in all; None counts all alike.
        """
        shares = self.even_shares() if shares is None else shares
        kept, compiled = self.kept, _compiled() if self._read_once else None
        if kept is not None and compiled is not None:
            loss, gradient = compiled.loss_and_gradient(kept.mT, u, self.offsets, self.target, shares)
        else:
            gradient = torch.zeros_like(u)

            def collect(part: slice, slope: Tensor, block: Tensor) -> None:
                gradient.add_((slope[:, None] @ block).sum((0, 1)))

            loss = self.visit(lambda part, block: block @ u, collect, shares)
        rough, rows = u.view(self.bases, -1).diff(), gradient.view(self.bases, -1)
        rows[:, 1:] += 2 * smoothness * rough
        rows[:, :-1] -= 2 * smoothness * rough
        return loss + smoothness * rough.square().sum(), gradient

    def losses(self, u: Tensor, some: Tensor) -> Tensor:
        """The retrieval loss of each of some samples, with shared weights ``u`` and no penalty.

        Args:
            u: The weights, ``(F,)``.
            some: The numbers of the samples, ``(m,)``.
        """
        found = []
        for part in some.split(self.rows):
            block = self._make(part) if self.kept is None else self.kept[part]
            found.append(cross_entropy(block @ u + self.offsets, self.target[part], reduction="none"))
        return torch.cat(found)

    @property
    def _read_once(self) -> bool:
        kept = self.kept
        if kept is None or kept.numel() < _COMPILED_NUMBERS or kept.dtype != torch.float32:
            return False
        return kept.is_cpu and kept.mT.is_contiguous()

    def curvature(self, u: Tensor, smoothness: float, shares: Tensor) -> Tensor:
        r"""The Hessian of the penalised loss at ``u``, estimated from some samples, ``(F, F)``.

        .. math:: \sum_i a_i \mathrm{Cov}_{j \sim p_i}(\phi_{ij}) + 2 \lambda D^\top D

        Args:
            u: The weights, ``(F,)``.
            smoothness: λ, how strongly neighbouring weights are drawn together.
            shares: How much each sample counts, ``(n,)``.
        """
        most = min(_CURVATURE_PAIRS, budget() // (self.width * self.patterns.element_size()))
        some = self.order[shares[self.order] > 0][: max(1, most // self.pairs)]
        block = self._make(some) if self.kept is None else self.kept[some]
        chances = torch.softmax(block @ u + self.offsets, dim=-1)
        # Centred before it is squared, or rounding would bend the curve where one pattern has all the weight; in place,
        # because the block is a copy, and the largest thing around.
        flat = block.sub_(chances[:, None] @ block).mul_(chances.sqrt()[..., None]).flatten(0, 1)
        curve = flat.mT @ flat / len(some)
        steps = torch.eye(self.width // self.bases).diff(dim=0).to(curve)
        return curve + 2 * smoothness * torch.block_diag(*[steps.mT @ steps] * self.bases)

    def visit(
        self,
        score: Callable[[slice, Tensor], Tensor],
        collect: Callable[[slice, Tensor, Tensor], None],
        shares: Tensor,
    ) -> Tensor:
        """The loss, summed over all samples in parts.

        Args:
            score: Gives the scores ``(m, N)`` of a part from its features.
            collect: Called with each part, the slope of the loss with respect to its scores, and its features.
            shares: How much each sample counts, ``(n,)``.
        """
        total = self.patterns.new_zeros(())
        for part in self.parts:
            block = self._make(part) if self.kept is None else self.kept[part]
            logs = torch.log_softmax(score(part, block) + self.offsets, dim=-1)
            here, share = self.target[part][:, None], shares[part][:, None]
            total -= (share * logs.gather(1, here)).sum()
            slope = logs.exp().scatter_add(1, here, logs.new_full(here.shape, -1.0)) * share
            collect(part, slope, block)
        return total

    def _make_all(self) -> Tensor:
        # On the CPU, patterns lie next to each other: so its kernels leave them, and so they are read fastest.
        complete = self.hats is None and self.queries.observed is None
        if complete and self.similarity.kernel_bases(self.patterns) is not None:
            return self._pick(slice(None), slice(None)).flatten(-2)
        order = (0, 1, 2) if self.patterns.is_cuda else (0, 2, 1)
        shape, like = (self.samples, self.pairs, self.width), self.patterns
        kept = torch.empty_permuted(shape, order, dtype=like.dtype, device=like.device)
        for part in self.parts:
            kept[part] = self._make(part)
        return kept

    def _make(self, part: slice | Tensor) -> Tensor:
        # One part is one piece, unless a single query with all patterns is more than the budget allows.
        step = max(self.room // len(self.queries[part]), 1)
        pieces = [self._pick(part, slice(start, start + step)) for start in range(0, self.pairs, step)]
        return torch.cat([self._knotted(piece) for piece in pieces], dim=1).flatten(-2)

    def _knotted(self, terms: Tensor) -> Tensor:
        """Terms ``(rows, columns, bases, d)`` summed into the knots."""
        if self.hats is None:
            return terms
        if terms.is_cuda:
            return terms @ self.hats
        # With the patterns last, as they lie in memory.
        return (self.hats.mT @ terms.movedim(1, -1)).movedim(-1, 1)

    def _pick(self, part: slice | Tensor, columns: slice) -> Tensor:
        """The terms of some samples and some of their patterns, ``(rows, columns, bases, d)``."""
        if self.chosen is None:
            return self._terms(self.patterns[columns], self.queries[part])
        own = self.patterns[self.chosen[part][:, columns]]
        return self._terms(own, self.queries[part][:, None]).squeeze(1)

    def _terms(self, patterns: Tensor, queries: Queries) -> Tensor:
        """``(..., N, d)`` and ``(..., Q, d)`` to ``(..., Q, N, bases, d)``, sorted if the similarity sorts."""
        names = self.similarity.kernel_bases(patterns)
        if names is not None and queries.observed is None:
            return kernels.sorted_terms(patterns, queries.rows, names).div_(self.units)
        each = queries[..., None, :]
        sides = patterns[..., None, :, :], each.rows, each.observed
        return torch.stack([self.similarity.features(base, *sides) for base in range(self.bases)], -2) / self.units

    def _units(self) -> Tensor:
        """How much larger the terms of each base are than they would be if the patterns had a unit spread."""
        some = self.patterns[:256].double()
        other = some.roll(1, 0) if len(some) > 1 else self.queries.rows[:1].double()
        unit, units = unit_of(self.patterns, self.queries.rows), []
        for base in self.similarity.bases:
            large, plain = (base.terms(some / by, other / by).square().mean().sqrt() for by in (1.0, unit))  # type: ignore[operator]
            units.append(float(large / plain) if plain > 0 else 1.0)
        return torch.tensor(units, dtype=self.patterns.dtype, device=self.patterns.device)[:, None]

    def _candidates(self, origins: Tensor, negatives: int, seed: int) -> tuple[Tensor, Tensor]:
        """For each query its origin, its hardest rivals and some random ones, with their log weights.

        The random ones stand for all the others, so each counts as many times as there are others per draw.
        """
        patterns, queries = self.patterns, self.queries
        hard = min(negatives // 2, len(patterns) - 1)
        random = negatives - hard
        generator = torch.Generator().manual_seed(seed)
        rows = []
        for part in split(len(queries), len(patterns) * patterns.element_size()):
            asked = queries[part]
            bases = zip(self.similarity.bases, self.units.flatten(), strict=True)
            scores = sum(base(patterns, asked.rows, asked.observed) / unit for base, unit in bases)
            assert isinstance(scores, Tensor)
            here = origins[part][:, None]
            ranked = scores.scatter(1, here, -torch.inf).topk(hard, dim=-1).indices
            # Drawn from the others alone, by pushing those already taken out of the race.
            race = torch.rand(scores.shape, generator=generator).to(scores.device)
            drawn = race.scatter(1, here, -1.0).scatter(1, ranked, -1.0).topk(random, dim=-1).indices
            rows.append(torch.cat([here, ranked, drawn], dim=1))
        correction = torch.zeros(1 + hard + random, dtype=patterns.dtype, device=patterns.device)
        correction[1 + hard :] = math.log(max(1.0, (len(patterns) - 1 - hard) / max(1, random)))
        return torch.cat(rows), correction


@cache
def _compiled() -> ModuleType | None:
    """The pass that reads features once; None where there is no compiler for it."""
    try:
        return import_module("ahop.kernels.regression")
    except ImportError:
        return None


def _hats(dim: int, knots: int) -> Tensor:
    """Hat functions of equally spaced knots over the ranks, ``(dim, knots)``."""
    places = torch.linspace(0, knots - 1, dim)
    return (1 - (places[:, None] - torch.arange(knots)).abs()).clamp_min(0)
