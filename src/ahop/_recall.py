"""What a recall answers."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ahop.learning.report import clopper_pearson


class _Best(NamedTuple):
    indices: Tensor
    probabilities: Tensor


class Refusal(NamedTuple):
    """What refusing strangers comes to.

    Attributes:
        kept: Between which shares of genuine queries are answered: a 90 % confidence interval, by how many were held
            out.
        strangers: The share of simulated strangers that are refused: held-out queries whose likeliest pattern was left
            out. Real ones may be more unlike what is stored, or less. NaN where none could be simulated.
        refused, known: How many known strangers (``ahop.STRANGER`` in a fit or a verification) are refused, of how
            many. Nothing was learned from them.

    Example:
        >>> [round(end, 2) for end in Refusal((0.93, 0.97), 0.8, refused=18, known=20).interval]
        [0.72, 0.98]
    """

    kept: tuple[float, float]
    strangers: float
    refused: int = 0
    known: int = 0

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % confidence interval of the share of strangers like the known ones that are refused."""
        return clopper_pearson(self.refused, self.known)


class Recall(_Best):
    """The best patterns for each query: ``indices`` and ``probabilities``, both ``(..., k)``, best first.

    Where there are fewer than k answers, or none since the query is refused as a stranger, the rest is -1 with a
    probability of 0.

    Attributes:
        verified: Whether probabilities rest on enough labels (:attr:`ahop.learning.report.FitReport.verified`). If not,
            they hold if the model is right, and nobody has checked that.
        refusal: What refusing strangers comes to (:class:`Refusal`); None where none are refused.
        coverage: Between what the rate lies at which sets hold the origin, as so many labels can promise it: a 90 %
            confidence interval. None where no coverage was asked for.
    """

    verified: bool = False
    refusal: Refusal | None = None
    coverage: tuple[float, float] | None = None

    def checked(self, verified: bool) -> Recall:
        """The same, verified or not."""
        self.verified = verified
        return self


def priors(log_prior: Tensor | None, count: int, like: Tensor) -> Tensor:
    """The prior of each of ``count`` patterns ``(N,)``, in the type of another tensor.

    Args:
        log_prior: Its logarithm, ``(N,)``; None is uniform.
        count: N, the number of stored patterns.
        like: What has the type and the device.
    """
    # One number, however many patterns there are.
    return like.new_full((), 1 / count).expand(count) if log_prior is None else log_prior.exp().to(like)


def with_doubt(found: Recall, doubt: Tensor, log_prior: Tensor | None, count: int) -> Recall:
    """Probabilities where some queries tell nothing: what the prior says of ``count`` patterns has its share, which may
    move those that were found to other places, unless it is all that is known.

    Args:
        found: The recall.
        doubt: The share of queries that tell nothing, in 0 to 1.
        log_prior: The log prior of each pattern, ``(N,)``; None is uniform.
        count: N, the number of stored patterns.
    """
    sure = found.probabilities
    prior = priors(log_prior, count, sure)[found.indices]
    blended = torch.lerp(sure, prior, doubt.to(sure))
    if float(doubt) == 1:
        return found._replace(probabilities=blended)
    best = blended.sort(dim=-1, descending=True, stable=True)
    return found._replace(indices=found.indices.gather(-1, best.indices), probabilities=best.values)
