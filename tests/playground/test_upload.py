import contextlib
import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ahop.playground import upload
from ahop.playground.sent import File, UploadError


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def png(size=(20, 10), shade=200):
    file = io.BytesIO()
    Image.new("L", size, shade).save(file, "png")
    return file.getvalue()


ROWS = np.arange(12.0).reshape(4, 3)
CSV = "sku,x,y\na,1,2\nb,3,4.5\nc,0.5,\n"


# --- pictures ----------------------------------------------------------------------------------------------------


def test_pictures_become_small_grey_squares():
    found = upload.pictures([File("light.png", png(shade=255)), File("dark.png", png((7, 30), 0))])
    assert found.names == ("light.png", "dark.png") and found.patterns.shape == (2, 144)
    assert found.patterns[0].unique().tolist() == [1] and found.patterns[1].unique().tolist() == [-1]


def test_pictures_that_are_none_too_few_or_all_alike_are_refused():
    good = File("good.png", png())
    with pytest.raises(UploadError, match=r"bad\.png is not a picture"):
        upload.pictures([good, File("bad.png", b"GIF89a nothing")])
    with pytest.raises(UploadError, match="2 to 64 pictures; 1 came"):
        upload.pictures([good])
    with pytest.raises(UploadError, match="look the same"):
        upload.pictures([good, good])


def test_a_picture_that_would_fill_the_memory_is_refused_by_its_head():
    head = struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    chunk = b"IHDR" + head
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    with pytest.raises(UploadError, match=r"60000 x 60000 pixels|is not a picture"):
        upload.pictures([File("bomb.png", bomb), File("good.png", png())])


# --- tables ------------------------------------------------------------------------------------------------------


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_an_array_is_read_alone_or_from_an_archive():
    for file in (
        File("x.NPY", saved(ROWS)),
        File("x.npz", npz(any=ROWS)),
        File("x.npz", npz(patterns=ROWS, other=ROWS + 1)),
    ):
        assert upload.table(file).values.tolist() == ROWS.tolist()


def test_a_table_with_gaps_and_decimal_commas_is_the_same_table():
    plain = upload.table(File("x.csv", CSV.encode()))
    assert plain.ids.tolist() == ["a", "b", "c"] and plain.columns == ("x", "y")
    np.testing.assert_array_equal(plain.values, [[1, 2], [3, 4.5], [0.5, np.nan]])
    other = "\ufeff" + CSV.replace(",", ";").replace(".", ",").replace("\n", "\r\n")
    np.testing.assert_array_equal(upload.table(File("x.csv", other.encode())).values, plain.values)


def test_known_pairs_are_read_by_the_ids_of_both_tables():
    stored = upload.table(File("x.csv", CSV.encode()))
    incoming = upload.table(File("y.csv", b"order,x,y\no1,1,2\no2,0,0\n"))
    assert upload.origins(File("pairs.csv", b"order;sku\no2;c\n"), stored, incoming).tolist() == [-1, 2]
    with pytest.raises(UploadError, match=r"^pairs\.csv names ids that x\.csv does not have: 'z'\.$"):
        upload.origins(File("pairs.csv", b"order;sku\no2;z\n"), stored, incoming)


def test_as_many_rows_and_columns_are_read_as_the_page_says():
    assert (upload.MOST_ROWS, upload.MOST_COLUMNS) == (20_000, 1_000)
    assert upload.table(File("x.npy", saved(np.zeros((20_000, 2), np.int8)))).values.shape == (20_000, 2)
    assert upload.table(File("x.csv", b"1,2\n" * 20_000)).values.shape == (20_000, 2)
    wide = ",".join(f"x{place}" for place in range(1000)) + "\n" + ",".join("1" * 1000) + "\n"
    assert upload.table(File("x.csv", wide.encode())).values.shape == (1, 1000)


@pytest.mark.parametrize(
    "file",
    [
        File("x.npy", saved(np.zeros((20_001, 1), np.int8))),
        File("x.npy", saved(np.zeros((1, 1001)))),
        File("x.csv", b"x,y\n" + b"1,2\n" * 20_001),
        File("x.csv", (",".join("1" * 1001) + "\n").encode()),
    ],
    ids=["rows", "columns", "rows of text", "columns of text"],
)
def test_more_rows_or_columns_are_refused(file):
    with pytest.raises(UploadError, match=r"; at most 20,000 rows of 1,000 columns are read\.$"):
        upload.table(file)


