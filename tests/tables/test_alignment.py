from dataclasses import replace

import numpy as np
import pytest

from ahop.tables import Table, aligned
from ahop.tables.alignment import fitted

NAN = np.nan


def test_columns_go_by_name_in_the_order_of_the_stored():
    stored = Table.of({"x": [1.0, 2.0], "y": [3.0, 5.0], "z": [7.0, 8.0]})
    found = aligned(stored, Table.of({"w": [0.0], "z": [30.0], "x": [10.0]}))
    assert found.shared and found.stored.columns == found.incoming.columns == ("x", "z")
    assert found.stored.values.tolist() == [[1, 7], [2, 8]] and found.incoming.values.tolist() == [[10, 30]]
    assert found.notes == ("left out, only in stored: 'y'", "left out, only in incoming: 'w'")


def test_what_tells_nothing_is_left_out_and_said():
    stored = Table.of({"a": [1.0, 2.0, 3.0], "flat": [1.0, 1.0, NAN], "thin": [1.0, NAN, NAN], "lost": [1.0, 2.0, 4.0]})
    incoming = Table.of({"a": [1.0], "flat": [2.0], "thin": [3.0], "lost": [NAN]})
    found = aligned(stored, incoming)
    assert found.stored.columns == ("a",)
    assert found.notes == (
        "left out, mostly missing in stored: 'thin'",
        "left out, constant in stored: 'flat'",
        "left out, all missing in incoming: 'lost'",
    )


def test_a_stored_value_that_is_missing_is_the_mean_and_one_that_comes_in_stays_missing():
    stored = Table.of({"a": [1.0, NAN, 3.0], "b": [1.0, 2.0, 4.0]})
    found = aligned(stored, Table.of({"a": [NAN, 1.0], "b": [1.0, NAN]}))
    assert found.stored.values[:, 0].tolist() == [1, 2, 3]
    assert np.isnan(found.incoming.values).sum() == 2
    assert found.notes == ("missing in stored, set to the column's mean: 1 value of 'a'",)


def test_tables_with_nothing_in_common_are_two_spaces():
    stored, draw = Table.of({"x": [1.0, 2.0], "y": [3.0, 5.0]}), np.random.default_rng(0)
    for incoming in (Table.of({"u": [1.0, 2.0]}), Table.of_array(draw.random((2, 3)))):
        found = aligned(stored, incoming)
        assert not found.shared and found.incoming.columns == incoming.columns
        assert "two spaces" in found.notes[0]


def test_columns_without_names_go_by_their_places():
    found = aligned(Table.of({"x": [1.0, 2.0], "y": [3.0, 5.0]}), Table.of_array(np.eye(2)))
    assert found.shared and found.incoming.columns == ("x", "y")
    assert found.notes == ("one table has no names: columns go by their places",)


def test_whole_numbers_that_differ_are_compared_and_noted():
    draw = np.random.default_rng(0)
    stored = Table.of({"x": draw.random(30), "lot": draw.permutation(900)[:30]})
    incoming = Table.of({"x": draw.random(4), "lot": [3, 9, 4, 1]})
    found = aligned(stored, incoming)
    assert found.shared and found.stored.columns == ("x", "lot")
    (note,) = found.notes
    assert note.startswith("'lot' may hold ids, another whole number in each row: name such a column with --id, or")
    counted = Table.of({"x": draw.random(30), "lot": draw.integers(0, 9, 30)})
    assert not aligned(counted, incoming).notes
    assert not aligned(stored, replace(incoming, values=np.ones((4, 2)))).notes
    many = Table.of({f"x{place}": draw.permutation(900)[:30] for place in range(4)})
    assert not aligned(many, many).notes


def test_what_may_hold_the_ids_of_rows_without_any_is_said():
    draw = np.random.default_rng(0)
    columns = {"x": draw.random(30), "tablet": draw.permutation(900)[:30]}
    incoming = Table.of({"x": draw.random(4)})
    assert aligned(Table.of(columns), incoming).notes == (
        "left out, only in stored: 'tablet'",
        "rows of stored go by their numbers, and 'tablet' may hold their ids: --id names one",
    )
    named = Table.of({"sku": [f"A{row}" for row in range(30)], **columns})
    assert aligned(named, incoming).notes == ("left out, only in stored: 'tablet'",)


def test_tables_that_share_ids_alone_say_so():
    codes = [10021, 30407, 20333]
    stored, incoming = Table.of({"sku": codes, "x": [1.0, 2.5, 4.0]}), Table.of({"sku": codes, "y": [1.5, 2.0, 3.0]})
    assert aligned(stored, incoming).notes[0].startswith("no column name in common but 'sku', which holds the ids")


def test_tables_that_leave_nothing_to_compare_are_refused():
    with pytest.raises(ValueError, match="have no column left to compare: left out, constant in stored: 'x'"):
        aligned(Table.of({"x": [1.0, 1.0]}), Table.of({"x": [1.0]}))


def test_a_model_takes_its_own_columns_and_says_which_are_lacking():
    table = Table.of({"z": [1.0], "y": [2.0], "x": [3.0]})
    assert fitted(table, ("x", "z"), named=True).values.tolist() == [[3, 1]]
    with pytest.raises(ValueError, match="table lacks columns that the model was made with: 'w'"):
        fitted(table, ("x", "w"), named=True)
    with pytest.raises(ValueError, match="table has 3 columns of numbers; the model has 2"):
        fitted(table, ("column 1", "column 2"), named=False)
    with pytest.raises(ValueError, match="made with: 'number'; 'number' was taken for its ids, and --id names others"):
        fitted(Table.of({"x": [1.0], "number": [7]}), ("x", "number"), named=True)
    with pytest.raises(ValueError, match="made with: 'key'; text or ids here: 'key'"):
        fitted(Table.of({"x": [1.0], "number": [7], "key": [3]}), ("x", "key"), named=True)


def test_what_a_model_compares_is_never_taken_for_ids_however_few_rows_there_are():
    columns = ("x", "number", "lot_code")
    for rows in (1, 30):
        frame = {name: [*range(rows)] for name in columns}
        table = Table.of(frame, measured=columns)
        assert table.id is None and fitted(table, columns, named=True).values.shape == (rows, 3)
    assert Table.of({**frame, "order_id": [*range(30)]}, measured=columns).id == "order_id"
    lost = Table.of({"x": [1.0], "number": [None], "lot_code": [2]}, measured=columns)
    assert np.isnan(fitted(lost, columns, named=True).values).tolist() == [[False, True, False]]


def test_a_column_that_holds_the_ids_of_one_table_and_measures_in_the_other_is_said():
    stored = Table.of({"time": [*range(30)], "x": np.linspace(0, 1, 30)})
    found = aligned(stored, Table.of({"time": [1.5, 2.5], "x": [0.5, 0.7]}))
    assert found.notes == (
        "left out, only in incoming: 'time'",
        "'time' was taken for the ids of stored; --id names others",
    )


def test_ids_that_repeat_are_said_to_be_none():
    stored = Table.of({"sku": ["a", "b"], "x": [1.0, 2.0], "colour": ["red", "red"]})
    (told, other) = aligned(stored, Table.of({"sku": ["a", "a"], "x": [1.0, 3.0]})).notes
    assert told == "left out of stored as no measurements (text, ids, counts of rows): 'colour'"
    assert other.endswith("'sku'; rows go by their numbers, from 0, since none of these tells all rows apart")
