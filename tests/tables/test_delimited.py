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
    assert read(path, "x").columns == ("sku",)


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
        ("id,x\na,1\nb,12x\nc,3\n", "table.csv, line 3, column 'x': '12x' is no number; write one, or leave the cell"),
        ("id,x\na,1\nb,<0.01\nc,3\n", "'<0.01' is no number; write one, or leave the cell empty where it is missing"),
        ('id,x\na,"1,234"\n', "table.csv, line 2, column 'x': '1,234' may have a thousands separator"),
        ("id;x\na;2,5\nb;1.234,5\n", "table.csv, line 3, column 'x': '1.234,5' may have a thousands separator"),
        ("id;x\na;1 234\n", "'1 234' may have a thousands separator; write numbers without any"),
        ("x,y\n1,inf\n", "table.csv: row 0, column 'y' is infinite"),
        ("Größe\n1\n".encode("cp1252"), "table.csv, line 1 is not text in UTF-8"),
        (
            "id,x\na,red\nb,blue\n",
            "'id' holds the ids; 'x' cannot be used; for names, streets and dates there is Splink",
        ),
    ],
)
def test_a_bad_file_is_refused_by_file_line_and_column(tmp_path, text, message):
    with pytest.raises(ValueError) as error:
        read(made(tmp_path, text))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_what_laboratories_and_spreadsheets_write_for_a_missing_value_is_one(tmp_path):
    cells = ["n.d.", "n.a.", "N.D.", "#N/A", "-", ""]
    table = read(made(tmp_path, "id,x\n" + "".join(f"a{row},{cell}\n" for row, cell in enumerate(cells)) + "b,2.5\n"))
    assert table.columns == ("x",) and np.isnan(table.values[:-1]).all() and table.values[-1, 0] == 2.5


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


def test_a_count_of_the_rows_is_no_measurement_but_their_id(tmp_path):
    values, places = np.random.default_rng(0).random(30), np.random.default_rng(1).permutation(30) + 5
    rows = [f"{place},{value}" for place, value in enumerate(values)]
    for name in ("place", "", "Unnamed: 0", "No", "temperature"):
        assert read(made(tmp_path, "\n".join([f"{name},x", *rows]))).ids.tolist() == list(range(30))
    table = Table.of({"x": values, "index": places})
    assert (table.id, table.columns) == ("index", ("x",))
    assert Table.of({"x": values, "index": [*places[:29], 0.5]}).columns == ("x", "index")


def test_a_count_that_neither_stands_first_nor_is_called_so_is_a_measurement():
    """Thirty elements in the order of their atomic numbers, or a sample at each of thirty temperatures."""
    columns = {"symbol": [f"E{row}" for row in range(30)], "mass": np.linspace(1, 9, 30)}
    for name in ("atomic_number", "temperature", "year"):
        table = Table.of({**columns, name: np.arange(30) + 1})
        assert (table.id, table.columns, table.ignored) == ("symbol", ("mass", name), ())


def test_who_names_the_column_of_ids_has_said_that_others_are_measured_but_for_row_numbers():
    columns = {"temperature": np.arange(30), "sku": [f"A{row}" for row in range(30)], "x": np.linspace(0, 1, 30)}
    assert Table.of(columns).columns == ("x",)
    assert Table.of(columns, "sku").columns == ("temperature", "x")
    assert Table.of({"Unnamed: 0": np.arange(30), **columns}, "sku").columns == ("temperature", "x")


@pytest.mark.parametrize(
    "name",
    [
        *("id", "ID", "customer_id", "customerId", "Customer ID", "sku", "code", "product-code", "key", "nr", "No."),
        *("Artikel-Nr.", "part no", "item_number", "number", "ean", "CAS_number", "sample_key", "index", "OrderNo"),
        *("tablet_no", "ORDER_NO", "row_index"),
    ],
)
def test_whole_numbers_that_differ_are_ids_where_the_column_is_called_so(tmp_path, name):
    codes, path = [10021, 30407, 20333], tmp_path / "table.csv"
    path.write_text("\n".join([f"x;{name}", *(f"{row / 7};{code}" for row, code in enumerate(codes))]))
    for table in (read(path), Table.of({"x": [0.0, 0.5, 1.0], name: codes})):
        assert (table.id, table.columns, table.ids.tolist()) == (name, ("x",), codes)
        assert set(table.places()) == {"10021", "30407", "20333"}


@pytest.mark.parametrize(
    "columns",
    [
        {"number": [3, 3, 5]},
        {"number": [3.5, 4.0, 5.0]},
        {"number": [3.0, None, 5.0]},
        {"id": [3, 3, 5]},
        *({name: [10021, 30407, 20333]} for name in ("width", "grid", "nonid", "humid", "keynote", "no2", "paranoid")),
        *({name: [7, 26, 8]} for name in ("NO", "no", "inlet NO", "atomic_number", "AtomicNumber", "octane number")),
        *({name: [7, 26, 8]} for name in ("glycemic_index", "number of bids", "wave_number", "body mass index")),
    ],
)
def test_what_repeats_or_is_called_something_else_is_a_measurement(columns):
    table = Table.of({"x": [0.0, 0.5, 1.0], **columns})
    assert table.id is None and table.columns == ("x", *columns)


def test_of_several_columns_of_ids_the_first_is_taken_and_none_is_measured():
    columns = {"x": [0.5, 1.5, 2.5], "order_id": [17, 19, 23], "name": ["a", "b", "c"], "sku": [10, 20, 35]}
    table = Table.of(columns)
    assert (table.id, table.columns, table.ignored) == ("order_id", ("x",), ("name", "sku"))
    # Who names it has said what the others are.
    assert Table.of(columns, "name").columns == ("x", "order_id", "sku")


def test_ids_longer_than_a_float_keeps_are_kept_whole(tmp_path):
    codes = ["12345678901234567890", "12345678901234567891"]
    table = read(made(tmp_path, "\n".join(["x,id", *(f"1.5,{code}" for code in codes)])))
    assert (table.id, table.ids.tolist(), table.columns) == ("id", codes, ("x",))


def test_a_table_of_ids_alone_has_nothing_to_compare(tmp_path):
    with pytest.raises(ValueError, match=r"no column of numbers to compare; 'id' holds the ids; 'sku' cannot be used"):
        read(made(tmp_path, "id,sku\n10,100\n20,300\n50,200\n"))
