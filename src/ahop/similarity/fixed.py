"""The similarities that learn nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from ahop._checks import as_tensor, require_finite
from ahop._component import single
from ahop._queries import Queries
from ahop.similarity.base import Decomposable, Similarity
from ahop.similarity.squares import ROUNDING, squared_distances


class Dot(Decomposable):
    r"""The inner product :math:`\xi^\top x`, the similarity of the classical networks.

    Example:
        >>> Dot()(torch.eye(2), torch.tensor([[3.0, 4.0]]))
        tensor([[3., 4.]])
    """

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return patterns * queries

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        return Queries(queries, observed).masked(queries) @ patterns.mT

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        """By the length of the vectors: products may cancel."""
        stored, asked = (torch.linalg.vector_norm(single(side.detach()), dim=-1) for side in (patterns, queries))
        return 2**-21 * stored.amax() * asked

    def bowl(self, state: Tensor) -> Tensor:
        r"""Half of :math:`\lVert x\rVert^2`."""
        return 0.5 * state.square().sum(-1)


class Distance(Decomposable):
    r"""The negative squared distance :math:`-\lVert \xi - x \rVert_2^2`.

    Computed as a matrix product, and by differences wherever that would lose digits.

    Example:
        >>> Distance()(torch.eye(2), torch.tensor([[1.0, 0.0]]))
        tensor([[ 0., -2.]])
    """

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return -(patterns - queries).square()

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        return 0 - squared_distances(patterns, queries, observed)

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return ROUNDING * best.abs()


class Euclidean(Similarity):
    r"""The negative distance :math:`-\lVert \xi - x \rVert_2`, not squared.

    Its softmax has long tails: what is far away still counts a little, as under a noise that is sometimes large. Not
    decomposable.

    Example:
        >>> Euclidean()(torch.eye(2), torch.tensor([[4.0, 4.0]]))
        tensor([[-5., -5.]])
    """

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        # In units near the largest value, whose squares do not vanish where the distance itself would not.
        unit = _power_of_two(patterns, queries)
        squares = squared_distances(patterns / unit, queries / unit, observed)
        if not squares.requires_grad:
            return 0 - unit * squares.sqrt()
        # At zero the root has no slope.
        zero = squares == 0
        return 0 - unit * squares.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return ROUNDING * best.abs()


def _power_of_two(*sides: Tensor) -> Tensor:
    """The largest below all values, which changes no digit of what it divides; 1 of zeros."""
    largest = _above_zero(torch.stack([side.detach().abs().amax() for side in sides if side.numel()]).amax())
    return largest / (2 * torch.frexp(largest).mantissa)


class Manhattan(Decomposable):
    r"""The negative sum of absolute differences :math:`-\lVert \xi - x \rVert_1`.

    Example:
        >>> Manhattan()(torch.eye(2), torch.tensor([[3.0, 0.0]]))
        tensor([[-2., -4.]])
    """

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return -(patterns - queries).abs()

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is None and queries.element_size() >= 4:
            return -torch.cdist(queries, patterns, p=1.0)
        return super().forward(patterns, queries, observed)


class Cosine(Similarity):
    r"""The cosine of the angle, :math:`\xi^\top x / (\lVert\xi\rVert \lVert x\rVert)`, over the observed dimensions.

    Not decomposable: each term depends on the whole vector through the norms. A zero vector scores zero. Cosines are
    small beside dot products, which are about d times as large where values have a variance of 1: a softmax needs a
    ``beta`` of that size to tell patterns apart as well.

    Example:
        >>> Cosine()(torch.eye(2), torch.tensor([[5.0, 0.0]]))
        tensor([[1., 0.]])
    """

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        mask = Queries(queries, observed).mask
        # Rows of largest value 1, whose squares neither overflow nor vanish.
        patterns, queries = _unsized(patterns), _unsized(queries * mask)
        # The pattern's norm runs over what this query observed, so it differs from query to query.
        lengths = _above_zero(mask @ patterns.square().mT).rsqrt()
        return queries @ patterns.mT * lengths * _above_zero(queries.square().sum(-1, keepdim=True)).rsqrt()


def _unsized(rows: Tensor) -> Tensor:
    return rows / _above_zero(rows.detach().abs().amax(-1, keepdim=True))


def _above_zero(sizes: Tensor) -> Tensor:
    """Sizes to divide by: one for a row of zeros, which stays one."""
    return sizes.masked_fill(sizes == 0, 1.0)


class Unified(Decomposable):
    r"""The paper's similarity for isotropic noise with a bias, one form for both.

    .. math:: s(\xi, x) = b^\top (x - \xi) - \lVert x - \xi \rVert_2^2

    With ``b`` twice the bias that every query suffered, this is the distance after the bias is taken away,
    up to a constant of the query; with ``b = 0`` it is :class:`Distance`.

    Args:
        b: One number per dimension.

    Example:
        >>> Unified(torch.tensor([2.0, 0.0]))(torch.eye(2), torch.tensor([[2.0, 0.0]]))
        tensor([[ 1., -1.]])
    """

    b: Tensor
    dim: int

    def __init__(self, b: Tensor) -> None:
        super().__init__()
        b = as_tensor(b, "b")
        if b.ndim != 1:
            raise ValueError(f"b must be one number per dimension, got shape {tuple(b.shape)}")
        require_finite(b, "b")
        self.register_buffer("b", b)
        self.dim = len(b)

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        difference = queries - patterns
        return self.b * difference - difference.square()


class Precision(Decomposable):
    r"""Distances weighed by how exact each dimension is, :math:`-\sum_i (\xi_i - x_i)^2 / \sigma_i^2`.

    Optimal for noise. The paper divides by what it calls :math:`\sigma_i`, which is a variance.

    Args:
        sigma: The standard deviation of each dimension, ``(d,)``.
    """

    dim: int
    sigma: Tensor

    def __init__(self, sigma: Tensor) -> None:
        super().__init__()
        self.register_buffer("sigma", sigma)
        self.dim = len(sigma)

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return -((patterns - queries) / self.sigma).square()


class Matches(Decomposable):
    r"""The number of dimensions that agree exactly, :math:`\sum_i [\xi_i = x_i]`.

    Optimal for masking, where a value is either kept as it was or drawn anew.

    Example:
        >>> Matches()(torch.eye(3), torch.tensor([[1.0, 0.0, 0.5]]))
        tensor([[2., 0., 1.]])
    """

    def terms(self, patterns: Tensor, queries: Tensor) -> Tensor:
        return (patterns == queries).to(queries.dtype)
