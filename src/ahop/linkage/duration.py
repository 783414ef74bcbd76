r"""About how long it will take to link very many rows, said before it begins.

.. math:: t = d \, N \, \bigl(a \min(n, 2048) + b \, n\bigr) \, \tau

of n incoming and N stored rows of d columns: the looks at all stored rows while learning, and the answers.
:math:`\tau` is the time that this machine takes for a multiplication in a product of two tables; a and b are by one
match of a million rows, so that real data may take half as long, or twice. Of fewer rows than that, what takes
long is the choice of a model, which nobody can foresee.
"""

from __future__ import annotations

import math
import time

import torch

_LOOKED, _ANSWERED, _SAMPLE = 100.0, 4.0, 2048
# Seconds that nobody needs to be told of.
_SOON = 60.0
# A product that takes a moment, and how often the best of it is looked for.
_PROBE, _TIMES = (256, 64, 2**14), 3


def forecast(stored: int, incoming: int, columns: int, *, learning: bool = True) -> float:
    """About how many seconds it takes to match so many rows.

    Args:
        stored, incoming: How many rows there are.
        columns: How many columns are compared.
        learning: Whether it is to be learned what happened to them.

    Example:
        >>> forecast(100, 50, 8) < forecast(10**6, 10**5, 64)
        True
    """
    work = stored * _ANSWERED * incoming
    if learning:
        work += stored * _LOOKED * min(incoming, _SAMPLE)
    return columns * work * _multiplication()


def in_words(seconds: float) -> str:
    """As far as anybody would plan by it; nothing where it is soon over.

    Example:
        >>> in_words(41), in_words(130), in_words(1380), in_words(9000)
        ('', 'about 2 minutes', 'about 25 minutes', 'about 2 hours')
    """
    if seconds < _SOON:
        return ""
    unit, size = ("hours", 3600) if seconds >= 2 * 3600 else ("minutes", 60)
    count = seconds / size
    return f"about {max(2, round(count)) if count < 10 else 5 * round(count / 5)} {unit}"


def _multiplication() -> float:
    """Seconds that one takes."""
    rows, dim, columns = _PROBE
    left, right, best = torch.ones(rows, dim), torch.ones(dim, columns), math.inf
    for _ in range(_TIMES):
        start = time.perf_counter()
        torch.mm(left, right)
        best = min(best, time.perf_counter() - start)
    return best / math.prod(_PROBE)
