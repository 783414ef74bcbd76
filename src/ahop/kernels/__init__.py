r"""Fast footprints: scores, readouts and rankings of :class:`~ahop.similarity.Adaptive` without their big tensors.

.. math:: s(\xi, x) = \sum_b \sum_j u_{b,j} \, \tilde q_{b,j}, \qquad \tilde q_b = \mathrm{sort}_\downarrow(q_b)

Each function picks its backend by device, size and what is there (:func:`use` overrides, :func:`last_used` tells):
``"reference"`` is the definition in plain PyTorch, ``"cpu"`` and ``"cuda"`` are sorting networks compiled at run time,
in float32, for up to 4,096 and 1,024 dimensions; on a GPU, up to 8 bases, and rankings of up to 32 in one pass.
:func:`scores` and :func:`retrieve` are differentiable, once; nothing of size queries x patterns x dimensions is kept
for the backward pass. Numbers must be finite: NaN and infinities mean nothing here, except where ``observed`` is False.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ahop.kernels import operators
from ahop.kernels.backend import Pairs, Ranking, Readout
from ahop.kernels.dispatch import backend_for, last_used, use
from ahop.kernels.reference import TERMS

__all__ = [
    "TERMS",
    "Ranking",
    "Readout",
    "last_used",
    "readout",
    "recall",
    "retrieve",
    "scores",
    "sorted_terms",
    "stretch",
    "use",
]


def scores(
    patterns: Tensor, queries: Tensor, weights: Tensor, bases: Sequence[str], *, observed: Tensor | None = None
) -> Tensor:
    r"""The weighted footprints of every pair.

    Args:
        patterns, queries: ``(..., N, d)`` and ``(..., Q, d)``, the same leading dimensions.
        weights: The order weights u of each base, ``(B, d)``, or ``(heads, B, d)`` where the last leading dimension
            is that of the heads.
        bases: ``"distance"``, ``"dot"`` or ``"manhattan"``, in any number.
        observed: Which entries of the queries count, ``(..., Q, d)``; see :func:`stretch`.

    Shape:
        ``(..., Q, N)``. float16 and bfloat16 are computed and returned in float32.

    Example:
        >>> ahop.kernels.scores(torch.eye(2), torch.tensor([[3.0, 1.0]]), torch.ones(1, 2), ["manhattan"])
        tensor([[-3., -3.]])
    """
    groups, table = _grouped(patterns, queries, weights, bases, observed), patterns.shape[-2]
    return operators.scores(*groups).reshape(*queries.shape[:-1], table)


def retrieve(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    bases: Sequence[str],
    values: Tensor,
    *,
    bias: Tensor | None = None,
    observed: Tensor | None = None,
) -> Tensor:
    r"""The readout :math:`\mathrm{softmax}(s + b) V`, on a GPU in one pass without a table of scores.

    Args:
        patterns, queries, weights, bases, observed: As in :func:`scores`; an inverse temperature goes into the
            weights.
        values: ``(..., N, v)``.
        bias: ``(..., N)``, added to the scores: a log prior, or minus infinity for patterns to leave out.

    Shape:
        ``(..., Q, v)``.

    Example:
        >>> patterns = torch.eye(2)
        >>> ahop.kernels.retrieve(patterns, patterns, 1000 * torch.ones(1, 2), ["dot"], patterns)
        tensor([[1., 0.],
                [0., 1.]])
    """
    return readout(patterns, queries, weights, bases, values, bias=bias, observed=observed).blend


def readout(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    bases: Sequence[str],
    values: Tensor,
    *,
    bias: Tensor | None = None,
    observed: Tensor | None = None,
) -> Readout:
    """As :func:`retrieve`, with the log-sum-exp of the scores beside it, ``(..., Q)``.

    Args:
        patterns, queries, weights, bases: As in :func:`scores`.
        values: What to blend, ``(..., N, v)``.
        bias: Added to the scores, ``(..., N)``: log priors, say.
        observed: Which entries of the queries count, ``(..., Q, d)``; None is all.
    """
    groups = _grouped(patterns, queries, weights, bases, observed)
    if values.shape[:-1] != patterns.shape[:-1]:
        shapes = f"got values {tuple(values.shape)} for patterns {tuple(patterns.shape)}"
        raise ValueError(f"values must have one row per pattern; {shapes}")
    rows, offsets = _flat(values, 2), _flat_bias(bias, patterns)
    _alike(groups[0], values=rows, bias=offsets)
    blend, log_sums = operators.retrieve(*groups, rows, offsets)
    shape = queries.shape[:-1]
    return Readout(blend.reshape(*shape, values.shape[-1]), log_sums.reshape(shape))


@torch.no_grad()
def recall(
    patterns: Tensor,
    queries: Tensor,
    weights: Tensor,
    bases: Sequence[str],
    k: int,
    *,
    bias: Tensor | None = None,
    observed: Tensor | None = None,
) -> Ranking:
    """The k best patterns of each query, best first, on a GPU in one pass without a table of scores.

    Where a bias of minus infinity leaves fewer than k, the rest have that score, and their indices mean nothing.

    Args:
        patterns, queries, weights, bases, bias, observed: As in :func:`retrieve`.
        k: How many, at most N.

    Example:
        >>> ahop.kernels.recall(torch.eye(3), torch.eye(3), torch.ones(1, 3), ["dot"], 1).indices
        tensor([[0],
                [1],
                [2]])
    """
    if not 1 <= k <= patterns.shape[-2]:
        raise ValueError(f"k must be between 1 and {patterns.shape[-2]}, the number of patterns; got {k}")
    groups = _grouped(patterns, queries, weights, bases, observed)
    offsets = _flat_bias(bias, patterns)
    _alike(groups[0], bias=offsets)
    best, indices, log_sums = operators.recall(*groups, k, offsets)
    shape = queries.shape[:-1]
    return Ranking(best.reshape(*shape, k), indices.reshape(*shape, k), log_sums.reshape(shape))


@torch.no_grad()
def sorted_terms(patterns: Tensor, queries: Tensor, bases: Sequence[str]) -> Tensor:
    """What the weights multiply: the terms of every pair and base, best first. Not differentiable, and big.

    Args:
        patterns, queries: What is compared.
        bases: Names of the similarities whose terms are sorted.

    Shape:
        ``(..., N, d)`` and ``(..., Q, d)`` to ``(..., Q, N, B, d)``.

    Example:
        >>> ahop.kernels.sorted_terms(torch.eye(2), torch.tensor([[3.0, 1.0]]), ["dot"])
        tensor([[[[3., 0.]],
        <BLANKLINE>
                 [[1., 0.]]]])
    """
    dim = patterns.shape[-1]
    # No weights are needed, but all else is checked and arranged in the same way.
    pairs = Pairs(*_grouped(patterns, queries, patterns.new_empty(len(bases), dim), bases, None)[:4], bases)
    table = backend_for(pairs).sorted_terms(pairs.patterns, pairs.queries, bases)
    return table.reshape(*queries.shape[:-1], patterns.shape[-2], len(bases), dim)


def stretch(observed: Tensor) -> Tensor:
    """For each query with m observed dimensions, the rank among d that its j-th best term stands for.

    Example:
        >>> stretch(torch.tensor([[True, False, True, False]]))
        tensor([[1, 3, 3, 3]])
    """
    dim = observed.shape[-1]
    places = torch.arange(dim, device=observed.device)
    count = observed.sum(-1, keepdim=True).clamp_min(1)
    return ((places + 0.5) * dim / count).long().clamp_max(dim - 1)


def _grouped(
    patterns: Tensor, queries: Tensor, weights: Tensor, bases: Sequence[str], observed: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, str]:
    """The operators' arguments: leading dimensions made one, and each query's own weights where some is unobserved."""
    _check(patterns, queries, weights, bases, observed)
    patterns, queries, weights = _flat(patterns, 2), _flat(queries, 2), _flat(weights, 2)[:, None]
    _alike(patterns, queries=queries, weights=weights)
    if observed is not None:
        observed = _flat(observed, 2)
        groups, rows, dim = observed.shape
        own = weights.repeat(groups // len(weights), 1, 1, 1).expand(-1, rows, -1, -1)
        ranks = stretch(observed)[:, :, None].expand(-1, -1, own.shape[2], -1)
        counted = torch.arange(dim, device=observed.device) < observed.sum(-1)[..., None, None]
        weights = torch.where(counted, own.gather(-1, ranks), 0.0)
    return patterns, queries, weights, observed, ",".join(bases)


def _flat(tensor: Tensor, kept: int) -> Tensor:
    """All leading dimensions as one; halves as float32."""
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.flatten(0, -kept - 1) if tensor.ndim > kept else tensor[None]


def _alike(patterns: Tensor, **others: Tensor | None) -> None:
    """Kernels read memory as it lies: all of it must be of one type, in one place."""
    for name, other in others.items():
        if other is not None and (other.dtype, other.device) != (patterns.dtype, patterns.device):
            wanted, got = f"{patterns.dtype} on {patterns.device}", f"{other.dtype} on {other.device}"
            raise ValueError(f"{name} must be like the patterns, {wanted}; got {got}")


def _flat_bias(bias: Tensor | None, patterns: Tensor) -> Tensor | None:
    if bias is None:
        return None
    if bias.shape != patterns.shape[:-1]:
        shapes = f"got bias {tuple(bias.shape)} for patterns {tuple(patterns.shape)}"
        raise ValueError(f"bias must have one number per pattern; {shapes}")
    return _flat(bias, 1)


def _check(patterns: Tensor, queries: Tensor, weights: Tensor, bases: Sequence[str], observed: Tensor | None) -> None:
    unknown = [base for base in bases if base not in TERMS]
    if unknown or not bases or isinstance(bases, str):
        raise ValueError(f"bases must be a list of {', '.join(map(repr, TERMS))}; got {bases!r}")
    shapes = f"got patterns {tuple(patterns.shape)} and queries {tuple(queries.shape)}"
    if patterns.ndim < 2 or queries.ndim < 2 or patterns.shape[:-2] != queries.shape[:-2]:
        raise ValueError(f"patterns (..., N, d) and queries (..., Q, d) must have the same leading sizes; {shapes}")
    if patterns.shape[-1] != queries.shape[-1] or 0 in patterns.shape[-2:]:
        raise ValueError(f"patterns and queries must have the same number of dimensions, and not be empty; {shapes}")
    heads, wanted = weights.shape[:-2], (len(bases), patterns.shape[-1])
    if weights.shape[-2:] != wanted or heads not in (torch.Size(), patterns.shape[-3:-2]):
        raise ValueError(f"weights must be {wanted}, or (heads, *{wanted}); got shape {tuple(weights.shape)}")
    if observed is not None and (observed.shape != queries.shape or observed.dtype != torch.bool):
        got = f"{observed.dtype} of shape {tuple(observed.shape)}"
        raise ValueError(f"observed must be boolean, of the shape of the queries; got {got}")
