"""Numbers that name rows and measure nothing: whole numbers in columns that are called so, and counts of the rows."""

from __future__ import annotations

import re

import numpy as np

# So many whole numbers in a row are no measurement but a count of the rows.
RUN = 20
_KEY = re.compile(r"ids?|idx|uuid|guid|sku|ean|gtin|upc|isbn|asin|barcode|code|key|nr|rowid|serial")
_ALONE = re.compile(r"(row[\s_.-]?)?index|row|number|no\.", re.IGNORECASE)
# An order has a number for its name; an atom, a wave or a fuel has one for its measure.
_QUANTITY = re.compile(
    r"acid|atomic|bromine|cetane|charge|coordination|hydroxyl|iodine|kappa|mach|mass|max|mean|min|neutron|octane|"
    r"oxidation|peroxide|proton|quantum|reynolds|saponification|total|wave"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[^\W\dA-Z_]+\d*|\d+")
# What stands in the place of a name: ours, and that of pandas.
_UNNAMED = re.compile(r"column \d+|unnamed: \d+", re.IGNORECASE)


def names_ids(column: str) -> bool:
    """Whether a column is called as columns of ids are, and as no quantity is.

    Example:
        >>> [names_ids(name) for name in ("id", "customer_id", "CustomerID", "Artikel-Nr.", "sku", "order no", "No.")]
        [True, True, True, True, True, True, True]
        >>> [names_ids(name) for name in ("grid", "weight", "atomic_number", "refractive_index", "NO")]
        [False, False, False, False, False]
    """
    if _ALONE.fullmatch(column):
        return True
    *before, last = _WORD.findall(column) or [""]
    if _KEY.fullmatch(last.lower()):
        return True
    # Among small letters, NO is nitric oxide.
    numbered = last.lower() in ("number", "num") or (last.lower() == "no" and (last != "NO" or column.isupper()))
    return bool(before) and numbered and not _QUANTITY.fullmatch(before[-1].lower())


def nameless(column: str) -> bool:
    """Whether a column has a place and no name, as row numbers have that pandas writes.

    Example:
        >>> nameless("column 1"), nameless("Unnamed: 0"), nameless("weight")
        (True, True, False)
    """
    return _UNNAMED.fullmatch(column) is not None


def are_integers(values: np.ndarray) -> bool:
    """Whether all are whole numbers, and none is missing."""
    return bool((values == np.floor(values)).all())


def differ(values: np.ndarray) -> bool:
    """Whether each row has a whole number of its own.

    Example:
        >>> differ(np.array([3.0, 5.0])), differ(np.array([3.0, 3.0])), differ(np.array([3.0, np.nan]))
        (True, False, False)
    """
    return are_integers(values) and len(np.unique(values)) == len(values)


def counts_rows(values: np.ndarray) -> bool:
    """Whether a column numbers the rows, in whatever order: n whole numbers that follow one another."""
    if len(values) < RUN or values.max() - values.min() != len(values) - 1:
        return False
    return bool((np.diff(np.sort(values)) == 1).all() and values[0] % 1 == 0)
