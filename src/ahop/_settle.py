"""The one loop in which states become what they retrieve, for memories and for layers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ahop._warnings import warn


def settle(
    step: Callable[[Tensor, Tensor | None], Tensor],
    state: Tensor,
    observed: Tensor | None = None,
    *,
    steps: int | None,
    tolerance: float,
    most: int,
) -> tuple[Tensor, Tensor | None]:
    r"""Replace each state by what it retrieves, until it rests.

    .. math:: x \leftarrow \mathrm{step}(x) \quad\text{as long as}\quad
        \lVert \mathrm{step}(x) - x \rVert_\infty > \mathrm{tolerance}

    Every state rests for itself, so that it does not matter which others come with it. What was observed of a state is
    set back to what it was after each step.

    Args:
        step: The next states, from the states and which of their entries are known (None is all).
        state: ``(..., d)``.
        observed: Which entries of the states were observed, ``(..., d)``; None is all, and all may then change.
        steps: How many steps; None goes on until every state rests.
        tolerance: A state rests when no entry of it would move by more than this.
        most: Where ``steps=None`` gives up, with a warning.

    Returns:
        The states, and which of their entries are known: ``observed`` before the first step, None (all) after it.
    """
    given, known = state, observed
    for _ in range(most if steps is None else steps):
        update = step(state, known)
        if observed is not None:
            update, known = torch.where(observed, given, update), None
        # Asked this way round, what is no number never rests.
        moves = ~((update - state).abs().amax(-1, keepdim=True) <= tolerance)
        state = torch.where(moves, update, state)
        if steps is None and not bool(moves.any()):
            return state, known
    if steps is None:
        warn(f"the state still moved after {most} steps", RuntimeWarning)
    return state, known
