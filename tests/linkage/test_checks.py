from dataclasses import replace

import pytest
from tests.linkage.data import tables

from ahop import linkage
from ahop.tables import write


def unknown(found):
    return linkage.link(found.model, tables()[1])


def test_checked_answers_certify_what_was_matched(found, tmp_path):
    path, columns = tmp_path / "check.csv", linkage.asked(found, 20)
    assert columns["answer"] == [None] * 20 and len(set(columns["id"])) == 20
    columns["answer"] = [*columns["candidate"][:17], "none", columns["second"][18], None]
    write(columns, path)
    proved = linkage.answered(found, path).certificate
    assert (proved.right, proved.labels, proved.strangers) == (17, 19, 1)


def test_what_is_known_already_is_not_asked_about(found):
    known = found.indices.clone()
    known[24:] = -1
    found = replace(found, origins=known)
    assert set(linkage.asked(found, 6)["id"]) == {f"o{row}" for row in range(24, 30)}
    with pytest.raises(ValueError, match="count must be at most 6"):
        linkage.asked(found, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,answer\no1,007\n", "must have the columns 'id' and 'answer'; it has 'row', 'answer'"),
        ("id,answer\nx,007\n", "names ids that incoming does not have: 'x'"),
        ("id,answer\no1,7\n", "has answers that stored does not have as ids: '7'"),
        ("id,answer\no1,\n", "has no answers yet: fill in the column 'answer'"),
    ],
)
def test_answers_that_are_not_in_order_are_refused(found, tmp_path, text, message):
    path = tmp_path / "check.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        linkage.answered(found, path)
