"""What a fit says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FitReport:
    """The way down that was taken, the final loss, how many iterations it took, and whether it had converged."""

    solver: str
    loss: float
    iterations: int
    converged: bool
