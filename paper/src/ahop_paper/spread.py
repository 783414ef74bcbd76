"""Figures of several runs: their mean and spread, and by how much two models differ on the same splits."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Mean, standard deviation and the single runs."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {
        "mean": round(statistics.fmean(values), 4),
        "std": round(deviation, 4),
        "runs": [round(value, 4) for value in values],
    }


def with_interval(values: Sequence[float]) -> dict[str, Any]:
    """Mean, standard deviation and single runs, and where the mean lies in 95 % of cases."""
    ends = paired(values, [0.0] * len(values), ratio=0.0)
    return {**spread(values), "low": ends["low"], "high": ends["high"]}


def paired(ours: Sequence[float], theirs: Sequence[float], ratio: float) -> dict[str, float | None]:
    r"""The mean difference of figures from the same splits, with its 95 % confidence interval.

    .. math:: \bar d \pm t_{.975,\, k-1} \sqrt{\left(\tfrac1k + r\right) s^2_d}

    Splits of one set share items, so that their spread alone says too little: r, how many items are scored for one
    that is learned from, makes up for that (Nadeau and Bengio, 2003). One split has no interval.

    Args:
        ours, theirs: One figure for each split.
        ratio: r.

    Example:
        >>> paired([0.9, 0.8, 0.7], [0.6, 0.5, 0.4], ratio=1.0)
        {'mean': 0.3, 'low': 0.3, 'high': 0.3}
    """
    gaps = [own - other for own, other in zip(ours, theirs, strict=True)]
    mean = statistics.fmean(gaps)
    if len(gaps) < 2:
        return {"mean": round(mean, 4), "low": None, "high": None}
    from scipy.special import stdtrit

    reach = float(stdtrit(len(gaps) - 1, 0.975)) * math.sqrt((1 / len(gaps) + ratio) * statistics.variance(gaps))
    return {"mean": round(mean, 4), "low": round(mean - reach, 4), "high": round(mean + reach, 4)}


def beside(what: str, own: dict[Any, float], others: dict[str, dict[Any, float]], ratio: float) -> dict[str, Any]:
    """The best of the others on the same splits, and the paired difference to it; nothing where none has them all.

    ``ahead`` says whether the intervals of the differences to *all* of them lie above zero: the best by a hair may be
    one that is easily told from the model, and the next one not.

    Args:
        what: What the figures are called.
        own: A model's figure on each split.
        others: The same for those to compare it with.
        ratio: As in :func:`paired`.

    Example:
        >>> found = beside("auc", {0: 0.9, 1: 0.8}, {"mean": {0: 0.2, 1: 0.1}, "max": {0: 0.5, 1: 0.4}}, ratio=1.0)
        >>> found["best_other"]["model"], found["difference"]
        ('max', {'mean': 0.4, 'low': 0.4, 'high': 0.4})
        >>> found["ahead"]
        True
    """
    theirs = {model: [runs[split] for split in own] for model, runs in others.items() if own.keys() <= runs.keys()}
    if not own or not theirs:
        return {}
    best = max(theirs, key=lambda model: sum(theirs[model]))
    differences = {model: paired(list(own.values()), figures, ratio) for model, figures in theirs.items()}
    return {
        "best_other": {"model": best, what: spread(theirs[best])},
        "difference": differences[best],
        "ahead": all(one["low"] is not None and one["low"] > 0 for one in differences.values()),
    }
