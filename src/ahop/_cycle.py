"""The learning rate along a training, for every network that is trained here."""

from __future__ import annotations

import math


def cycle(step: float, steps: float, rise: float | None = None, first: float = 1) -> float:
    r"""The part of the learning rate at a step: a rise, then half a cosine.

    .. math:: \frac{t + f}{r} \;\text{ for } t < r, \qquad
        \tfrac12 \Big(1 + \cos \pi \frac{t - r}{T - r}\Big) \;\text{ from there on}

    Args:
        step: How much of the training is over, :math:`t`, in any unit.
        steps: All of it, :math:`T`.
        rise: How long the rate rises, :math:`r`; a tenth of whole steps when None, and at least one.
        first: The first step, :math:`f`, so that it does not begin with nothing.
    """
    rise = max(1, steps // 10) if rise is None else rise
    if step < rise:
        return (step + first) / rise
    return 0.5 * (1 + math.cos(math.pi * (step - rise) / ((steps - rise) or 1)))
