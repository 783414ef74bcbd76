"""The footprint of a similarity, and the adaptive similarity that learns to weigh it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ahop import kernels
from ahop._blocks import pairwise
from ahop._checks import as_tensor
from ahop._precision import VANISHED
from ahop._queries import Queries
from ahop.learning.footprint import fit_adaptive
from ahop.learning.report import FitReport
from ahop.similarity.base import Decomposable, Similarity
from ahop.similarity.fixed import Distance, Dot, Manhattan
from ahop.similarity.squares import ROUNDING

# The bases that kernels exist for; a subclass may have other terms.
_KERNELS: dict[type[nn.Module], str] = {Distance: "distance", Dot: "dot", Manhattan: "manhattan"}
# By how much a logit may be wrong.
_LOGIT_ERROR = 0.05


def footprint(patterns: Tensor, queries: Tensor, base: Decomposable | str = "distance") -> Tensor:
    r"""All k-optimal similarities of pattern and query, k = 1 to d.

    .. math:: \mathrm{ftpt}_k(\xi, x) = \max_{|D| = k} \mathrm{sim}(\xi_D, x_D) = \tilde q_1 + \dots + \tilde q_k

    where :math:`\tilde q` are the terms in decreasing order: the best k dimensions are the k largest terms,
    so one sort and a running sum replace the search over all subsets.

    Args:
        patterns, queries: Two tensors ``(..., d)`` that broadcast against each other.
        base: A decomposable similarity, or its name.

    Shape:
        ``(..., d)``; the last entry is the base similarity itself.

    Example:
        >>> footprint(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([1.0, 3.0, 0.0]))
        tensor([ 0., -1., -5.])
    """
    patterns, queries = as_tensor(patterns, "patterns"), as_tensor(queries, "queries")
    terms = _decomposable(base, patterns.shape[-1]).terms(patterns, queries)
    return terms.sort(dim=-1, descending=True).values.cumsum(-1)


def k_optimal(patterns: Tensor, queries: Tensor, k: int, base: Decomposable | str = "distance") -> Tensor:
    r"""The similarity in the k dimensions where pattern and query agree best.

    .. math:: \mathrm{sim}^{(k)}(\xi, x) = \max_{D \subseteq [d],\, |D| = k} \mathrm{sim}(\xi_D, x_D)

    Args:
        patterns, queries: What is compared, ``(..., d)`` both; leading dimensions broadcast.
        k: The number of dimensions to compare in.
        base: The similarity, or its name.

    Example:
        >>> k_optimal(torch.tensor([1.0, 1.0, 1.0]), torch.tensor([1.0, 3.0, 0.0]), k=2)
        tensor(-1.)
    """
    patterns, queries = as_tensor(patterns, "patterns"), as_tensor(queries, "queries")
    terms = _decomposable(base, patterns.shape[-1]).terms(patterns, queries)
    if not 1 <= k <= terms.shape[-1]:
        raise ValueError(f"k must be between 1 and {terms.shape[-1]}, the number of dimensions; got {k}")
    return terms.topk(k, dim=-1).values.sum(-1)


class Adaptive(Similarity):
    r"""A learned weighting of the footprints of several base similarities.

    .. math:: s(\xi, x) = \sum_b w_b^\top U \tilde q_b = \sum_b u_b^\top \tilde q_b, \qquad u_j = w_j + \dots + w_d

    One weight ``u_j`` for each order statistic: what masking does shows in the worst terms and can be weighed
    down, whichever dimensions it hit. It starts as the plain sum of its bases (``w_d = 1``, the rest 0).

    Where a query observes only m of the d dimensions, the j-th best of its m terms takes the weight of the
    same quantile among d.

    Args:
        dim: Number of dimensions d.
        bases: Decomposable similarities, or their names.
        sort: Sort the terms. Unsorted, a weight belongs to a dimension instead of a rank.
        matrix: U: ``"cumulative"`` (the footprint), ``"identity"`` (weights on the sorted terms themselves),
            or a ``(d, d)`` tensor.
        learn_matrix: Make U a parameter. It adds nothing that ``w`` cannot express, but changes the path
            that a gradient method takes.
        patterns: For patterns that are each corrupted in their own way, their number: every pattern then has
            its own weights, the shared ones plus a learned deviation.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> similarity = Adaptive(dim=2, bases=["distance"])
        >>> similarity(torch.eye(2), torch.tensor([[1.0, 0.0]]))
        tensor([[ 0., -2.]], grad_fn=<ViewBackward0>)
    """

    prefers_float32 = True
    dim: int
    matrix_values: Tensor | None
    deviation: Tensor | None

    def __init__(
        self,
        dim: int,
        bases: Sequence[Decomposable | str] = ("distance", "dot"),
        *,
        sort: bool = True,
        matrix: Literal["cumulative", "identity"] | Tensor = "cumulative",
        learn_matrix: bool = False,
        patterns: int | None = None,
    ) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim must be at least 1, got {dim}")
        if not bases or isinstance(bases, str):
            raise ValueError(f"bases must be a list of at least one decomposable similarity, got {bases!r}")
        self.dim, self.sort, self.matrix, self.learn_matrix, self.patterns = dim, sort, matrix, learn_matrix, patterns
        self.bases = nn.ModuleList(_decomposable(base, dim) for base in bases)

        values = _matrix_values(matrix, dim, needed=learn_matrix)
        if learn_matrix and values is not None:
            self.matrix_values = nn.Parameter(values)
        else:
            self.register_buffer("matrix_values", values)
        ones = torch.ones(len(self.bases), dim, dtype=None if values is None else values.dtype)
        self.weight = nn.Parameter(torch.zeros_like(ones))
        self.deviation = None if patterns is None else nn.Parameter(torch.zeros(patterns, *ones.shape))
        self._start: str | None = None
        self.set_order_weights(ones)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        if self.matrix_values is not None:
            values = _matrix_values(self.matrix, self.dim, needed=True)
            assert values is not None
            self.matrix_values.copy_(values)
        if self.deviation is not None:
            self.deviation.zero_()
        names = [base.name for base in self.bases]
        ones = [[float(self._start in (None, name))] for name in names]
        self.set_order_weights(self.weight.new_tensor(ones).expand_as(self.weight))

    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
        **options: Any,
    ) -> FitReport:
        """Fit the weights to queries whose origins are known; see :func:`ahop.learning.footprint.fit_adaptive`.

        The prior does not enter: the similarity learns the likelihood alone.
        """
        if origins is None:
            raise ValueError("origins must be given: footprints are learned from labelled pairs")
        return fit_adaptive(self, patterns, queries, origins, observed=observed, **options)

    def start_as(self, name: str) -> None:
        """Begin as one of the bases alone."""
        if name in [base.name for base in self.bases]:
            self._start = name
            self.reset_parameters()

    def order_weights(self) -> Tensor:
        """The weights ``u`` of the sorted terms, ``(bases, d)``, shared by all patterns."""
        if self.matrix_values is not None:
            return self.weight @ self.matrix_values
        if self.matrix == "identity":
            return self.weight
        return self.weight.flip(-1).cumsum(-1).flip(-1)

    @torch.no_grad()
    def set_order_weights(self, u: Tensor) -> None:
        """Choose ``w`` so that :meth:`order_weights` gives ``u``."""
        if self.matrix_values is not None:
            # Least squares by the pseudo-inverse: a random U may be close to singular.
            u = u @ torch.linalg.pinv(self.matrix_values)
        elif self.matrix == "cumulative":
            u = torch.cat([u[:, :-1] - u[:, 1:], u[:, -1:]], dim=1)
        self.weight.copy_(u)

    def features(self, base: int, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """The terms that the weights of one base multiply: sorted, if this similarity sorts.

        What was not observed is zero; where it was sorted out, the others stand at the ranks they stand for.

        Args:
            base: The number of the base similarity.
            patterns: ``(..., N, d)``.
            queries: ``(..., Q, d)``.
            observed: Which entries of the queries count; None is all.
        """
        terms = self.bases[base].terms(patterns, queries)  # type: ignore[operator]
        if not self.sort:
            return Queries(queries, observed).masked(terms)
        if observed is None:
            return terms.sort(dim=-1, descending=True).values
        terms = terms.masked_fill(~observed, -torch.inf).sort(dim=-1, descending=True).values
        ranks = kernels.stretch(observed).expand(terms.shape)
        return torch.zeros_like(terms).scatter_add(-1, ranks, terms.masked_fill(terms == -torch.inf, 0.0))

    def kernel_bases(self, patterns: Tensor) -> list[str] | None:
        """The bases by the names that :mod:`ahop.kernels` has for them; None where no kernel does this similarity.

        Kernels sort, share the weights among patterns, and sum in float32. In float64 digits come before speed.
        """
        names = [_KERNELS.get(type(base), "") for base in self.bases]
        wanted = self.sort and self.deviation is None and patterns.dtype != torch.float64
        wanted = wanted and type(self).forward is Adaptive.forward
        return names if wanted and all(names) else None

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        names = self.kernel_bases(patterns)
        if names is not None:
            scores = kernels.scores(patterns, queries, self.order_weights(), names, observed=observed)
            return scores.to(queries.dtype)
        weights = self.order_weights()
        if self.deviation is not None:
            weights = weights + self.deviation
        total: Tensor | float = 0.0
        for base, u in zip(self.bases, weights.unbind(-2), strict=True):
            # The last entry of the footprint is the base similarity itself, which has a faster way to its sum.
            # What is left for the sorted terms is zero when the weights are equal, so that case is exact.
            last = u[..., -1]
            total = total + last * base(patterns, queries, observed)
            total = total + self._weigh(base, u - last[..., None], patterns, queries, observed)
        assert isinstance(total, Tensor)
        return total

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        """That of the bases, times the largest weight of each."""
        weights = self.order_weights().detach().abs()
        if self.deviation is not None:
            weights = weights + self.deviation.detach().abs().amax(0)
        # Kernels take differences; other ways begin with the bases' own scores.
        error = (ROUNDING if self.kernel_bases(patterns) is None else 2**-16) * best.abs()
        for base, heaviest in zip(self.bases, weights.amax(-1), strict=True):
            error = error + heaviest * base.rounding(patterns, queries, torch.zeros_like(best))  # type: ignore[operator]
        return error

    def blend(
        self,
        patterns: Tensor,
        queries: Tensor,
        observed: Tensor | None,
        values: Tensor,
        beta: Tensor | float,
        log_prior: Tensor | None,
    ) -> tuple[Tensor, Tensor] | None:
        names, weights = self.kernel_bases(patterns), beta * self.order_weights()
        if names is None or not _fits(patterns, queries, weights):
            return None
        found = kernels.readout(patterns, queries, weights, names, values, bias=log_prior, observed=observed)
        logits = found.log_sums.detach()
        wrong = 2**-22 * logits.abs() + beta * self.rounding(patterns, queries, torch.zeros_like(logits))
        return found.blend.to(values.dtype), wrong < _LOGIT_ERROR

    def best(
        self,
        patterns: Tensor,
        queries: Tensor,
        observed: Tensor | None,
        k: int,
        beta: Tensor | float,
        log_prior: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        names, weights = self.kernel_bases(patterns), beta * self.order_weights()
        if names is None or not _fits(patterns, queries, weights):
            return None
        more = min(k + 1, len(patterns))
        found = kernels.recall(patterns, queries, weights, names, more, bias=log_prior, observed=observed)
        likely = (found.scores[:, :k] - found.log_sums[..., None]).exp().to(queries.dtype)
        first, second = found.scores[:, 0], found.scores[:, min(1, more - 1)]
        sure = second < first - beta * self.rounding(patterns, queries, first / beta)
        # Below this, float32 has hardly a digit left.
        held = found.scores.abs().amax(-1) >= beta * VANISHED
        return found.indices[:, :k], likely, (sure & held) | (more == 1)

    def _weigh(self, base: nn.Module, u: Tensor, patterns: Tensor, queries: Tensor, observed: Tensor | None) -> Tensor:
        """The terms, sorted if this similarity sorts, times their weights; ``u`` is ``(d,)`` or ``(N, d)``."""
        own = u.ndim == 2
        ranks = None if observed is None or not self.sort else kernels.stretch(observed)

        def block(patterns: Tensor, queries: Tensor, *rest: Any) -> Tensor:
            weights, (mask, ranks) = (rest[0] if own else u), rest[-2:]
            terms = base.terms(patterns.unsqueeze(-3), queries.unsqueeze(-2))  # type: ignore[operator]
            if mask is not None:
                # Unobserved terms are sorted to the end, and weigh nothing there.
                terms = terms.masked_fill(~mask.unsqueeze(-2), -torch.inf if self.sort else 0.0)
            if self.sort:
                terms = terms.sort(dim=-1, descending=True).values
            if ranks is not None:
                terms = terms.masked_fill(terms == -torch.inf, 0.0)
                weights = weights[..., ranks].movedim(0, -2) if own else weights[ranks].unsqueeze(-2)
            return terms @ weights.to(terms) if weights.ndim == 1 else (terms * weights).sum(-1)

        # Numbers a pair: the terms, their sorted copy, the sort's 64-bit indices, and what masks and weights add.
        width = 6 * self.dim
        per_pattern = (u,) if own else ()
        learned = (u, *base.parameters())
        return pairwise(
            block,
            patterns,
            queries,
            width=width,
            per_pattern=per_pattern,
            per_query=(observed, ranks),
            learned=learned,
        )

    @torch.no_grad()
    def resized(self, kept: Tensor, added: int) -> Adaptive:
        bases = [base.resized(kept, added) for base in self.bases]  # type: ignore[operator]
        if self.deviation is None and all(new is base for new, base in zip(bases, self.bases, strict=True)):
            return self
        other = copy.copy(self)
        other.bases = nn.ModuleList(bases)
        if self.deviation is not None:
            new = self.deviation.new_zeros(added, *self.deviation.shape[1:])
            other.deviation = nn.Parameter(torch.cat([self.deviation[kept], new]))
            other.patterns = len(other.deviation)
        return other

    def extra_repr(self) -> str:
        return f"dim={self.dim}, sort={self.sort}"


def _fits(patterns: Tensor, queries: Tensor, weights: Tensor) -> bool:
    """Whether no score can overflow in float32, where a fused pass could not tell it from a pattern left out."""
    sides = [
        float(torch.stack(torch.aminmax(rows.detach())).abs().max()) for rows in (patterns, queries) if rows.numel()
    ]
    largest = max(1.0, *sides)
    return 4 * largest**2 * float(weights.detach().abs().sum()) < 1e37


def _decomposable(base: Decomposable | str, dim: int) -> Decomposable:
    made = Similarity.of(base, dim)
    if not isinstance(made, Decomposable):
        known = sorted(name for name, kind in Similarity.members.items() if issubclass(kind, Decomposable))
        raise ValueError(f"base must be a decomposable similarity ({', '.join(known)}), got {made.name!r}")
    return made


def _matrix_values(matrix: str | Tensor, dim: int, *, needed: bool) -> Tensor | None:
    """U as numbers, or None where a running sum or nothing at all does its work."""
    if isinstance(matrix, str):
        if matrix not in ("cumulative", "identity"):
            raise ValueError(f"matrix must be 'cumulative', 'identity' or a ({dim}, {dim}) tensor, got {matrix!r}")
        if not needed:
            return None
        return torch.ones(dim, dim).tril() if matrix == "cumulative" else torch.eye(dim)
    values = as_tensor(matrix, "matrix")
    if values.shape != (dim, dim):
        raise ValueError(f"matrix must be a ({dim}, {dim}) tensor, got shape {tuple(values.shape)}")
    return values.clone()
