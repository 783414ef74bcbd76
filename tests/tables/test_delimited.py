import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahop.tables import read
from ahop.tables.table import Table

NUMBERS = st.one_of(st.none(), st.integers(-999, 999).map(float), st.floats(-1e6, 1e6).map(lambda x: round(x, 2)))


@st.composite
def tables_in_dialects(draw):
    rows = draw(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6))
    return (
        rows,
        draw(st.sampled_from(",;\t|")),
        draw(st.sampled_from(".,")),
        draw(st.sampled_from(["", "NA", "nan", "NULL", "-", "?"])),
        draw(st.sampled_from(["utf-8", "utf-8-sig"])),
        draw(st.sampled_from(["\n", "\r\n"])),
    )


@given(tables_in_dialects())
def test_a_table_is_the_same_in_every_dialect(tmp_path_factory, drawn):
    rows, separator, decimal, missing, encoding, ending = drawn
    path = tmp_path_factory.mktemp("dialects") / "table.csv"
    # The last row says how decimals are written.
    rows = [*rows, (0.5, -1.25)]
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=ending)
        writer.writerow(["name", "größe", "b c"])
        for place, row in enumerate(rows):
            texts = [missing if value is None else str(value).replace(".", decimal) for value in row]
            writer.writerow([f"row, {place};|", *texts])
    table = read(path)
    assert table.ids.tolist() == [f"row, {place};|" for place in range(len(rows))]
    assert (table.id, table.columns) == ("name", ("größe", "b c"))
    expected = [[math.nan if value is None else value for value in row] for row in rows]
    np.testing.assert_array_equal(table.values, expected)


def made(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_german_export_of_excel_is_read_and_its_dialect_said(tmp_path):
    path = made(tmp_path, "\ufeffArtikel;Gewicht;Farbe\r\n00700;1,5;rot\r\n00800;-;rot\r\n")
    table = read(path)
    assert str(table) == f"{path}: 2 rows, 1 column of numbers; ids: column 'Artikel'; separator ';', decimal commas"
    assert table.ids.tolist() == ["00700", "00800"] and table.ignored == ("Farbe",)


def test_ids_that_are_named_stay_text(tmp_path):
    path = made(tmp_path, "sku,x\n7,1\n8,2\n")
    assert read(path, "sku").ids.tolist() == ["7", "8"]
    assert read(path).columns == ("sku", "x")


def test_a_first_row_of_numbers_is_no_line_of_names(tmp_path):
    table = read(made(tmp_path, "1;2,5\n3;4,5\n"))
    assert (len(table), table.named, table.columns) == (2, False, ("column 1", "column 2"))
    assert read(made(tmp_path, "sample,400,402.5\na,1,2\n")).columns == ("400", "402.5")


def test_a_cell_may_hold_a_line_break(tmp_path):
    assert read(made(tmp_path, 'name,x\n"two\nlines",1\nb,2\n')).ids.tolist() == ["two\nlines", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "table.csv is empty"),
        ("\n \n", "table.csv is empty"),
        ("a,b\n", "table.csv has a line of names and no rows"),
        ("a,b\n1,2\n3\n", "table.csv, line 3 must have 2 cells, as line 1 has; it has 1"),
        ("a,b\n1,2\n\n3,4,5\n", "table.csv, line 4 must have 2 cells, as line 1 has; it has 3"),
        ("a,a\n1,2\n", "table.csv has more than one column 'a'; each needs a name of its own"),
        ("id,x\na,1\nb,12x\nc,3\n", "table.csv, line 3, column 'x': '12x' is no number; a missing one is empty or"),
        ('id,x\na,"1,234"\n', "table.csv, line 2, column 'x': '1,234' may have a thousands separator"),
        ("id;x\na;2,5\nb;1.234,5\n", "table.csv, line 3, column 'x': '1.234,5' may have a thousands separator"),
        ("id;x\na;1 234\n", "'1 234' may have a thousands separator; write numbers without any"),
        ("x,y\n1,inf\n", "table.csv: row 0, column 'y' is infinite"),
        ("Größe\n1\n".encode("cp1252"), "table.csv, line 1 is not text in UTF-8"),
        ("id,x\na,red\nb,blue\n", "table.csv has no column of numbers; 'x' cannot be used"),
    ],
)
def test_a_bad_file_is_refused_by_file_line_and_column(tmp_path, text, message):
    with pytest.raises(ValueError) as error:
        read(made(tmp_path, text))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_number_that_is_none_is_found_far_behind_the_sample(tmp_path):
    lines = ["id,x", *(f"a{row},{row / 7:.12f}" for row in range(20_000)), "last,oops"]
    with pytest.raises(ValueError, match=r"line 20002, column 'x': 'oops' is no number"):
        read(made(tmp_path, "\n".join(lines)))


@pytest.mark.parametrize(
    ("text", "id", "message"),
    [
        ("id,x\na,1\nb,2\na,3\n", "id", "data rows 1 and 3 have the same id 'a'; each row needs an id of its own"),
        ("id,x\na,1\n,2\n", "id", "data row 2 has no id in column 'id'"),
        ("id,x\na,1\n", "sku", "has no column 'sku' for the ids; it has 'id', 'x'"),
    ],
)
def test_ids_that_are_not_in_order_are_refused(tmp_path, text, id, message):
    with pytest.raises(ValueError, match=message):
        read(made(tmp_path, text), id)


def test_a_count_of_the_rows_is_no_measurement_but_their_id():
    values = np.random.default_rng(0).random(30)
    table = Table.of({"x": values, "number": np.random.default_rng(1).permutation(30) + 5})
    assert (table.id, table.columns) == ("number", ("x",))
    assert Table.of({"x": values, "number": [*range(29), 40]}).columns == ("x", "number")
