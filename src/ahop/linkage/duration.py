r"""About how long it will take to link very many rows, said before it begins.

.. math:: t = \bigl(d \, (f \, a \, (N + 500 \sqrt{N}) \min(n, 2048) + g \, b \, N n) + g \, c \, n\bigr) \, \tau

of n incoming and N stored rows of d columns: f times the looks at stored rows while learning (the more there are, the
smaller the share that each step looks at); g times the answers and, one to one alone, c for sharing rows out among
their candidates. f is one, and one more for each half of known pairs that is hidden to judge; so is g one to one, and
else it is one. :math:`\tau` is the time that this machine takes for a multiplication in a product of two tables; a, b
and c are by a few matches of very many rows, so that real data may take half as long, or twice. Of fewer rows than
that, what takes long is the choice of a model, which nobody can foresee.
"""

from __future__ import annotations

import math
import time
from functools import cache

import torch

from ahop.linkage.holdout import FOLDS

# a, b and c of the formula above, and the queries that a fit learns from at most.
_LOOKED, _ANSWERED, _SHARED, _SAMPLE = 160.0, 15.0, 2e7, 2048
# Seconds that nobody needs to be told of.
_SHORT_SECONDS = 60.0
# A product that takes a moment, and how often the best of it is looked for.
_PROBE, _TIMES = (256, 64, 2**14), 3


def forecast(
    stored: int,
    incoming: int,
    columns: int,
    *,
    learning: bool = True,
    one_to_one: bool = False,
    judging: bool = False,
) -> float:
    """About how many seconds it takes to match so many rows.

    Args:
        stored, incoming: How many rows there are.
        columns: How many columns are compared.
        learning: Whether it is to be learned what happened to them.
        one_to_one: Whether each stored row is given away once.
        judging: Whether halves of the known pairs are hidden, and found by what the others teach.

    Example:
        >>> forecast(100, 50, 8) < forecast(10**6, 10**5, 64) < forecast(10**6, 10**5, 64, one_to_one=True)
        True
    """
    halves = FOLDS if judging else 0
    # One to one, hidden pairs are matched together with all other rows.
    fits, answers = (1 + halves if learning else 0), (1 + halves if one_to_one else 1)
    looked = (stored + 500 * math.sqrt(stored)) * fits * _LOOKED * min(incoming, _SAMPLE)
    work = columns * (looked + answers * _ANSWERED * stored * incoming)
    if one_to_one:
        work += answers * _SHARED * incoming
    return work * _multiplication()


def in_words(seconds: float) -> str:
    """As far as anybody would plan by it; nothing where it is soon over.

    Example:
        >>> in_words(41), in_words(130), in_words(1380), in_words(9000)
        ('', 'about 2 minutes', 'about 25 minutes', 'about 2 hours')
    """
    if seconds < _SHORT_SECONDS:
        return ""
    unit, size = ("hours", 3600) if seconds >= 2 * 3600 else ("minutes", 60)
    count = seconds / size
    return f"about {max(2, round(count)) if count < 10 else 5 * round(count / 5)} {unit}"


@cache
def _multiplication() -> float:
    """Seconds that one takes, measured once: two forecasts can be compared however busy a machine is."""
    rows, dim, columns = _PROBE
    left, right, best = torch.ones(rows, dim), torch.ones(dim, columns), math.inf
    for _ in range(_TIMES):
        start = time.perf_counter()
        torch.mm(left, right)
        best = min(best, time.perf_counter() - start)
    return best / math.prod(_PROBE)
