import pytest
from tests.linkage.data import tables

from ahop.linkage import known_pairs

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
        ("order\no1\n", "must have two columns"),
        ("order,sku\n", "has no pairs"),
    ],
)
def test_pairs_that_are_not_in_order_are_refused(tmp_path, text, message):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        known_pairs(path, STORED, INCOMING)
