from dataclasses import replace

import pytest
import torch
from tests.linkage.data import tables

from ahop import linkage
from ahop.linkage import checks
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


def test_a_row_without_a_match_is_right_where_it_is_none_of_the_stored_ones(found, tmp_path, monkeypatch):
    columns, path = linkage.asked(found, 20), tmp_path / "check.csv"
    columns["answer"] = [*columns["candidate"][:10], *["none"] * 10]
    write(columns, path)
    given = checks.answers
    none = [found.incoming.places()[id] for id in columns["id"][8:]]

    def refusing(*arguments):
        answers = given(*arguments)
        return answers._replace(indices=answers.indices.index_fill(0, torch.tensor(none), -1))

    monkeypatch.setattr(checks, "answers", refusing)
    # It is the matches that are written which are certified: two of the ten are lost, and ten rightly have none.
    proved = linkage.answered(found, path).certificate
    assert (proved.right, proved.labels, proved.strangers) == (18, 20, 10)


@pytest.mark.parametrize("one_to_one", [False, True])
def test_checked_answers_make_probabilities_as_sure_as_they_were_right(found, tmp_path, one_to_one):
    before = linkage.link(found.model, tables()[1], one_to_one=one_to_one)
    columns, path = linkage.asked(before, 20), tmp_path / "check.csv"
    columns["answer"] = [*columns["candidate"][:10], *["none"] * 10]
    write(columns, path)
    after = linkage.answered(before, path)
    assert float(before.probabilities.mean()) > 0.9 and 0.3 < float(after.probabilities.mean()) < 0.7
    assert after.indices.tolist() == before.indices.tolist()
    # What was given is as it was, and what is saved for the next batch knows.
    assert float(before.memory.similarity.doubt) < 0.1 < float(after.memory.similarity.doubt)


def test_rows_to_check_are_a_page_that_shows_each_beside_its_candidates(found):
    columns = linkage.asked(found, 5)
    text = linkage.check_page(found, columns, "out-check.csv")
    for row, id in enumerate(columns["id"]):
        assert f"<h2>{id}</h2>" in text and f"<th>{columns['candidate'][row]}</th>" in text
        value = found.incoming.values[found.incoming.places()[id], 0]
        assert f"<td>{value:.6g}</td>" in text
    assert "out-check.csv" in text and "http" not in text and "<script" not in text


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
