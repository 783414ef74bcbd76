r"""The energies that retrieval descends, and descent on any of them.

Each takes a memory and queries ``(..., d)`` and gives ``(...)``. Lower means closer to what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ahop._checks import as_queries
from ahop.similarity import Unified

if TYPE_CHECKING:
    from ahop.memory import AssociativeMemory


def quadratic(memory: AssociativeMemory, queries: Tensor) -> Tensor:
    r"""Of the classical network: :math:`-\tfrac12 x^\top \Xi \Xi^\top x`."""
    return -0.5 * memory.scores(queries).square().sum(-1)


def polynomial(memory: AssociativeMemory, queries: Tensor) -> Tensor:
    r"""Of the dense network: :math:`-\sum_i (\xi_i^\top x)^{k+1}`, in float64, where it overflows late."""
    scores = memory.scores(queries).double()
    return -(scores ** (memory.separation.k + 1)).sum(-1)  # type: ignore[operator]


def convex(memory: AssociativeMemory, queries: Tensor) -> Tensor:
    r"""Of the modern, sparse and kernel networks.

    .. math:: \tfrac12 \lVert \Phi x \rVert^2 - \Psi^\star(\Xi^\top\Phi^\top\Phi x)

    :math:`\Psi^\star` is the convex conjugate behind the separation, so that the difference of two convex
    functions falls along :math:`x \leftarrow \Xi \, \mathrm{sep}(s)`.
    """
    state, scores = queries if memory.modulation is None else memory.modulation(queries), memory.scores(queries)
    return 0.5 * state.to(scores.dtype).square().sum(-1) - memory.separation.conjugate(scores)


def evidence(memory: AssociativeMemory, queries: Tensor) -> Tensor:
    r"""Of the adaptive and the exponential networks.

    .. math:: -\mathrm{lse}(s(\Xi, x))

    Low where the memory explains x.
    """
    return -memory.separation.conjugate(memory.scores(queries))


def unified_step(memory: AssociativeMemory, queries: Tensor) -> Tensor:
    r"""One concave-convex step on the evidence energy of a memory with :class:`~ahop.similarity.Unified` similarity.

    There :math:`E(x) = \lVert x\rVert^2 - \mathrm{lse}(A x + c)` with rows :math:`A_i = 2\xi_i + b`, and the step

    .. math:: x \leftarrow \Xi p + b / 2, \qquad p = \mathrm{softmax}(s(\Xi, x))

    never raises it; E is bounded below by :math:`-\ln N - \lVert b\rVert^2/4`. :math:`\Xi p` alone is the answer
    with the bias taken away.
    """
    if not isinstance(memory.similarity, Unified):
        raise ValueError(f"unified_step needs a memory with Unified similarity, got {memory.similarity.name!r}")
    return memory.weights(queries) @ memory.patterns + memory.similarity.b / 2


def descend(memory: AssociativeMemory, queries: Tensor, steps: int = 50) -> Tensor:
    """Follow the gradient of ``memory.energy`` downhill, with a step size of its own for every query.

    Works for every memory with an energy, also where no closed update is known. A step is taken only where
    it lowers the energy, so it never rises.

    Example:
        >>> memory = ahop.AdaptiveHopfield(torch.eye(3))
        >>> start = torch.full((1, 3), 0.4)
        >>> bool(memory.energy(descend(memory, start)) < memory.energy(start))
        True
    """
    state = as_queries(queries, memory.patterns, None)[0].detach().clone()
    size = torch.full(state.shape[:-1], 0.5, dtype=state.dtype, device=state.device)
    for _ in range(steps):
        with torch.enable_grad():
            state.requires_grad_()
            energy = memory.energy(state)
            (slope,) = torch.autograd.grad(energy.sum(), state)
        state = state.detach()
        with torch.no_grad():
            trial = state - size[..., None] * slope
            better = memory.energy(trial) <= energy
            state = torch.where(better[..., None], trial, state)
            size = torch.where(better, size * 1.2, size * 0.5)
    return state
