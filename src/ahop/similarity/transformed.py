"""A likelihood of values that are looked at in another scale."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from ahop.similarity.codes import Asked, Codes
from ahop.similarity.density import Density

SCALES = ("as it is", "logarithm", "square root", "rank")
# What is added before a logarithm is taken, in units of the patterns' spread: values at the lower end are no longer
# told apart more finely than this.
_OFFSET = 0.05


class Transformed(Density):
    r"""The log-likelihood of a query when both sides are seen in another scale, or freed of a gain of their own.

    .. math:: s(\xi, x) = \log p(v(x) \mid v(\xi))

    v takes the logarithm, the square root or the rank of every value, and with ``own_scale`` subtracts the mean of each
    row and divides by its standard deviation: a query that is brighter, or of a more diluted sample, is then the same
    query. What is learned is the likelihood p; :mod:`ahop.learning.corruption` chooses v by retrieval. Scores are
    densities of v(x), which tell patterns apart as those of x would: the difference is a constant of the query.

    Args:
        likelihood: Of the values as they are seen.
        scale: "as it is", "logarithm", "square root" or "rank" (within its row).
        own_scale: Whether each row is freed of its mean and standard deviation.
        low, unit: Values are counted from ``low`` in units of ``unit`` first.

    Shape:
        patterns ``(N, d)``, queries ``(Q, d)`` to ``(Q, N)``.

    Example:
        >>> similarity = Transformed(ahop.similarity.Likelihood(3), own_scale=True)
        >>> patterns = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
        >>> similarity(patterns, 10 * patterns + 5).argmax(1)
        tensor([0, 1])
    """

    dim: int

    def __init__(
        self,
        likelihood: Density,
        scale: str = "as it is",
        own_scale: bool = False,
        low: float = 0.0,
        unit: float = 1.0,
    ) -> None:
        super().__init__()
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(map(repr, SCALES))}; got {scale!r}")
        assert likelihood.dim is not None
        self.likelihood, self.scale, self.own_scale = likelihood, scale, own_scale
        self.low, self.unit, self.dim = low, unit, likelihood.dim

    def view(self, rows: Tensor) -> Tensor:
        """Rows as they are seen."""
        values = (rows - self.low) / self.unit
        if self.scale == "logarithm":
            values = (values.clamp_min(0) + _OFFSET).log()
        elif self.scale == "square root":
            values = values.clamp_min(0).sqrt()
        elif self.scale == "rank":
            values = _ranks(values)
        if not self.own_scale:
            return values
        spread = values.std(-1, keepdim=True, unbiased=False)
        return (values - values.mean(-1, keepdim=True)) / torch.where(spread > 0, spread, 1.0)

    def whole(self, observed: Tensor | None) -> Tensor | None:
        """The mask to ask with; refused where this scale mixes dimensions and some are missing."""
        mixes = self.own_scale or self.scale == "rank"
        if mixes and observed is not None and not bool(observed.all()):
            raise ValueError("observed must be None: this memory compares each query in a scale of its own")
        return None if mixes else observed

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        scores: Tensor = self.likelihood(self.view(patterns), self.view(queries), self.whole(observed))
        return scores

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As the likelihood has it, of what is seen; only of the patterns that are asked for."""
        some, places = chosen.unique(return_inverse=True)
        return self.likelihood.exact(self.view(patterns[some]), places, self.view(queries), self.whole(observed))

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As the likelihood has it, of what is seen."""
        return self.likelihood.stranger(self.view(patterns), self.view(queries), self.whole(observed))

    def parts(self) -> list[tuple[float, Density]]:
        return self.likelihood.parts()

    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        return self.likelihood.curves()

    def describe(self) -> str:
        """What happens to queries, in words."""
        seen = "Values are compared as they are" if self.scale == "as it is" else f"Each value's {self.scale} counts"
        own = ", each query in a scale of its own" if self.own_scale else ""
        return f"{seen}{own}.\n{self.likelihood.describe()}"

    def rescaled(self, unit: float, shift: float) -> Transformed:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        low = unit * self.low + shift
        return Transformed(self.likelihood, self.scale, self.own_scale, low, unit * self.unit)

    def codes(self, patterns: Tensor, tolerance: float) -> SeenCodes:
        """The likelihood's own codes, of what is seen."""
        return SeenCodes(self.likelihood.codes(self.view(patterns), tolerance), copy.deepcopy(self))

    def mixture(self, patterns: Tensor, tolerance: float) -> list[tuple[float, Codes]]:
        """The likelihood's own, of what is seen."""
        parts = self.likelihood.mixture(self.view(patterns), tolerance)
        return [(share, SeenCodes(codes, copy.deepcopy(self))) for share, codes in parts]

    def reset_parameters(self) -> None:
        self.likelihood.reset_parameters()  # type: ignore[operator]


class SeenCodes(Codes):
    """Codes of values as a :class:`Transformed` likelihood sees them.

    Args:
        codes: Of what is seen.
        seen_by: The likelihood.
    """

    dim: int

    def __init__(self, codes: Codes, seen_by: Transformed) -> None:
        super().__init__()
        self.codes, self.seen_by, self.dim = codes, seen_by, seen_by.dim

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store."""
        return self.codes.encode_patterns(self.seen_by.view(patterns))

    def covers(self, patterns: Tensor) -> bool:
        return self.codes.covers(self.seen_by.view(patterns))

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with."""
        return self.codes.ask(self.seen_by.view(queries), self.seen_by.whole(observed))


def _ranks(values: Tensor) -> Tensor:
    """The place of each value in its row, from -sqrt(3) to sqrt(3); equal ones share theirs."""
    ordered = values.sort(-1).values.contiguous()
    low, high = (torch.searchsorted(ordered, values.contiguous(), right=right) for right in (False, True))
    return math.sqrt(3) * ((low + high).to(values) / values.shape[-1] - 1)
