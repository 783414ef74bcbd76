import base64
import io
import json
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
from ahop.playground.upload import File, UploadError


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def sent(*pairs):
    return json.dumps([{"name": name, "data": base64.b64encode(content).decode()} for name, content in pairs])


def png(size=(20, 10), shade=200):
    file = io.BytesIO()
    Image.new("L", size, shade).save(file, "png")
    return file.getvalue()


PATTERNS, QUERIES = np.arange(12.0).reshape(4, 3), np.ones((5, 3))
CSV = "kind,item,x,y\npattern,a,1,2\npattern,b,3,4\nquery,b,3,4.5\nquery,,0,0\n"


# --- what the page sends -----------------------------------------------------------------------------------------


def test_files_arrive_as_they_were():
    assert upload.files(sent(("a.npz", b"12\x00"), ("b", b"")), most=2) == [File("a.npz", b"12\x00"), File("b", b"")]


@pytest.mark.parametrize(
    "text",
    [
        *("", "no", "[]", "{}", "3", '[{"name": "a"}]', '[{"name": "a", "data": "%"}]', "[null]"),
        *("[" * 10**5, '[{"name": "a", "data": "é"}]'),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_list_of_files_is_refused_in_a_sentence(text):
    with pytest.raises(UploadError, match=r"\.$"):
        upload.files(text)


def test_a_file_that_is_too_large_and_files_that_are_too_many_are_refused():
    with pytest.raises(UploadError, match=r"^big is too large: at most 8 MB are read\.$"):
        upload.files(json.dumps([{"name": "big", "data": "A" * (12 * 2**20)}]))
    with pytest.raises(UploadError, match="big is too large"):
        upload.files(json.dumps([{"name": "big", "data": None}]))
    with pytest.raises(UploadError, match="Choose one file, not 2"):
        upload.files(sent(("a", b""), ("b", b"")))


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


# --- numbers -----------------------------------------------------------------------------------------------------


def test_an_npz_file_is_read_with_origins_or_without():
    data = upload.data(File("x.NPZ", npz(patterns=PATTERNS, queries=QUERIES, origins=[0, 1, 2, 3, -1])))
    assert data.patterns.tolist() == PATTERNS.tolist() and data.origins.tolist() == [0, 1, 2, 3, -1]
    assert upload.data(File("x.npz", npz(patterns=PATTERNS, queries=QUERIES))).origins is None
    assert upload.data(File("x.npz", npz(patterns=PATTERNS, queries=QUERIES, origins=[-1] * 5))).origins is None


def test_a_csv_file_is_read_by_the_items_of_its_rows():
    data = upload.data(File("x.csv", CSV.encode()))
    assert data.patterns.tolist() == [[1, 2], [3, 4]] and data.queries.tolist() == [[3, 4.5], [0, 0]]
    assert data.origins.tolist() == [1, -1]
    others = upload.data(File("x.csv", ("\ufeff" + CSV.replace(",", ";").replace("\n", "\r\n")).encode()))
    assert all(np.array_equal(one, other) for one, other in zip(data, others, strict=True))


def test_pickles_are_not_opened():
    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("it was unpickled",)

    with pytest.raises(UploadError, match="patterns must be a table of numbers"):
        upload.data(File("x.npz", npz(patterns=np.array([[Bomb()]], dtype=object), queries=QUERIES)))


def test_an_array_that_would_fill_the_memory_is_refused_by_its_head():
    for shape in ((10**9, 200), (3, 10**9)):
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("patterns.npy", head.getvalue())
        with pytest.raises(UploadError, match="at most 1000 rows of 256 columns"):
            upload.data(File("x.npz", file.getvalue()))


def packed(array):
    """An NPZ file of zeros, of which the array's own text is given."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("patterns.npy", "w") as part:
        part.write(array)
        for _ in range(64):
            part.write(bytes(2**20))
    return file.getvalue()


def headed(shape):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return head.getvalue()


@pytest.mark.parametrize(
    "array",
    [headed((3, 3)), headed((-(10**9), 3)), headed((-1, -1)), b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**26)],
    ids=["small", "negative", "twice negative", "all head"],
)
def test_no_more_of_an_archive_is_unpacked_than_the_bounds_allow(array):
    bomb = File("x.npz", packed(array))
    tracemalloc.start()
    with pytest.raises(UploadError):
        upload.data(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**23


def test_an_origin_that_is_too_large_is_not_taken_for_an_unknown_one():
    with pytest.raises(UploadError, match="origins must lie in 0 to 3"):
        upload.data(File("x.npz", npz(patterns=PATTERNS, queries=QUERIES, origins=np.full(5, 2**64 - 1, np.uint64))))


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"patterns": PATTERNS}, "must have the arrays 'patterns' and 'queries'"),
        ({"patterns": PATTERNS, "queries": QUERIES[:, :2]}, "3 values each and queries 2"),
        ({"patterns": PATTERNS, "queries": QUERIES[0]}, "queries must be a table of numbers"),
        ({"patterns": PATTERNS + np.inf, "queries": QUERIES}, "patterns must be finite"),
        ({"patterns": PATTERNS * 1e300, "queries": QUERIES}, "too large"),
        (
            {"patterns": PATTERNS[:1], "queries": QUERIES},
            "at least two patterns, of one value or more; there are 1 of 3",
        ),
        ({"patterns": PATTERNS[:, :0], "queries": QUERIES}, "there are 4 of 0 values each"),
        ({"patterns": PATTERNS, "queries": QUERIES, "origins": [4] * 5}, "origins must lie in 0 to 3"),
        ({"patterns": PATTERNS, "queries": QUERIES, "origins": [0.5] * 5}, "origins must be whole numbers"),
        ({"patterns": PATTERNS, "queries": QUERIES, "origins": [0]}, "origins must be one index per query"),
        ({"patterns": np.array([["a"]]), "queries": QUERIES}, "patterns must be a table of numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(arrays, said):
    with pytest.raises(UploadError, match=said):
        upload.data(File("x.npz", npz(**arrays)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must name the columns"),
        ("a,b\n1,2\n", "one of them must be 'kind'"),
        ("kind,x,x\n", "name of its own"),
        ("kind,item\n", "1 to 256 columns of numbers; there are 0"),
        (CSV.replace("4.5", "four"), "Line 4, column 'y' must be a number, not 'four'"),
        (CSV.replace("4.5", "nan"), "Line 4, column 'y' must be a number"),
        (CSV.replace("query,,0,0", "query,0,0"), "Line 5 has 3 cells; the first line has 4"),
        (CSV.replace("query,b", "asked,b"), "Line 4: kind must be 'pattern' or 'query', not 'asked'"),
        (CSV.replace("pattern,b", "pattern,a"), "Each pattern must have an item of its own"),
        ("kind,x\n" + "pattern,1\n" * 1001, "At most 1000 patterns"),
        ("kind," + ",".join(f"x{place}" for place in range(300)) + "\n", "there are 300"),
    ],
)
def test_tables_that_do_not_fit_are_refused_and_the_line_is_named(text, said):
    with pytest.raises(UploadError, match=said):
        upload.data(File("x.csv", text.encode()))


def test_other_files_are_refused():
    with pytest.raises(UploadError, match=r"must end in \.csv or \.npz"):
        upload.data(File("x.pkl", b""))
    with pytest.raises(UploadError, match="not an NPZ file"):
        upload.data(File("x.npz", b"PK nothing"))
    with pytest.raises(UploadError, match="UTF-8"):
        upload.data(File("x.csv", b"\xff\xfe"))


WHOLE = npz(patterns=PATTERNS, queries=QUERIES, origins=[0] * 5)


@settings(max_examples=150)
@given(
    name=st.sampled_from(["x.csv", "x.npz"]),
    content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode)
    | st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)).map(
        lambda change: WHOLE[: change[0]] + bytes([change[1]]) + WHOLE[change[0] + 1 :]
    )
    | st.integers(0, len(WHOLE)).map(lambda end: WHOLE[:end]),
)  # fmt: skip
def test_whatever_is_in_a_file_it_is_read_or_refused_in_a_sentence(name, content):
    try:
        data = upload.data(File(name, content))
    except UploadError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
    else:
        assert data.patterns.shape[1] == data.queries.shape[1]
