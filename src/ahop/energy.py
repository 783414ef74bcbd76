r"""The energy that retrieval descends, descent on it, and the basins that it leads into.

Energy belongs to the parts of a network. With scores s of the similarity and :math:`\Psi^\star` of the separation,

.. math:: E(x) = \mathrm{bowl}(x) - \Psi^\star(s(\Xi, x))

=========================  ==========================================  ============================================
similarity and separation  E(x)                                        network
=========================  ==========================================  ============================================
dot, identity              :math:`-\tfrac12 \sum_i s_i^2`              classical
dot, power k               :math:`-\sum_i s_i^{k+1}`                   dense
dot, exponential           :math:`-\mathrm{lse}(s)`                    exponential
dot, softmax               :math:`\tfrac12\lVert x\rVert^2 -
                           \tfrac1\beta\mathrm{lse}(\beta s)`          modern; after :math:`\Phi`, kernel
dot, sparsemax or entmax   likewise with their conjugate               sparse; normmax and ksubsets likewise
distance, epanechnikov     :math:`-\tfrac1\beta \log \sum_i
                           \mathrm{ReLU}(1 + \tfrac\beta2 s_i)`        of a reach; falls along the same step
anything else, softmax     :math:`-\tfrac1\beta\mathrm{lse}(\beta s)`  adaptive, Bayesian, Gaussian: low where x is
                                                                       explained
=========================  ==========================================  ============================================

The bowl of the dot product makes E a difference of two convex functions, which falls along
:math:`x \leftarrow \Xi^\top \mathrm{sep}(s)`.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

from ahop.separation import Separation
from ahop.similarity import Similarity, Unified

# As shares of the diagonal of a box: how far a state may go in a step, how near to each other states end that are in
# the same well, and how little a state moves that rests. Fewer states together make no well.
_STRIDE, _NEAR, _MOVED, _FEWEST = 0.02, 0.03, 2e-4, 4
# How far a state is pushed to see whether it rolls back, likewise; and steps after which it is seen who has left.
_PUSH, _STEPS_BETWEEN = 0.01, 20


class Energetic(Protocol):
    """What is asked of a memory whose energy is descended."""

    def energy(self, queries: Tensor) -> Tensor: ...


class Weighing(Protocol):
    """What is asked of a memory that takes a step of its own."""

    patterns: Tensor
    similarity: Similarity

    def weights(self, queries: Tensor) -> Tensor: ...


def parts_energy(similarity: Similarity, separation: Separation, state: Tensor, scores: Tensor) -> Tensor:
    """The energy of states ``(..., d)`` with scores ``(..., N)``, as these two parts have it, ``(...)``.

    Args:
        similarity, separation: The parts of a memory.
        state: The states, ``(..., d)``.
        scores: Their similarities to the patterns, ``(..., N)``.

    Returns:
        The energy of each state, ``(...)``.
    """
    energy = -separation.conjugate(scores)
    bowl = similarity.bowl(state.to(energy.dtype)) if separation.in_a_bowl else None
    return energy if bowl is None else energy + bowl


def unified_step(memory: Weighing, queries: Tensor) -> Tensor:
    r"""One concave-convex step on the evidence energy of a memory with :class:`~ahop.similarity.Unified` similarity.

    There :math:`E(x) = \lVert x\rVert^2 - \mathrm{lse}(A x + c)` with rows :math:`A_i = 2\xi_i + b`, and the step

    .. math:: x \leftarrow \Xi^\top p + b / 2, \qquad p = \mathrm{softmax}(s(\Xi, x))

    never raises it; E is bounded below by :math:`-\ln N - \lVert b\rVert^2/4`. :math:`\Xi^\top p` alone is the answer
    with the bias taken away.
    """
    if not isinstance(memory.similarity, Unified):
        raise ValueError(f"unified_step needs a memory with Unified similarity, got {memory.similarity.name!r}")
    return memory.weights(queries) @ memory.patterns + memory.similarity.b / 2


def descend(memory: Energetic, queries: Tensor, steps: int = 50, *, stride: float = math.inf) -> Tensor:
    """Follow the gradient of ``memory.energy`` downhill, with a step size of its own for every query.

    Works for every memory with an energy, also where no closed update is known. A step is taken only where
    it lowers the energy, so it never rises.

    Args:
        memory: Any memory with an energy.
        queries: Where to begin, ``(..., d)``.
        steps: How many to try.
        stride: How far one may go. The energy of a binary network has no lowest point outside its corners, and falls
            ever faster on the way there.

    Example:
        >>> memory = ahop.AdaptiveHopfield(torch.eye(3))
        >>> start = torch.full((1, 3), 0.4)
        >>> bool(memory.energy(descend(memory, start)) < memory.energy(start))
        True
    """
    with torch.no_grad():
        # As the memory computes, which need not keep patterns.
        state = queries.detach().clone().to(memory.energy(queries))
    size = torch.full(state.shape[:-1], 0.5, dtype=state.dtype, device=state.device)
    for _ in range(steps):
        with torch.enable_grad():
            state.requires_grad_()
            energy = memory.energy(state)
            (slope,) = torch.autograd.grad(energy.sum(), state)
        state = state.detach()
        with torch.no_grad():
            step = size[..., None] * slope
            # The square of a steep one may not fit its type.
            length = step.double().norm(dim=-1, keepdim=True).to(step)
            trial = state - step * (stride / length).clamp(max=1)
            better = memory.energy(trial) <= energy
            state = torch.where(better[..., None], trial, state)
            size = torch.where(better, size * 1.2, size * 0.5)
    return state


def basins(memory: Energetic, starts: Tensor, steps: int = 80, *, most: int = 64) -> tuple[Tensor, Tensor]:
    """Where states come to rest that fill a box, and the basins of these wells: from where states roll into each.

    A well is where several states meet that have moved: on flat ground each stays by itself, and where there is no
    lowest point they leave the box.

    Args:
        memory: Any memory with an energy.
        starts: States that fill the box, ``(n, d)``.
        steps: Steps of their descent (:func:`descend`).
        most: Wells that are looked for, at most.

    Returns:
        The wells ``(w, d)``, lowest first, and the number of the one that each state rolls into, ``(n,)``; -1 for none.

    Example:
        >>> memory = ahop.ModernHopfield([[-1.0, 0.0], [1.0, 0.0]], beta=8.0)
        >>> side = torch.linspace(-1.5, 1.5, 10)
        >>> wells, found = basins(memory, torch.cartesian_prod(side, side))
        >>> len(wells), (found >= 0).all().item()
        (2, True)
    """
    starts = starts if starts.is_floating_point() else starts.float()
    low, high = starts.amin(0), starts.amax(0)
    size = float((high - low).norm())
    ends, inside = starts.clone(), torch.ones(len(starts), dtype=torch.bool, device=starts.device)
    for _ in range(0, steps, _STEPS_BETWEEN):
        # Who has left the box need not be followed to where energies do not fit a float any more.
        if bool(inside.any()):
            ends[inside] = descend(memory, ends[inside], _STEPS_BETWEEN, stride=_STRIDE * size).to(ends)
            inside = ((ends >= low) & (ends <= high)).all(1)
    with torch.no_grad():
        depths = memory.energy(ends)
    found = torch.full((len(ends),), -1, device=starts.device)
    left = inside & ((ends - starts).norm(dim=1) > _MOVED * size)
    wells = [ends[:0]]
    while bool(left.any()) and len(wells) <= most:
        lowest = depths.masked_fill(~left, torch.inf).argmin()
        near = ((ends - ends[lowest]).norm(dim=1) < _NEAR * size) & (found < 0)
        left = left & ~near
        if int(near.sum()) < _FEWEST:
            continue
        # What rolls away once it is pushed rests on a ridge.
        pushed = descend(memory, _around(ends[lowest], _PUSH * size), steps).to(ends)
        if bool((pushed - ends[lowest]).norm(dim=1).max() < _NEAR * size):
            found[near] = len(wells) - 1
            wells.append(ends[lowest, None])
    return torch.cat(wells), found


def _around(state: Tensor, far: float) -> Tensor:
    """Places so far from a state ``(d,)`` to both sides in each dimension, ``(2d, d)``."""
    pushes = far * torch.eye(len(state)).to(state)
    return state + torch.cat([pushes, -pushes])
