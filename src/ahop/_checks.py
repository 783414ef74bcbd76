"""What comes in at the public surface: turned into tensors, or refused in one clear sentence."""

from __future__ import annotations

from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ahop._queries import Queries

Observed = Tensor | np.ndarray | Literal["not-nan"] | None
# Origins that are no stored pattern: nobody knows it, or somebody knows that it is none of them.
UNKNOWN, STRANGER = -1, -2


def as_tensor(value: Any, name: str, *, whole: bool = False) -> Tensor:
    """A tensor of real numbers from a tensor, an array, a frame or nested lists; as they came, if they should be whole.

    Args:
        value: A tensor, an array, a frame or nested lists.
        name: The argument's name, for errors.
        whole: Keep whole numbers and booleans as they are, rather than make them floating-point numbers.

    Returns:
        A tensor of real numbers.

    Example:
        >>> import pandas
        >>> as_tensor(pandas.DataFrame({"x": [1.0, 2.0], "colour": ["red", "blue"]}), "patterns")
        Traceback (most recent call last):
        ValueError: patterns must be numbers, and these columns are not: 'colour'
    """
    if hasattr(value, "to_numpy") and hasattr(value, "columns"):
        value = _of_frame(value, name)
    try:
        # Copied when NumPy marks the array read-only: torch cannot promise not to write to it.
        tensor = torch.as_tensor(value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be a tensor or an array of numbers, got {type(value).__name__}") from error
    if tensor.is_complex():
        raise ValueError(f"{name} must be real, got {tensor.dtype}")
    return tensor if whole or tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def _of_frame(frame: Any, name: str) -> np.ndarray:
    """The numbers of a frame of pandas or polars, whose columns may be of several types."""
    columns = [_floats(frame[column].to_numpy()) for column in frame.columns]
    if bad := [
        column for column, values in zip(frame.columns, columns, strict=True) if values.dtype.kind not in "iufb"
    ]:
        raise ValueError(f"{name} must be numbers, and these columns are not: {', '.join(map(repr, bad))}")
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _floats(values: np.ndarray) -> np.ndarray:
    """Decimals, which polars and databases keep as objects, as floats; all else as it is."""
    if values.dtype.kind != "O" or not all(value is None or isinstance(value, Decimal) for value in values):
        return values
    return values.astype(np.float64)


def require_finite(tensor: Tensor, name: str) -> None:
    if not bool(torch.isfinite(tensor).all()):
        bad = int((~torch.isfinite(tensor)).sum())
        raise ValueError(f"{name} must be finite, got {bad} NaN or infinite values")


def stored_as(tensor: Tensor, like: Tensor, name: str) -> Tensor:
    """Convert finite values to the type and the device of ``like``.

    Args:
        tensor: Finite values.
        like: A tensor of the type and on the device to convert to.
        name: The argument's name, for errors.

    Returns:
        The converted tensor; a value too large for the type is an error.
    """
    stored = tensor.to(like)
    if stored.dtype != tensor.dtype and not bool(torch.isfinite(stored).all()):
        largest = torch.finfo(stored.dtype).max
        raise ValueError(f"{name} must fit {stored.dtype}, at most {largest:.3g}; got {float(tensor.abs().max()):.3g}")
    return stored


def as_matrix(value: Any, name: str) -> Tensor:
    """At least one row and one column of finite numbers."""
    matrix = as_tensor(value, name)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be a non-empty matrix, one row each, got shape {tuple(matrix.shape)}")
    bad = ~torch.isfinite(matrix)
    if bool(bad.any()):
        where = f"{int(bad.sum())} NaN or infinite values in {int(bad.any(1).sum())} of {len(matrix)} rows"
        raise ValueError(
            f"{name} must be finite, got {where}: impute them, drop their columns, or give only complete "
            'rows; only queries may have missing values (observed="not-nan")'
        )
    return matrix.contiguous()


def as_queries(value: Any, patterns: Tensor, observed: Observed, width: int | None = None) -> Queries:
    """Queries like the patterns in type and device, with a mask of their trusted dimensions.

    They are as wide as the patterns, or as ``width`` says. Unobserved entries are set to zero, so that a NaN there
    cannot spread.

    Args:
        value: The queries, ``(..., d)``.
        patterns: The stored patterns, ``(N, d)``.
        observed: A boolean mask of the queries' shape, True where a value is to be trusted; "not-nan" for all that are
            not NaN; None for all.
        width: The number of values of a query; that of the patterns by default.

    Returns:
        The queries with their mask.
    """
    count, dim = patterns.shape
    given = as_tensor(value, "queries")
    queries = given.to(patterns)
    if queries.ndim == 0 or queries.shape[-1] != (width or dim):
        wanted = f"like the {count} stored patterns" if width in (None, dim) else "as the similarity was made for"
        raise ValueError(f"queries must have {width or dim} values each, {wanted}; got shape {tuple(queries.shape)}")
    if observed is None:
        if not bool(torch.isfinite(queries).all()):
            if bool(torch.isfinite(given).all()):
                stored_as(given, patterns, "queries")
            raise ValueError(
                "queries must be finite, got NaN or infinite values; "
                'pass observed="not-nan" to treat NaN as unobserved, or a mask of the trusted dimensions'
            )
        return Queries(queries)
    if isinstance(observed, str):
        if observed != "not-nan":
            raise ValueError(f'observed must be a boolean mask, "not-nan" or None, got {observed!r}')
        mask = ~queries.isnan()
    else:
        try:
            mask = torch.as_tensor(observed, device=patterns.device)
        except (TypeError, ValueError, RuntimeError):
            kind = type(observed).__name__
            raise ValueError(f'observed must be a boolean mask, "not-nan" or None, got {kind}') from None
        if mask.dtype != torch.bool:
            raise ValueError(f"observed must be boolean (True = trusted), got {mask.dtype}")
        try:
            mask = mask.expand(queries.shape)
        except RuntimeError:
            shapes = f"{tuple(mask.shape)} for queries {tuple(queries.shape)}"
            raise ValueError(f"observed must have the shape of the queries, got {shapes}") from None
    queries = torch.where(mask, queries, torch.zeros_like(queries))
    require_finite(queries, "observed entries of queries")
    return Queries(queries, mask)


def as_origins(value: Any, queries: int, patterns: int, name: str = "origins", least: int = 0) -> Tensor:
    """One index of a stored pattern for each query; from ``least`` on, :data:`UNKNOWN` and :data:`STRANGER` as well.

    Args:
        value: One index of a stored pattern for each query.
        queries, patterns: How many there are of each.
        name: The argument's name, for errors.
        least: The smallest index allowed: :data:`UNKNOWN` and :data:`STRANGER` are negative.

    Returns:
        The indices as integers, ``(queries,)``.
    """
    try:
        origins = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be integers, got {type(value).__name__}") from error
    if origins.is_floating_point() or origins.dtype == torch.bool or origins.is_complex():
        raise ValueError(f"{name} must be integers, got {origins.dtype}")
    if origins.shape != (queries,):
        raise ValueError(f"{name} must be one index per query, shape ({queries},), got shape {tuple(origins.shape)}")
    if queries and not (int(origins.min()) >= least and int(origins.max()) < patterns):
        low, high = int(origins.min()), int(origins.max())
        words = ", or be -1 where unknown", ", ahop.STRANGER where it is none of them"
        also = "".join(words[:-least])
        raise ValueError(f"{name} must be between 0 and {patterns - 1}, the stored patterns{also}; got {low} to {high}")
    return origins.long()


def choice(value: str, name: str, allowed: tuple[str, ...]) -> str:
    """The value, if it is one of those allowed.

    Args:
        value: What came.
        name: The argument's name, for errors.
        allowed: What is expected.
    """
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def _plain(value: Any) -> Any:
    """A number as Python has it, whoever made it."""
    return value.item() if isinstance(value, (Tensor, np.generic)) and value.ndim == 0 else value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def positive(value: Any, name: str) -> float:
    found = _plain(value)
    if not _is_number(found) or not 0 < found < float("inf"):
        raise ValueError(f"{name} must be a positive and finite number, got {value!r}")
    return float(found)


def integer(value: Any, name: str, least: int) -> int:
    """The value as an integer, if it is one and large enough.

    Args:
        value: What came; zero-dimensional arrays and tensors are numbers too.
        name: The argument's name, for errors.
        least: The smallest number allowed.
    """
    found = _plain(value)
    if isinstance(found, bool) or not isinstance(found, Integral) or found < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(found)


def within(value: Any, name: str, low: float, high: float) -> float:
    """The value as a number, if it is one between two bounds.

    Args:
        value: What came; zero-dimensional arrays and tensors are numbers too.
        name: The argument's name, for errors.
        low, high: The bounds, both allowed.
    """
    found = _plain(value)
    if not _is_number(found) or not low <= found <= high:
        raise ValueError(f"{name} must be a number in {low:g} to {high:g}, got {value!r}")
    return float(found)


def share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < 1:
        raise ValueError(f"{name} must be a number of at least 0 and below 1, got {value!r}")
    return float(value)


def as_device(name: str) -> str:
    """A device that PyTorch can use here; ``"auto"`` is a GPU where there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=torch.device(name))
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device must be one that PyTorch can use here, got {name!r}") from error
    return name
