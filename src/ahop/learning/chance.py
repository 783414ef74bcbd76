"""Better by more than chance: the rule by which learning compares, and how many witnesses answers are worth."""

from __future__ import annotations

import math

from torch import Tensor

_TINY = 1e-30


def standard_error(values: Tensor, groups: Tensor | None = None) -> float:
    r"""The standard error of the mean of values ``(n,)``, of which those of one group are one witness together:

    .. math:: \frac1n \sqrt{\sum_g \Big(\sum_{i \in g} (x_i - \bar x)\Big)^2}

    Args:
        values: ``(n,)``.
        groups: The group of each ``(n,)``; None where all are independent.

    Example:
        >>> values = torch.tensor([0.0, 0.0, 2.0, 2.0])
        >>> standard_error(values), round(standard_error(values, torch.tensor([7, 7, 3, 3])), 3)
        (0.5, 0.707)
    """
    if groups is None:
        return float(values.std(unbiased=False)) / math.sqrt(len(values))
    known, group = groups.unique(return_inverse=True)
    return float(_sums(values - values.mean(), group, len(known)).square().sum().sqrt()) / len(values)


def mean_by_group(values: Tensor, groups: Tensor) -> Tensor:
    """The mean of the values ``(n, ...)`` of each group, one row a group, in the order of their numbers.

    Args:
        values: ``(n, ...)``.
        groups: The group of each, ``(n,)``.

    Example:
        >>> mean_by_group(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([7, 7, 2]))
        tensor([5., 2.])
    """
    known, group, count = groups.unique(return_inverse=True, return_counts=True)
    return _sums(values, group, len(known)) / count.reshape(-1, *[1] * (values.ndim - 1))


def errors_above_zero(gains: Tensor) -> float:
    """By how many standard errors the mean of a few gains ``(n,)`` is above zero.

    Example:
        >>> round(errors_above_zero(torch.tensor([1.0, 2.0, 3.0])), 3)
        3.464
    """
    return float(gains.mean() / (gains.std() / math.sqrt(len(gains)) + _TINY))


def more_than_chance(gains: Tensor, errors: float = 1.0, *, groups: Tensor | None = None, least: float = 0.0) -> bool:
    """Whether the mean gain ``(n,)`` is above zero by more than so many standard errors.

    Args:
        gains: By how much each of n witnesses, if not a few, is for the one rather than the other.
        errors: How many standard errors.
        groups: As in :func:`standard_error`.
        least: A standard error that is smaller counts as this.

    Example:
        >>> gains = torch.tensor([0.1, 0.2, 0.3, 0.2])
        >>> more_than_chance(gains), more_than_chance(gains, errors=10.0)
        (True, False)
    """
    return float(gains.mean()) > errors * max(least, standard_error(gains, groups))


def few_more_than_chance(gains: Tensor, errors: float) -> bool:
    """The same of a few independent witnesses: by Student's t, as improbable as so many errors of a normal one.

    Example:
        >>> gains = torch.tensor([0.1, 0.2, 0.3, 0.2])
        >>> few_more_than_chance(gains, 2.0), few_more_than_chance(gains, 3.0)
        (True, False)
    """
    # SciPy takes a while to import.
    from scipy.stats import norm, t

    count = len(gains)
    if count < 2:
        return False
    return float(gains.mean()) > float(t.isf(norm.sf(errors), count - 1)) * float(gains.std()) / math.sqrt(count)


def larger_share(share: float, count: int, other: float, count_of_other: int, errors: float = 1.0) -> bool:
    """Whether a share is larger than another by more than so many standard errors of their difference.

    Args:
        share: Of the first.
        count: How many independent witnesses it is the share of.
        other, count_of_other: The same of the second.
        errors: How many standard errors.

    Example:
        >>> larger_share(0.9, 20, 0.8, 20), larger_share(0.9, 200, 0.8, 200)
        (False, True)
    """
    # As if of one witness more that is undecided: that all were alike is no proof.
    smoothed = ((part * n + 0.5) / (n + 1) for part, n in ((share, count), (other, count_of_other)))
    variances = (part * (1 - part) / n for part, n in zip(smoothed, (count, count_of_other), strict=True))
    return share - other > errors * math.sqrt(sum(variances))


def independent(right: Tensor, origins: Tensor) -> int:
    r"""How many independent answers these are worth, of which some share an origin: n over the design effect.

    .. math:: \frac{\sum_g \big(\sum_{i \in g} (r_i - \bar r)\big)^2}{n \, \bar r (1 - \bar r)}

    At least as many as there are origins; and no more, where all are alike and nothing tells how they vary.

    Args:
        right: Whether each was right ``(n,)``.
        origins: The origin of each ``(n,)``.

    Example:
        >>> independent(torch.tensor([True, False, True, False]), torch.tensor([0, 1, 2, 3]))
        4
        >>> independent(torch.tensor([True, True, False, False]), torch.tensor([0, 0, 1, 1]))
        2
    """
    values, count = right.double(), len(right)
    gaps = values - values.mean()
    known, group = origins.unique(return_inverse=True)
    by_origin, apart = _sums(gaps, group, len(known)), gaps.square().sum()
    together = by_origin.square().sum()
    worth = count * float(apart / together) if float(together) > 0 and float(apart) > 0 else 0.0
    return int(min(count, max(len(by_origin), worth)))


def _sums(values: Tensor, group: Tensor, count: int) -> Tensor:
    """The sum over each of so many groups, of which each value has the number."""
    return values.new_zeros(count, *values.shape[1:]).index_add_(0, group, values)