def test_pickles_are_not_opened():
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    array = np.array([[Bomb()]], dtype=object)
    for file in (File("x.npz", npz(patterns=array)), File("x.npy", saved(array))):
        with pytest.raises(UploadError, match="must hold a matrix of numbers"):
            upload.table(file)


def headed(shape):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return head.getvalue()


@pytest.mark.parametrize("shape", [(10**9, 200), (3, 10**9)])
def test_an_array_that_would_fill_the_memory_is_refused_by_its_head(shape):
    for file in (File("x.npz", packed(headed(shape), 0)), File("x.npy", headed(shape))):
        with pytest.raises(UploadError, match="at most 20,000 rows of 1,000 columns"):
            upload.table(file)


def packed(array, megabytes=64):
    """An NPZ file of zeros, of which the array's own text is given."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("patterns.npy", "w") as part:
        part.write(array)
        for _ in range(megabytes):
            part.write(bytes(2**20))
    return file.getvalue()


@pytest.mark.parametrize(
    "array",
    [headed((3, 3)), headed((-(10**9), 3)), headed((-1, -1)), b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**26)],
    ids=["small", "negative", "twice negative", "all head"],
)
def test_no_more_of_an_archive_is_unpacked_than_the_bounds_allow(array):
    bomb = File("x.npz", packed(array))
    tracemalloc.start()
    with contextlib.suppress(UploadError):
        upload.table(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**23


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"1," * 2**18, "lines of more than 262,144 bytes"),
        (b"1," * 2**12 + b"\n", "at most 20,000 rows of 1,000 columns"),
    ],
    ids=["one line", "wide"],
)
def test_a_text_of_too_many_cells_is_refused(text, said):
    with pytest.raises(UploadError, match=said):
        upload.table(File("x.csv", text))


@pytest.mark.slow
def test_a_text_of_too_many_cells_is_refused_before_it_is_a_table():
    bomb = File("x.csv", b"1,1,1,1,1,1,1,1\n" * 6_000_000)
    tracemalloc.start()
    with pytest.raises(UploadError, match="too large"):
        upload.table(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3 * len(bomb.content)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (ROWS[0], "must hold a matrix of numbers; the array has shape"),
        (ROWS + np.inf, "is infinite"),
        (ROWS[:0], "has no rows"),
        (ROWS[:, :0], "has no column of numbers"),
        (np.array([["a"]]), "must hold a matrix of numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(array, said):
    with pytest.raises(UploadError, match=said):
        upload.table(File("x.npy", saved(array)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("x,x\n1,2\n", "more than one column 'x'"),
        ("name\nann\n", "has no column of numbers"),
        (CSV.replace("4.5", "four\nc,1,2"), "line 3, column 'y': 'four' is no number"),
        (CSV.replace("0.5,", "0.5"), "line 4 must have 3 cells, as line 1 has; it has 2"),
    ],
)
def test_tables_that_do_not_fit_are_refused_and_the_line_is_named(text, said):
    with pytest.raises(UploadError, match=said):
        upload.table(File("x.csv", text.encode()))


def test_other_files_are_refused():
    with pytest.raises(UploadError, match=r"must end in \.csv, \.tsv, \.txt, \.npy or \.npz"):
        upload.table(File("x.pkl", b""))
    with pytest.raises(UploadError, match="not an NPZ file"):
        upload.table(File("x.npz", b"PK nothing"))
    with pytest.raises(UploadError, match="UTF-8"):
        upload.table(File("x.csv", b"\xff\xfe"))
    with pytest.raises(UploadError, match="must hold one array, or one named 'patterns'; it has 2"):
        upload.table(File("x.npz", npz(a=ROWS, b=ROWS)))


WHOLE = npz(patterns=ROWS)


@settings(max_examples=60)
@given(
    name=st.sampled_from(["x.csv", "x.npz", "x.npy"]),
    content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode)
    | st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)).map(
        lambda change: WHOLE[: change[0]] + bytes([change[1]]) + WHOLE[change[0] + 1 :]
    )
    | st.integers(0, len(WHOLE)).map(lambda end: WHOLE[:end]),
)  # fmt: skip
def test_whatever_is_in_a_file_it_is_read_or_refused_in_a_sentence(name, content):
    try:
        table = upload.table(File(name, content))
    except UploadError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
    else:
        assert table.values.shape == (len(table), len(table.columns))
