"""What ``fit`` is told about each row or bag: one value, none missing; classes as codes."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


def as_targets(y: Any, estimator: str) -> np.ndarray:
    """One target each, ``(n,)``."""
    if y is None:
        raise ValueError(f"{estimator} requires y to be passed, but the target y is None")
    targets = as_column(y, "y", warn=True)
    if targets.dtype.kind in "OMm" and any(is_missing(value) for value in targets):
        raise ValueError("y must have no missing values")
    assert_all_finite(targets, input_name="y")
    return targets


def as_column(values: Any, name: str, *, warn: bool = False) -> np.ndarray:
    """One value each, ``(n,)``, as it came: an array of words would make 1, True and NaN words as well.

    Args:
        values: What came.
        name: The argument's name, for errors.
        warn: Warn of a column vector, ``(n, 1)``, as scikit-learn does.
    """
    column = column_or_1d(values, warn=warn)
    if column.dtype.kind in "US" and not hasattr(values, "dtype"):
        kinds = {type(value).__name__ for value in np.array(values, dtype=object).ravel()}
        if not kinds <= {"str", "str_"} and not kinds <= {"bytes", "bytes_"}:
            raise ValueError(f"{name} must hold labels of one kind, got {', '.join(sorted(kinds))}")
    return column


def as_classes(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes there are, and which of them each target is."""
    try:
        encoder = LabelEncoder().fit(targets)
    except TypeError as error:
        raise ValueError(f"y must hold labels of one kind: {error}") from error
    check_classification_targets(targets)
    return encoder.classes_, encoder.transform(targets)


def is_missing(value: Any) -> bool:
    """Whether this stands for no value: None, NaN, NaT, or pandas' NA."""
    # NaN and NaT differ from themselves; pandas' NA answers no comparison.
    if isinstance(value, (Number, np.datetime64, np.timedelta64)):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")
