"""Numbers that name rows and measure nothing: counts of the rows, and codes in columns that are called so."""

from __future__ import annotations

import re

import numpy as np

# So many whole numbers in a row are no measurement but a count of the rows.
RUN = 20
_WORDS = re.compile(r"(.*[\s_.-])?(id|sku|ean|gtin|upc|isbn|code|key|nr|no|number)\.?", re.IGNORECASE)
_CAMEL = re.compile(r".*[a-z](Id|ID)")


def names_ids(column: str) -> bool:
    """Whether a column is called as columns of ids are.

    Example:
        >>> [names_ids(name) for name in ("id", "customer_id", "CustomerID", "Artikel-Nr.", "sku", "grid", "weight")]
        [True, True, True, True, True, False, False]
    """
    return bool(_WORDS.fullmatch(column) or _CAMEL.fullmatch(column))


def whole(values: np.ndarray) -> bool:
    """Whether all are whole numbers, and none is missing."""
    return bool((values == np.floor(values)).all())


def differ(values: np.ndarray) -> bool:
    """Whether each row has a whole number of its own.

    Example:
        >>> differ(np.array([3.0, 5.0])), differ(np.array([3.0, 3.0])), differ(np.array([3.0, np.nan]))
        (True, False, False)
    """
    return whole(values) and len(np.unique(values)) == len(values)


def counts_rows(values: np.ndarray) -> bool:
    """Whether a column numbers the rows, in whatever order: n whole numbers that follow one another."""
    if len(values) < RUN or values.max() - values.min() != len(values) - 1:
        return False
    return bool((np.diff(np.sort(values)) == 1).all() and values[0] % 1 == 0)
