import datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Number

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from ahop.estimators.columns import Columns


def frame():
    return pd.DataFrame(
        {
            "age": [20.0, 30.0, np.nan, 50.0],
            "town": pd.Categorical(["a", "b", None, "b"]),
            "rooms": [1, 2, 3, 4],
            "garden": [True, False, True, True],
        }
    )


def test_kinds_are_told_apart_by_their_type():
    columns = Columns("standard").fit(frame())
    numbers, codes = columns.transform(frame())
    assert columns.number_places == [0, 2] and columns.category_places == [1, 3]
    # Two numbers, two categories, and whether the age was missing.
    assert columns.owners.tolist() == [0, 2, 1, 3, 0]
    assert numbers.dtype == np.float32 and numbers.shape == (4, 2)
    np.testing.assert_allclose(numbers[:, 1], StandardScaler().fit_transform([[1], [2], [3], [4]])[:, 0], rtol=1e-6)
    assert numbers[2, 0] == numbers[:, 0][np.argsort(numbers[:, 0])[1]]
    assert (codes[:, 2] == [1, 1, 2, 1]).all()
    # What is missing is a category like another.
    assert len(set(codes[:, 0])) == 3 and codes.min() == 1
    assert columns.sizes == [4, 3, 3]


def test_what_was_never_seen():
    columns = Columns().fit(frame())
    strange = frame().assign(town="z", rooms=[np.nan, 2, 3, 100])
    numbers, codes = columns.transform(strange)
    assert (codes[:, 0] == 0).all()
    # The median, and as far out as the scale goes.
    np.testing.assert_allclose(numbers[0, 1], 0, atol=1e-6)
    assert numbers[3, 1] == 4.0
    assert np.isfinite(numbers).all()


def test_whole_numbers_as_categories_survive_a_missing_one():
    columns = Columns(categorical=[0]).fit(np.array([[1, 2.0], [3, 4.0]]))
    _, codes = columns.transform(np.array([[3.0, 0.0], [np.nan, 0.0], [1.0, 0.0]]))
    assert codes[:, 0].tolist() == [2, 0, 1]
    mixed = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [pd.NaT, "x", None]})
    numbers, codes = Columns(categorical=["b"]).fit(mixed).transform(mixed)
    assert codes[0, 0] == codes[2, 0] != codes[1, 0]
    assert numbers.shape == (3, 1)


@pytest.mark.parametrize("scaling", ["quantile", "standard", None])
def test_scaling(scaling):
    rows = np.random.default_rng(0).normal(size=(50, 2)) ** 3
    numbers, _ = Columns(scaling).fit(rows).transform(rows)
    scaler = {
        "quantile": QuantileTransformer(n_quantiles=50, output_distribution="normal"),
        "standard": StandardScaler(),
    }
    expected = scaler[scaling].fit_transform(rows).clip(-4, 4) if scaling else rows
    np.testing.assert_allclose(numbers, expected, rtol=1e-5)


def test_a_column_that_says_nothing():
    rows = np.array([[np.nan, 7.0], [np.nan, 7.0], [np.nan, 7.0]])
    for scaling in ("quantile", "standard", None):
        numbers, _ = Columns(scaling).fit(rows).transform(rows)
        assert np.isfinite(numbers).all()


def test_categories_by_a_mask():
    rows = np.arange(6.0).reshape(2, 3)
    for mask in ([False, True, False], np.array([False, True, False])):
        assert Columns(categorical=mask).fit(rows).category_places == [1]
    assert Columns(categorical=[]).fit(rows).category_places == []


def test_many_categories_share_one():
    names = np.array([[f"n{place}"] for place in np.r_[0:300, 0:100]], dtype=object)
    columns = Columns(categorical=[0]).fit(names)
    assert columns.sizes == [257]
    assert columns.transform(names)[1].max() == 256


MISSING = (None, float("nan"), np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT"))
PLAIN = st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, 1e300, float("inf"), 10**400, Decimal(1)])
# What the others read like.
WORDS = (
    "",
    "1",
    "1.0",
    "True",
    "None",
    "nan",
    "NaN",
    "<NA>",
    "NaT",
    "<missing>",
    "2",
    "(1,)",
    "b'1'",
    "11",
    "31",
    "0.5",
)
VALUES = st.one_of(
    st.sampled_from(MISSING),
    PLAIN,
    PLAIN.filter(lambda value: abs(value) < 9).map(lambda value: np.asarray(value).ravel()[0]),
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(np.str_),
    st.sampled_from([b"1", (1,), ("1",), pd.Interval(0, 1), Fraction(1, 2)]),
)


