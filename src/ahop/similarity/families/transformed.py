"""A likelihood of values that are looked at in another scale."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ahop.similarity.codes import Asked, Codes
from ahop.similarity.density import Density
from ahop.similarity.families.posterior import Prior

# What is added before a logarithm is taken, in units of the patterns' spread: values at the lower end are no longer
# told apart more finely than this.
_OFFSET = 0.05


class Scale(NamedTuple):
    """How values are counted before they are compared.

    Attributes:
        view: Values as they are seen.
        back: Values again from how they were seen; None where ranks have lost them.
        plain: Whether values stay what they are.
    """

    view: Callable[[Tensor], Tensor]
    back: Callable[[Tensor], Tensor] | None
    plain: bool = False


SCALES = {
    "as it is": Scale(lambda values: values, lambda seen: seen, plain=True),
    "logarithm": Scale(
        lambda values: (values.clamp_min(0) + _OFFSET).log(), lambda seen: (seen.exp() - _OFFSET).clamp_min(0)
    ),
    "square root": Scale(lambda values: values.clamp_min(0).sqrt(), lambda seen: seen.clamp_min(0).square()),
    "rank": Scale(lambda values: _ranks(values), None),
}


class Transformed(Density):
    r"""The log-likelihood of a query when both sides are seen in another scale, or freed of a gain of their own.

    .. math:: s(\xi, x) = \log p(v(x) \mid v(\xi))

    v takes the logarithm, the square root or the rank of every value; then, of columns that have an order, the
    derivative; and with ``own_scale`` subtracts the mean of each row and divides by its standard deviation (standard
    normal variates): a query that is brighter, or of a more diluted sample, is then the same query. What is learned is
    the likelihood p; :mod:`ahop.similarity.families` chooses v by retrieval. Scores are densities of v(x), which tell
    patterns apart as those of x would: the difference is a constant of the query.

    Args:
        likelihood: Of the values as they are seen.
        scale: "as it is", "logarithm", "square root" or "rank" (within its row).
        own_scale: Whether each row is freed of its mean and standard deviation.
        low, unit: Values are counted from ``low`` in units of ``unit`` first; of all columns, or of each.
        shape: The order of columns: ``(d,)`` of a spectrum or a series, ``(height, width)`` of an image, row by row;
            empty where they have none.
        derivative: 0 for values as they are, 1 for slopes, 2 for curvatures. Along one axis by the filter of Savitzky
            and Golay (1964); of an image the differences between neighbours along both axes, one after the other.
        window: Columns that the filter looks at, an odd number.

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
        low: float | Sequence[float] = 0.0,
        unit: float | Sequence[float] = 1.0,
        shape: Sequence[int] = (),
        derivative: int = 0,
        window: int = 7,
    ) -> None:
        super().__init__()
        if scale not in SCALES:
            raise ValueError(f"scale must be one of {', '.join(map(repr, SCALES))}; got {scale!r}")
        if derivative not in (0, 1, 2) or (derivative and len(shape) != 1 and (len(shape), derivative) != (2, 1)):
            raise ValueError(f"derivative must be 0, 1 or (along one axis) 2, got {derivative} of shape {tuple(shape)}")
        if derivative and len(shape) == 1 and not 2 < window <= shape[0]:
            raise ValueError(f"window must be between 3 and {shape[0]} columns, got {window}")
        self.likelihood, self.scale, self.own_scale = likelihood, scale, own_scale
        self.low, self.unit = (each if isinstance(each, float | int) else tuple(each) for each in (low, unit))
        self.shape, self.derivative, self.window = tuple(shape), derivative, window
        assert likelihood.dim is not None
        self.dim = likelihood.dim // max(1, len(shape)) if derivative else likelihood.dim

    def view(self, rows: Tensor) -> Tensor:
        """Rows as they are seen."""
        low, unit = self._counted(rows)
        values = SCALES[self.scale].view((rows - low) / unit)
        if self.derivative:
            values = self._slopes(values)
        if not self.own_scale:
            return values
        spread = values.std(-1, keepdim=True, unbiased=False)
        return (values - values.mean(-1, keepdim=True)) / torch.where(spread > 0, spread, 1.0)

    def _counted(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Where values are counted from, and in what."""
        return torch.as_tensor(self.low).to(like), torch.as_tensor(self.unit).to(like)

    def _slopes(self, rows: Tensor) -> Tensor:
        """Derivatives along the order of the columns, ``(..., d)`` or ``(..., 2 d)``."""
        if len(self.shape) == 2:
            image = rows.reshape(*rows.shape[:-1], *self.shape)
            # The last row and column have no neighbour: nothing changes there.
            across = nn.functional.pad(image.diff(dim=-1), (0, 1))
            down = nn.functional.pad(image.diff(dim=-2), (0, 0, 0, 1))
            return torch.cat([across.flatten(-2), down.flatten(-2)], -1)
        # SciPy takes a while to import.
        from scipy.signal import savgol_coeffs

        filter = torch.tensor(savgol_coeffs(self.window, 2, deriv=self.derivative, use="dot")).to(rows)
        reach = self.window // 2
        flat = nn.functional.pad(rows.reshape(-1, 1, rows.shape[-1]), (reach, reach), "replicate")
        return nn.functional.conv1d(flat, filter[None, None]).reshape(rows.shape)

    def mask(self, observed: Tensor | None) -> Tensor | None:
        """The mask to ask with; refused where this scale mixes dimensions and some are missing."""
        mixes = self.own_scale or SCALES[self.scale].back is None or self.derivative > 0
        if mixes and observed is not None and not bool(observed.all()):
            raise ValueError("observed must be None: this memory transforms complete rows")
        return None if mixes else observed

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        scores: Tensor = self.likelihood(self.view(patterns), self.view(queries), self.mask(observed))
        return scores

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return self.likelihood.rounding(self.view(patterns), self.view(queries), best)

    def exact(self, patterns: Tensor, chosen: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As the likelihood has it, of what is seen; only of the patterns that are asked for."""
        some, places = chosen.unique(return_inverse=True)
        return self.likelihood.exact(self.view(patterns[some]), places, self.view(queries), self.mask(observed))

    def stranger(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As the likelihood has it, of what is seen."""
        return self.likelihood.stranger(self.view(patterns), self.view(queries), self.mask(observed))

    @torch.no_grad()
    def restored(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        """As the likelihood has it, of what is seen, and back from there.

        A logarithm and a root are undone value by value. Slopes, ranks and rows in a scale of their own have lost
        something: the linear regression of stored patterns on how they are seen tells it.
        """
        viewed = self.view(patterns.double())
        found = self.likelihood.restored(viewed, self.view(queries.double()), self.mask(observed))
        back = SCALES[self.scale].back
        if self.own_scale or self.derivative or back is None:
            prior, rows = Prior.of(viewed), patterns.double()
            slope = torch.linalg.lstsq(prior.covariance, (viewed - prior.mean).mT @ (rows - rows.mean(0)) / len(rows))
            return rows.mean(0) + (found - prior.mean) @ slope.solution
        low, unit = self._counted(found)
        return low + unit * back(found)

    def parts(self) -> list[tuple[float, Density]]:
        return self.likelihood.parts()

    def curves(self) -> list[tuple[str, Tensor, Tensor | None]]:
        return self.likelihood.curves()

    def curve_unit(self, values: str) -> str:
        return self.likelihood.curve_unit("in the scale that is compared")

    def describe(self, columns: Sequence[str] | None = None) -> str:
        """What happens to queries, in words."""
        text = "Values are compared as they are" if SCALES[self.scale].plain else f"Each value's {self.scale} counts"
        text += ", each column in a unit of its own" if isinstance(self.unit, tuple) else ""
        slopes = ("", ", by its slopes", ", by its curvature")[self.derivative]
        own = ", each query in a scale of its own" if self.own_scale else ""
        return f"{text}{slopes}{own}.\n{self.likelihood.describe(columns)}"

    def rescaled(self, unit: float, shift: float) -> Transformed:
        """The same likelihood of values that were multiplied by ``unit`` and then moved by ``shift``."""
        low, units = (torch.as_tensor(each, dtype=torch.float64) for each in (self.low, self.unit))
        return self.around(self.likelihood, low=(unit * low + shift).tolist(), unit=(unit * units).tolist())

    def around(self, likelihood: Density, **changed: Any) -> Transformed:
        """Another likelihood of values that are seen in the same way, but for what has changed."""
        return Transformed(**{**self.arguments(), "likelihood": likelihood, **changed})

    def codes(self, patterns: Tensor, tolerance: float) -> TransformedCodes:
        """The likelihood's own codes, of what is seen."""
        return TransformedCodes(self.likelihood.codes(self.view(patterns), tolerance), copy.deepcopy(self))

    def mixture(self, patterns: Tensor, tolerance: float) -> list[tuple[float, Codes]]:
        """The likelihood's own, of what is seen."""
        parts = self.likelihood.mixture(self.view(patterns), tolerance)
        return [(share, TransformedCodes(codes, copy.deepcopy(self))) for share, codes in parts]

    def reset_parameters(self) -> None:
        self.likelihood.reset_parameters()  # type: ignore[operator]


class TransformedCodes(Codes):
    """Codes of values as a :class:`Transformed` likelihood sees them.

    Args:
        codes: Of what is seen.
        seen_by: The likelihood.
    """

    # As saved indexes have it.
    name = "seencodes"
    dim: int

    def __init__(self, codes: Codes, seen_by: Transformed) -> None:
        super().__init__()
        self.codes, self.seen_by, self.dim = codes, seen_by, seen_by.dim

    def encode_patterns(self, patterns: Tensor) -> Tensor:
        """The codes to store."""
        return self.codes.encode_patterns(self.seen_by.view(patterns))

    def covers(self, patterns: Tensor) -> bool:
        return self.codes.covers(self.seen_by.view(patterns))

    def fit_float32(self, patterns: Tensor) -> bool:
        return self.codes.fit_float32(self.seen_by.view(patterns))

    def ask(self, queries: Tensor, observed: Tensor | None = None) -> Asked:
        """The codes to ask with."""
        return self.codes.ask(self.seen_by.view(queries), self.seen_by.mask(observed))


def _ranks(values: Tensor) -> Tensor:
    """The place of each value in its row, from -sqrt(3) to sqrt(3); equal ones share theirs."""
    ordered = values.sort(-1).values.contiguous()
    low, high = (torch.searchsorted(ordered, values.contiguous(), right=right) for right in (False, True))
    return math.sqrt(3) * ((low + high).to(values) / values.shape[-1] - 1)
