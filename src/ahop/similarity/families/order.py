"""Whether columns have an order: a spectrum, a series or an image, whose neighbouring columns go together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# Fewer columns than that have no order worth a derivative, and fewer rows do not show it.
_FEWEST_COLUMNS, _FEWEST_ROWS = 16, 4
# How strongly neighbours must be correlated, and how much of what columns that lie anywhere lack of 1 they may lack.
_MIN_NEIGHBOUR_CORRELATION, _MAX_LACK = 0.5, 0.5
# An image's peak at its width, in units of that lack.
_MIN_PEAK = 0.25
# An image is narrower than so many columns, and no narrower than so few.
_WIDEST, _NARROWEST = 512, 6


def as_order(order: int | Sequence[int] | None, dim: int) -> tuple[int, ...] | None:
    """What a user says of the order of columns, as a shape; None where nothing is said.

    Example:
        >>> as_order(1, 700), as_order((32, 32), 1024), as_order(0, 8)
        ((700,), (32, 32), ())
    """
    if order is None:
        return None
    if order in (0, 1):
        return (dim,) * int(order == 1)
    shape = tuple(order) if isinstance(order, Sequence) else ()
    if len(shape) != 2 or any(isinstance(side, bool) or not isinstance(side, int) for side in shape):
        raise ValueError(f"order must be None, 0, 1 (of a curve) or (height, width) of an image, got {order!r}")
    if min(shape) < 2 or shape[0] * shape[1] != dim:
        raise ValueError(f"order must be (height, width) of {dim} columns in all, got {order!r}")
    return shape


@torch.no_grad()
def order_of(rows: Tensor) -> tuple[int, ...]:
    """``(d,)`` for rows ``(n, d)`` whose columns follow each other, ``(height, width)`` for images, ``()`` for others.

    Neighbouring columns of a curve are correlated, more than columns that lie anywhere. So are, in an image, columns
    that lie one width apart, more than those at a little more or less.

    Example:
        >>> steps = torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
        >>> order_of(steps), order_of(steps.cumsum(1))
        ((), (64,))
    """
    count, dim = rows.shape
    if dim < _FEWEST_COLUMNS or count < _FEWEST_ROWS:
        return ()
    columns = rows.double() - rows.double().mean(0)
    size = columns.square().sum(0).sqrt()
    # A column that does not vary, as in the corner of an image, says nothing.
    alive = size > 1e-6 * size.max()
    columns = torch.where(alive, columns / size.clamp_min(1e-300), 0.0)

    def correlation(lag: int) -> float:
        """The mean correlation of columns that lie so far apart."""
        both = (alive[lag:] & alive[: dim - lag]).sum()
        return float((columns[:, lag:] * columns[:, : dim - lag]).sum() / both.clamp_min(1))

    total, varying = columns.sum(1), int(alive.sum())
    anywhere = float(total @ total - varying) / max(1, varying * (varying - 1))
    if correlation(1) < max(_MIN_NEIGHBOUR_CORRELATION, 1 - _MAX_LACK * (1 - anywhere)):
        return ()
    widths = [w for w in range(_NARROWEST, min(_WIDEST, dim // _NARROWEST) + 1) if dim % w == 0]
    peaks = {w: correlation(w) - max(correlation(w - w // 3), correlation(w + w // 3)) for w in widths}
    width = max((w for w in widths if correlation(w) > _MIN_NEIGHBOUR_CORRELATION), key=lambda w: peaks[w], default=0)
    # One width apart and one column apart are alike; every multiple of the width is a weaker peak.
    if width and peaks[width] > _MIN_PEAK * (1 - anywhere):
        return dim // width, width
    return (dim,)