def kind(value):
    """What is of one kind is one category if it is equal; all that is missing is."""
    if any(value is one for one in MISSING) or value != value:
        return "missing"
    for name, types in (("truth", (bool, np.bool_)), ("number", Number), ("word", str)):
        if isinstance(value, types):
            return name
    return type(value).__name__


def plain(value):
    return value.item() if isinstance(value, np.generic) else value


def column(values):
    table = np.empty((len(values), 1), dtype=object)
    table[:, 0] = [None, *values][1:]
    return table


@settings(max_examples=50)
@given(st.lists(VALUES, min_size=1, max_size=12))
def test_categories_are_one_where_they_are_equal_and_of_one_kind_and_nowhere_else(values):
    seen = column(values)
    codes = Columns(categorical=[0]).fit(seen).transform(seen)[1][:, 0]
    assert codes.min() > 0
    for one, first in zip(values, codes, strict=True):
        for other, second in zip(values, codes, strict=True):
            alike = kind(one) == kind(other) and (kind(one) == "missing" or plain(one) == plain(other))
            assert (first == second) == alike, (one, other)


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (True, "True"), (None, "<missing>"), (None, "nan"), (1.5, "1.5")])
@pytest.mark.parametrize("make", [column, lambda values: pd.DataFrame({0: pd.Series(values, dtype=object)})])
def test_what_only_reads_alike_is_never_merged(make, one, other):
    columns = Columns(categorical=[0]).fit(make([one, other]))
    assert len(np.unique(columns.transform(make([one, other]))[1])) == 2
    assert Columns(categorical=[0]).fit(make([one])).transform(make([other]))[1] == 0


DATES = [
    datetime.datetime(2020, 1, 1),
    datetime.date(2020, 1, 1),
    datetime.timedelta(1),
    pd.Timestamp("2020-01-01"),
    pd.Timedelta(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(1, "s"),
    1j,
]


@pytest.mark.parametrize("date", DATES, ids=lambda date: type(date).__name__)
@pytest.mark.parametrize("options", [{"categorical": [0]}, {"categorical": []}])
def test_dates_are_refused_wherever_they_stand(options, date):
    message = r"column 0 of X must hold numbers or categories, got \w+; turn it into numbers first"
    mixed = column([None, pd.NaT, 1, date])
    for table in (mixed, pd.DataFrame(mixed), pd.DataFrame({0: pd.Categorical([date], categories=[date])})):
        with pytest.raises(ValueError, match=message):
            Columns(**options).fit(table)
    known = Columns(categorical=[0]).fit(column([1, 2]))
    with pytest.raises(ValueError, match=message):
        known.transform(mixed)


def test_a_missing_date_is_a_missing_category():
    codes = Columns(categorical=[0]).fit(column([None, 1])).transform(column([pd.NaT, np.datetime64("NaT"), 1]))[1]
    assert codes[0] == codes[1] != codes[2]


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"scaling": "log"}, np.ones((2, 1)), "scaling must be one of 'quantile', 'standard', got 'log'"),
        ({"categorical": "all"}, np.ones((2, 1)), "categorical_features must be one of 'from_dtype', got 'all'"),
        ({"categorical": ["town"]}, np.ones((2, 1)), "there is no 'town'"),
        ({"categorical": [True, False]}, np.ones((2, 1)), "must be a mask of 1, got 2"),
        ({"categorical": None}, np.ones((2, 1)), 'categorical_features must be "from_dtype" or a list, got None'),
        ({}, pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "column 0 of X must hold numbers or categories, got"),
        ({"categorical": [0]}, pd.DataFrame({"a": [1j]}), "column 0 of X must hold numbers or categories, got complex"),
        ({"scaling": ""}, np.ones((2, 1)), "scaling must be one of 'quantile', 'standard', got ''"),
        ({"categorical": [3]}, np.ones((2, 1)), "there is no 3"),
        ({}, np.array([[1.0], [np.inf]]), "X must be finite where it is not missing, got infinity"),
        ({"categorical": [1]}, np.array([["a", "b"]], dtype=object), "column 0 of X must hold numbers"),
    ],
)
def test_what_cannot_be(options, table, message):
    with pytest.raises(ValueError, match=message):
        Columns(**options).fit(table)


def test_numbers_beyond_float32():
    rows = np.array([[1e308], [-1e308], [0.0]])
    for scaling in ("standard", "quantile"):
        assert np.isfinite(Columns(scaling).fit(rows).transform(rows)[0]).all()
    with pytest.raises(ValueError, match="X has numbers too large to be scaled or compared"):
        Columns(None).fit(rows).transform(rows)
