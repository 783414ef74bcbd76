import pytest
from tests.linkage.data import tables

from ahop import STRANGER
from ahop.linkage import known_pairs
from ahop.linkage.pairs import paired
from ahop.tables import Table

STORED, INCOMING, _ = tables()


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("order,sku\no1,007\no0,008\n", "(incoming: 'order', stored: 'sku')"),
        ("sku;order\n007;o1\n008;o0\n", "(incoming: 'order', stored: 'sku')"),
        ("theirs\tours\no1\t007\no0\t008\n", "(incoming: 'theirs', stored: 'ours')"),
        ("o1,007\no0,008\n", "(incoming first, stored second)"),
    ],
)
def test_pairs_are_found_by_the_names_of_ids_or_by_their_places(tmp_path, text, note):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    found = known_pairs(path, STORED, INCOMING)
    assert found.origins.tolist() == [8, 7, *[-1] * 28]
    assert found.note == f"2 in {path} {note}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("order,sku\no1,7\no0,8\n", "names ids that stored does not have: '7', '8'"),
        ("order,sku\nx,007\n", "names ids that incoming does not have: 'x'"),
        ("order,sku\no1,007\no1,008\n", "pairs 'o1' with both '007' and '008'"),
        ("order,sku\no1,007\no1,none\n", "pairs 'o1' with both '007' and 'none'"),
        ("order,sku\no1,none\no1,007\n", "pairs 'o1' with both 'none' and '007'"),
        ("order\no1\n", "must have two columns"),
        ("order,sku\n", "has no pairs"),
    ],
)
def test_pairs_that_are_not_in_order_are_refused(tmp_path, text, message):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        known_pairs(path, STORED, INCOMING)


@pytest.mark.parametrize("text", ["order,sku\no1,007\no0,none\n", "sku,order\n007,o1\nnone,o0\n", "o1,007\no0,none\n"])
def test_none_says_that_a_row_is_none_of_the_stored_ones(tmp_path, text):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    found = known_pairs(path, STORED, INCOMING)
    assert found.origins.tolist() == [STRANGER, 7, *[-1] * 28]
    assert found.note.endswith("), 1 of them none")


def test_none_is_refused_where_a_stored_row_has_that_id(tmp_path):
    stored = Table.of({"sku": ["none", "a"], "x": [0.0, 1.0]}, name="stored")
    path = tmp_path / "pairs.csv"
    path.write_text("order,sku\no1,none\n")
    with pytest.raises(ValueError, match="stored must have no row with the id 'none': it means none of the stored"):
        known_pairs(path, stored, INCOMING)
    path.write_text("order,sku\no1,a\n")
    assert known_pairs(path, stored, INCOMING).origins.tolist() == [-1, 1, *[-1] * 28]


def test_whole_ids_are_found_as_files_of_floats_write_them():
    table = Table.of({"id": [3.0, 8.0], "x": [0.5, 1.5]}, name="t")
    assert table.ids.tolist() == [3, 8]
    assert paired([["3.0", "8"], ["8", "3.0"]], "pairs.csv", table, table).origins.tolist() == [1, 0]
