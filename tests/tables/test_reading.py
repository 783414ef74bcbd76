import sys

import numpy as np
import pandas
import pyarrow
import pytest
from pyarrow import feather

from ahop._extras import MissingExtraError
from ahop.tables import Table, read, write

COLUMNS = {"sku": ["007", "a", "b"], "x": [1.5, None, 2.0], "whole": [1, 2, 4], "yes": [True, False, True]}
VALUES = [[1.5, 1, 1], [np.nan, 2, 0], [2.0, 4, 1]]


def same(table):
    np.testing.assert_array_equal(table.values, VALUES)
    assert table.ids.tolist() == COLUMNS["sku"] and table.columns == ("x", "whole", "yes")


def test_every_kind_of_file_and_frame_gives_the_same_table(tmp_path):
    frame = pandas.DataFrame(COLUMNS)
    frame.to_parquet(tmp_path / "a.parquet")
    feather.write_feather(pyarrow.table(COLUMNS), str(tmp_path / "a.feather"))
    for table in (
        read(tmp_path / "a.parquet"),
        read(tmp_path / "a.feather"),
        Table.of(frame),
        Table.of(frame.convert_dtypes()),
        Table.of(frame.set_index("sku")),
        Table.of(pyarrow.table(COLUMNS)),
        Table.of(COLUMNS),
    ):
        same(table)


@pytest.mark.slow
def test_frames_of_polars_are_tables():
    polars = pytest.importorskip("polars")
    table = Table.of(polars.DataFrame(COLUMNS))
    same(table)
    assert type(table.ids[0]) is str
    lost = Table.of(polars.DataFrame({"x": [1.5, 2.5], "lost": [None, None], "key": [3, 9]}), measured=("key",))
    assert lost.columns == ("x", "lost", "key") and np.isnan(lost.values[:, 1]).all()


def test_a_sheet_is_a_table(tmp_path):
    pandas.DataFrame(COLUMNS).to_excel(tmp_path / "a.xlsx", index=False)
    same(read(tmp_path / "a.xlsx"))


def test_a_sheet_keeps_leading_zeros_and_reads_numbers_that_are_text(tmp_path):
    codes = {"sku": ["007", "008", "009"], "x": ["1.5", "-", "2"], "when": pandas.to_datetime(["2020-01-01"] * 3)}
    pandas.DataFrame(codes).to_excel(tmp_path / "a.xlsx", index=False)
    table = read(tmp_path / "a.xlsx")
    assert table.ids.tolist() == codes["sku"] and table.ignored == ("when",)
    np.testing.assert_array_equal(table.values, [[1.5], [np.nan], [2.0]])


@pytest.mark.parametrize(("missing", "name"), [("openpyxl", "a.xlsx"), ("pyarrow", "a.csv"), ("narwhals", "a.csv")])
def test_what_is_not_installed_is_said_in_one_line(tmp_path, monkeypatch, missing, name):
    (tmp_path / name).write_text("x\n1\n")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"^{missing} is not installed: pip install 'ahop\[tables\]'$"):
        read(tmp_path / name)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_written_is_what_is_read(tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    path.write_text("what was there before")
    write(COLUMNS, path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    table = read(path)
    assert table.ids.tolist() == COLUMNS["sku"]
    np.testing.assert_array_equal(table.values[:, :2], np.array(VALUES)[:, :2])


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(ValueError):
        write({"a": [1, 2], "b": [1]}, path)
    with pytest.raises(ValueError, match="cannot be written"):
        write({"a": [1]}, tmp_path / "nowhere" / "out.csv")
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_arrays_have_places_for_names_and_row_numbers_for_ids(tmp_path):
    values = np.arange(6, dtype=np.int16).reshape(3, 2)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "one.npz", any=values)
    np.savez(tmp_path / "named.npz", patterns=values, other=values[:1])
    for name in ("a.npy", "one.npz", "named.npz"):
        table = read(tmp_path / name, "sku")
        assert (table.ids.tolist(), table.id, table.named) == ([0, 1, 2], None, False)
        np.testing.assert_array_equal(table.values, values)


def test_objects_are_never_unpickled_and_nobody_is_told_to(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"a\.npy cannot be read as NumPy: it holds no array of numbers, and") as error:
        read(tmp_path / "a.npy")
    assert "allow_pickle" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", np.zeros(3), r"a\.npy must be a matrix of numbers; it has shape \(3,\) and type float64"),
        ("a.npz", {"a": np.eye(2), "b": np.eye(2)}, "must hold one array, or one named 'patterns', and has 'a', 'b'"),
        ("a.parquet", b"PAR1", r"a\.parquet cannot be read as Parquet: "),
        ("a.feather", b"nothing", r"a\.feather cannot be read as Feather: "),
        ("a.doc", b"x", r"a\.doc must end in one of \.csv, \.tsv"),
        ("a.csv", None, r"a\.csv does not exist"),
    ],
)
def test_a_file_that_is_not_what_it_seems_is_refused_in_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    elif content is not None:
        np.save(path, content)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as error:
        read(path)
    assert "\n" not in str(error.value)


def test_a_frame_needs_names_that_differ():
    frame = pandas.DataFrame([[1.0, 2.0]], columns=[1, "1"])
    with pytest.raises(ValueError, match="more than one column '1'"):
        Table.of(frame)
    with pytest.raises(ValueError, match="table must be a frame of pandas, polars or pyarrow, got int"):
        Table.of(3)
