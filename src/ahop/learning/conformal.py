r"""Sets of patterns that hold the origin at a promised rate: split conformal prediction (Vovk and others, 2005).

Of ``n`` queries with known origins that the model did not learn from, a score of each origin is kept. For a coverage
:math:`c`, patterns count whose score reaches the k-th smallest of these,

.. math:: k = \lfloor (n + 1)(1 - c) \rfloor,

and their set holds the origin of a further query of the same kind with a probability of at least :math:`c`, whatever
the model. That is over all draws of the labels. What the labels at hand bring varies, by the beta distribution of
:math:`n + 1 - k` and :math:`k`.

The score is how far a pattern is behind the first choice (:func:`behind`), in nats of a likelihood at temperature one.
A probability would not do: how sure to be was learned from the same labels, and they would promise more than holds. A
temperature, and a share of queries that tell nothing, change how sure a memory is, and never who is behind whom.
"""

from __future__ import annotations

import math

from torch import Tensor


def behind(scores: Tensor) -> Tensor:
    """How far the origins are behind the first choices: nought where they are these, and below it elsewhere, ``(n,)``.

    Args:
        scores: Of the origin of each, first, and of its rivals, ``(n, 1 + R)``.

    Example:
        >>> behind(torch.tensor([[5.0, 1.0], [2.0, 4.5]]))
        tensor([ 0.0000, -2.5000])
    """
    return scores[:, 0] - scores.amax(1)


def threshold(scores: Tensor, coverage: float) -> float:
    """The score from which on patterns are in the set.

    Args:
        scores: Those of held-out origins, in ascending order, ``(n,)``; minus infinity where none is stored.
        coverage: The rate at which sets are to hold the origin.

    Example:
        >>> threshold(torch.tensor([0.05, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9]), coverage=0.8)
        0.25
    """
    count = len(scores)
    place = _place(count, coverage)
    if not place:
        raise ValueError(
            f"coverage must be at most {count / (count + 1):.3f}, which is what {count} labels can promise; "
            f"got {coverage}"
        )
    least = float(scores[place - 1])
    if least == -math.inf:
        lost = int((scores == -math.inf).sum())
        raise ValueError(
            f"coverage must be at most {1 - lost / (count + 1):.3f}: {lost} of {count} labelled queries come from no "
            f"stored pattern, and no set of patterns holds their origin; got {coverage}"
        )
    return least


def realised(labels: int, coverage: float, level: float = 0.9) -> tuple[float, float]:
    """Between what the coverage lies that so many labels bring, at a confidence level.

    Args:
        labels: The number of labels.
        coverage: The coverage asked for.
        level: The confidence level.

    Returns:
        Both ends of the interval.

    Example:
        >>> [[round(end, 3) for end in realised(labels, 0.9)] for labels in (10, 100)]
        [[0.741, 0.995], [0.848, 0.945]]
    """
    from scipy.stats import beta

    place = _place(labels, coverage)
    if not place:
        return 0.0, 1.0
    miss = (1 - level) / 2
    return float(beta.ppf(miss, labels + 1 - place, place)), float(beta.isf(miss, labels + 1 - place, place))


def _place(count: int, coverage: float) -> int:
    # In decimals a tenth is no binary fraction, and 1 - 0.9 falls short of it.
    return min(count, int((count + 1) * (1 - coverage) + 1e-9))
