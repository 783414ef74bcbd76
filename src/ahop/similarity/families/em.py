"""Expectation maximisation (Dempster, Laird and Rubin, 1977), whatever is learned by it.

An iteration shares every query out among what may have brought it about (the E-step), and solves for what is to be
learned as if those shares were known (the M-step). The log evidence of the queries, together with the log of a
prior that stays what it is, never falls.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import torch

Shares = TypeVar("Shares")


class Learner(Protocol[Shares]):
    """What is learned, from the data it holds."""

    def expect(self) -> tuple[float, Shares]:
        """The bound, by query, and the shares under what is known now."""

    def maximise(self, shares: Shares) -> bool | None:
        """Solve for what is to be learned, in place, given the shares; True where it hardly moves any more."""


@torch.no_grad()
def iterate(learner: Learner[Shares], steps: int, tolerance: float = -float("inf")) -> list[float]:
    """Iterate until the bound gains less than a tolerance, or the learner rests.

    Args:
        learner: The E-step and the M-step.
        steps: The most steps to make.
        tolerance: The least gain of the bound that is worth another step.

    Returns:
        The bound before each step.
    """
    trace: list[float] = []
    for _ in range(steps):
        bound, shares = learner.expect()
        trace.append(bound)
        if len(trace) > 1 and trace[-1] - trace[-2] < tolerance:
            break
        if learner.maximise(shares):
            break
    return trace
