"""Tables as text of every dialect: read as they were written, or refused in one line that names the file."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ahop import tables

MISSING = ["", "NA", "n/a", "NaN", "NULL", "none", "-", "?"]
HOSTILE = ['"', "'", ",", ";", "\t", "|", "\n", " ", "é", "{x}", "<b>", "=1+1", "\\", "#", "0", "%"]
# Names have no line breaks: errors count rows from the second line on.
NO_BREAK = [sign for sign in HOSTILE if sign != "\n"]
# What is wrong with a file, and a word of what is said of it.
FAULTS = {
    "none": None,
    "no bytes": "is empty",
    "no rows": "no rows",
    "a cell less": "cells",
    "a cell more": "cells",
    "one name twice": "more than one column",
    "a word for a number": "is no number",
    "thousands": "thousands separator",
    "another encoding": "UTF-8",
    "one id twice": "same id",
    "infinite": "infinite",
}


@st.composite
def cases(draw):
    """How a table is written and what is wrong with it; its cells come from the seed."""
    return {
        "seed": draw(st.integers(0, 10**6)),
        # Among fewer, a sign in the ids may part all of them as evenly as the separator does.
        "rows": draw(st.integers(5, 300)),
        "columns": draw(st.integers(1, 5)),
        "separator": draw(st.sampled_from(",;\t|")),
        "decimal": draw(st.sampled_from(".,")),
        "missing": draw(st.sampled_from(MISSING)),
        "mark": draw(st.booleans()),
        "ending": draw(st.sampled_from(["\n", "\r\n"])),
        "last": draw(st.booleans()),
        "quoted": draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])),
        "blank": draw(st.booleans()),
        "digits": draw(st.sampled_from([".0f", ".2f", ".6e", ".17g"])),
        "scale": draw(st.sampled_from([1e-300, 1e-6, 1.0, 1e6, 1e300])),
        "named": draw(st.booleans()),
        "codes": draw(st.booleans()),
        "fault": draw(st.sampled_from(["none", "none", "none", *FAULTS])),
    }


def cells(case, random):
    """Lines of text, that of the names first, and the numbers among them, of which the first row has all."""
    count, width = case["rows"], case["columns"]
    values = random.normal(size=(count, width)) * case["scale"]
    # Whole numbers of sixteen digits or more are codes.
    digits = case["digits"] if case["scale"] < 1e10 else ".6g"
    texts = [[format(value, digits) for value in row] for row in values]
    # The first row shows how decimals are written.
    texts[0] = [f"{value:.2f}" for value in random.uniform(-9, 9, width)]
    values = np.array([[float(text) for text in row] for row in texts])
    texts = [[text.replace(".", case["decimal"]) for text in row] for row in texts]
    lost = random.random(values.shape) < 0.2
    lost[0] = False
    values[lost] = np.nan
    for row, column in np.argwhere(lost):
        texts[row][column] = case["missing"]

    ids = [f"{row:06d}" if case["codes"] else f"{''.join(random.choice(HOSTILE, 3))}x{row}" for row in range(count)]
    pad = " " if case["blank"] else ""
    names = [f"{random.choice(NO_BREAK)}n{column}" for column in range(width)]
    return [["id", *names], *([id, *(pad + text for text in row)] for id, row in zip(ids, texts, strict=True))], values


def spoiled(lines, fault, place):
    """One thing is wrong with one row of the lines."""
    row = lines[1 + place % (len(lines) - 1)]
    if fault == "no rows":
        del lines[1:]
    elif fault == "a cell less":
        row.pop()
    elif fault == "a cell more":
        row.append("1")
    elif fault == "one name twice":
        lines[0][-1] = "id"
    elif fault == "one id twice":
        lines.append(lines[1])
    elif fault in ("a word for a number", "thousands", "infinite"):
        row[-1] = {"a word for a number": "about five", "thousands": "1'234", "infinite": "inf"}[fault]


def written(case, lines):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=case["separator"], lineterminator=case["ending"], quoting=case["quoted"])
    writer.writerows(lines)
    whole = text.getvalue() if case["last"] else text.getvalue().removesuffix(case["ending"])
    content = whole.encode("utf-8-sig" if case["mark"] else "utf-8")
    return {"no bytes": b"", "another encoding": content.replace(b"id", b"\xe9d", 1)}.get(case["fault"], content)


def check(case):
    random, fault = np.random.default_rng(case["seed"]), case["fault"]
    lines, values = cells(case, random)
    # A column of which no cell is a number is one of words, and in one of few rows a word is no exception.
    if fault in ("a word for a number", "thousands") and (values[:, -1] == values[:, -1]).sum() < 4:
        fault = "none"
    if fault == "one id twice" and not case["named"]:
        fault = "none"
    # Decimal commas part rows of one number as evenly as the separator does, and one cell more as nobody else does.
    if fault == "a cell more" and case["columns"] == 1 and case["decimal"] == ",":
        fault = "none"
    spoiled(lines, fault, case["seed"])
    file = io.BytesIO(written({**case, "fault": fault}, lines))
    try:
        table = tables.parsed(file, "some.csv", "id" if case["named"] else None)
    except ValueError as error:
        assert "\n" not in str(error) and str(error).startswith("some.csv"), error
        assert FAULTS[fault] is not None and FAULTS[fault] in str(error), error
        return
    assert FAULTS[fault] is None, f"{fault} was read"
    assert table.ids.tolist() == [line[0] for line in lines[1:]] and table.id == "id"
    assert table.columns == tuple(name.strip() for name in lines[0][1:])
    np.testing.assert_array_equal(table.values, values)


@settings(max_examples=60)
@given(cases())
def test_a_table_is_read_as_it_was_written_or_refused_in_one_line(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=3000)
@given(cases())
def test_many_tables_are_read_as_they_were_written_or_refused_in_one_line(case):
    check(case)
