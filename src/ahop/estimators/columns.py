"""Columns of a table as a network wants them: scaled numbers, and a code for each category."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np
from sklearn.preprocessing import OrdinalEncoder, QuantileTransformer, StandardScaler

from ahop._checks import choice
from ahop.estimators.targets import is_missing

# Beyond this a scaled number says no more than that it lies far out.
_CLIP = 4.0
# More categories than this in a column: the rarest share one.
_MOST_CATEGORIES = 256
# As in columns of a date's own type; the last would lose its imaginary part.
_DATES = (date, timedelta, np.datetime64, np.timedelta64, complex, np.complexfloating)


class Columns:
    """Learns the scale of numbers and the categories there are, and applies them to other rows.

    A missing number becomes the median, and a column that had some while learning tells them by a code of its own. A
    missing category is a category like another. A category that was never seen has code 0.

    Args:
        scaling: ``"quantile"`` (ranks, spread like a normal distribution), ``"standard"``, or None.
        categorical: ``"from_dtype"``: columns of a DataFrame that hold no numbers; or the columns, by name or place, or
            as a mask.

    Attributes:
        owners: For each number and then each code that leaves, the column it came from.
        sizes: How many codes each column of codes has.
    """

    def __init__(self, scaling: str | None = "quantile", categorical: str | Sequence[Any] = "from_dtype") -> None:
        self.scaling, self.categorical = scaling, categorical

    def fit(self, table: Any) -> Columns:
        """Learn from a DataFrame or a matrix."""
        count = table.shape[1]
        chosen = self._categorical(table)
        self.category_places = [place for place in range(count) if place in chosen]
        self.number_places = [place for place in range(count) if place not in chosen]
        numbers = self._numbers(table)
        missing = np.isnan(numbers)
        self.had_missing = np.flatnonzero(missing.any(0))
        seen = [column[~np.isnan(column)] for column in numbers.T]
        self.medians = np.array([np.median(some) if len(some) else 0.0 for some in seen])
        numbers = np.where(missing, self.medians, numbers)
        if self.scaling is not None:
            choice(self.scaling, "scaling", ("quantile", "standard"))
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self.scaling is not None and numbers.shape[1]
            self.scaler = self._scaler(len(numbers)).fit(numbers) if scaled else None
        self.encoder = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=-1,
            max_categories=_MOST_CATEGORIES,
            dtype=np.int64,
        )
        sizes: list[int] = []
        if self.category_places:
            codes = self.encoder.fit_transform(self._categories(table))
            sizes = (codes.max(0) + 2).tolist()
        self.sizes = [*sizes, *[3] * len(self.had_missing)]
        places = np.array(self.number_places, dtype=int)
        self.owners = np.array([*places, *self.category_places, *places[self.had_missing]], dtype=int)
        return self

    def transform(self, table: Any) -> tuple[np.ndarray, np.ndarray]:
        """Numbers ``(n, p)``, float32, and codes ``(n, c)``, int64."""
        numbers = self._numbers(table)
        missing = np.isnan(numbers)
        numbers = np.where(missing, self.medians, numbers)
        with np.errstate(over="ignore"):
            if self.scaler is not None:
                numbers = self.scaler.transform(numbers).clip(-_CLIP, _CLIP)
            numbers = numbers.astype(np.float32)
        if not np.isfinite(numbers).all():
            raise ValueError("X has numbers too large to be scaled or compared")
        codes = np.zeros((len(numbers), 0), dtype=np.int64)
        if self.category_places:
            codes = self.encoder.transform(self._categories(table)) + 1
        return numbers, np.hstack([codes, missing[:, self.had_missing] + 1]).astype(np.int64)

    def _categorical(self, table: Any) -> set[int]:
        names = list(getattr(table, "columns", range(table.shape[1])))
        if isinstance(self.categorical, str):
            choice(self.categorical, "categorical_features", ("from_dtype",))
            kinds = enumerate(getattr(table, "dtypes", ()))
            return {place for place, kind in kinds if getattr(kind, "kind", "O") not in "iuf"}
        if not isinstance(self.categorical, (Sequence, np.ndarray)):
            raise ValueError(f'categorical_features must be "from_dtype" or a list, got {self.categorical!r}')
        if len(self.categorical) and all(isinstance(one, (bool, np.bool_)) for one in self.categorical):
            if len(self.categorical) != len(names):
                raise ValueError(f"categorical_features must be a mask of {len(names)}, got {len(self.categorical)}")
            return set(np.flatnonzero(self.categorical).tolist())
        chosen = set()
        for one in self.categorical:
            place = names.index(one) if one in names else one
            if not isinstance(place, (int, np.integer)) or not 0 <= place < len(names):
                raise ValueError(f"categorical_features must name columns of X or their places; there is no {one!r}")
            chosen.add(int(place))
        return chosen

    def _numbers(self, table: Any) -> np.ndarray:
        columns = [_column(table, place) for place in self.number_places]
        numbers = np.empty((len(table), len(columns)))
        for place, column in enumerate(columns):
            _refuse_dates(column, self.number_places[place])
            try:
                numbers[:, place] = column.to_numpy(float, na_value=np.nan) if hasattr(column, "to_numpy") else column
            except (TypeError, ValueError) as error:
                raise ValueError(f"column {self.number_places[place]} of X must hold numbers: {error}") from error
        if np.isinf(numbers).any():
            raise ValueError("X must be finite where it is not missing, got infinity")
        return numbers

    def _categories(self, table: Any) -> np.ndarray:
        words = []
        for place in self.category_places:
            column = _column(table, place)
            _refuse_dates(column, place)
            words.append([_word(value) for value in np.asarray(column, dtype=object)])
        return np.array(words, dtype=object).T

    def _scaler(self, rows: int) -> Any:
        if self.scaling == "standard":
            return StandardScaler()
        # From all rows: a sample would miss the far ends of a column that is mostly zero.
        return QuantileTransformer(n_quantiles=min(1000, rows), output_distribution="normal", subsample=None)


def _column(table: Any, place: int) -> Any:
    return table.iloc[:, place] if hasattr(table, "iloc") else table[:, place]


def _refuse_dates(column: Any, place: int) -> None:
    """Every date would be a category of its own, and an imaginary part would be lost."""
    kind = getattr(column, "dtype", None)
    if getattr(kind, "kind", "O") in "Mmc":
        found = str(kind)
    else:
        values = np.asarray(column, dtype=object) if getattr(kind, "kind", "O") == "O" else ()
        # Pandas' sign for a missing date is a date by its type.
        found = next((type(one).__name__ for one in values if isinstance(one, _DATES) and not is_missing(one)), "")
    if found:
        raise ValueError(
            f"column {place} of X must hold numbers or categories, got {found}; turn it into numbers first"
        )


def _word(value: Any) -> str:
    """A category as a word, so that a column may mix kinds: equal for what is alike, and for nothing else.

    Missing ones are alike in whatever way they are, and so are whole numbers of any type, since they become floats
    when another row has none. The sign in front keeps apart what reads alike: 1 and "1", True and "True".
    """
    if is_missing(value):
        return "2"
    if isinstance(value, (bool, np.bool_)):
        return f"0{bool(value)}"
    if isinstance(value, str):
        return "3" + value
    if isinstance(value, Number):
        return "1" + _number(value)
    return f"4{type(value).__qualname__} {value!r}"


def _number(value: Any) -> str:
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
    return str(whole if value == whole else value)
