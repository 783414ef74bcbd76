from dataclasses import replace

import pytest
import torch
from tests.linkage.data import tables

from ahop import STRANGER, linkage
from ahop.linkage import checks
from ahop.tables import write


def filled(found, columns, folder):
    """The answers of a file with these columns, as the command reads them."""
    write(columns, folder / "check.csv")
    return linkage.checked_answers(folder / "check.csv", found.stored, found.incoming)


def test_checked_answers_certify_what_was_matched(found, tmp_path):
    columns = linkage.asked(found, 20)
    assert columns["answer"] == [None] * 20 and len(set(columns["id"])) == 20
    columns["answer"] = [*columns["candidate"][:17], "none", columns["second"][18], None]
    proved = linkage.answered(found, filled(found, columns, tmp_path)).certificate
    assert (proved.right, proved.labels, proved.strangers) == (17, 19, 1)


def test_a_row_without_a_match_is_right_where_it_is_none_of_the_stored_ones(found, tmp_path, monkeypatch):
    columns = linkage.asked(found, 20)
    columns["answer"] = [*columns["candidate"][:10], *["none"] * 10]
    checked = filled(found, columns, tmp_path)
    given, kept = checks.answers, checked[checked >= 0][:8]

    def refusing(*arguments):
        answers = given(*arguments)
        return answers._replace(indices=answers.indices.masked_fill(~torch.isin(answers.indices, kept), -1))

    monkeypatch.setattr(checks, "answers", refusing)
    # It is the matches before any was answered that are certified: two of ten are lost, and ten rightly have none.
    proved = linkage.answered(found, checked).certificate
    assert (proved.right, proved.labels, proved.strangers) == (18, 20, 10)


@pytest.mark.parametrize("one_to_one", [False, True])
def test_an_answer_is_the_match_of_its_row_and_others_go_around_it(found, one_to_one):
    before = linkage.link(found.model, tables()[1], one_to_one=one_to_one)
    checked = torch.full((30,), -1)
    checked[:18], right = before.indices[:18], before.indices
    # The nineteenth is the row of the thirtieth, and the twentieth is none.
    checked[18], checked[19] = right[29], STRANGER
    after = linkage.answered(before, checked)
    table = after.table()
    assert after.certificate.right == 18 and after.certificate.labels == 20 and after.certificate.strangers == 1
    assert after.indices[:18].equal(right[:18]) and after.indices[18] == right[29] and after.indices[19] == -1
    assert (after.indices[29] != right[29]) == one_to_one and after.indices[20:29].equal(right[20:29])
    assert table["reason"][:19] == ["checked answer"] * 19 and table["reason"][20:29] == [""] * 9
    assert table["reason"][19] == "checked: none of the stored rows" and table["match"][19] is None
    assert table["probability"][:19] == [1.0] * 19 and table["verified"][:20] == [True] * 20
    assert before.table()["reason"] == [""] * 30 and before.origins.tolist() == [-1] * 30


def test_what_was_known_before_proves_nothing_however_it_is_answered(found):
    known = found.indices.index_fill(0, torch.arange(5, 30), -1)
    checked = found.indices.index_fill(0, torch.arange(10, 30), -1)
    given = replace(found, origins=known)
    after = linkage.answered(given, checked)
    assert after.certificate.labels == 5
    assert after.table()["reason"][:10] == [*["known pair"] * 5, *["checked answer"] * 5]


def test_a_match_is_verified_where_it_was_checked_or_enough_answers_judged_it(found):
    right = found.indices
    few, enough = (linkage.answered(found, right.index_fill(0, torch.arange(count, 30), -1)) for count in (3, 20))
    assert few.table()["verified"] == [*[True] * 3, *[False] * 27]
    assert enough.table()["verified"] == [True] * 30
    # There is nothing to rely on where a row has no match.
    assert replace(enough, indices=right.index_fill(0, torch.tensor([29]), -1)).table()["verified"][29] is False


@pytest.mark.parametrize("one_to_one", [False, True])
def test_checked_answers_make_probabilities_as_sure_as_they_were_right(found, tmp_path, one_to_one):
    before = linkage.link(found.model, tables()[1], one_to_one=one_to_one)
    columns = linkage.asked(before, 20)
    columns["answer"] = [*columns["candidate"][:10], *["none"] * 10]
    after = linkage.answered(before, filled(before, columns, tmp_path))
    open = after.origins == -1
    assert float(before.probabilities.mean()) > 0.9 and 0.3 < float(after.probabilities[open].mean()) < 0.7
    assert after.indices[open].equal(before.indices[open]) and int(open.sum()) == 10
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
        ("", "check.csv is empty"),
        ("row,answer\no1,007\n", "must have the columns 'id' and 'answer'; it has 'row', 'answer'"),
        ("id,answer\nx,007\n", "names ids that incoming does not have: 'x'"),
        ("id,answer\no1,7\n", "has answers that stored does not have as ids: '7'"),
        ("id,answer\no1,\n", "has no answers yet: fill in the column 'answer'"),
        ("id,answer\no1,007\no1,008\n", "answers 'o1' with both '007' and '008'"),
        ("id,answer\no0,007\n", "answers 'o0' with '007', and it is known to be '039'"),
        ("id,answer\no0,039\n", "has answers to known pairs alone, and these prove nothing"),
    ],
)
def test_answers_that_are_not_in_order_are_refused(tmp_path, text, message):
    stored, incoming, origins = tables()
    known = torch.from_numpy(origins).index_fill(0, torch.arange(1, 30), -1)
    path = tmp_path / "check.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        linkage.checked_answers(path, stored, incoming, known)


def test_answers_are_origins_by_id_as_known_pairs_are(tmp_path):
    stored, incoming, _ = tables()
    path = tmp_path / "check.csv"
    path.write_text("second;answer;id\n3;007;o2\n4;none;o0\n5;;o1\n6;007;o2\n")
    found = linkage.checked_answers(path, stored, incoming)
    assert found.tolist() == [STRANGER, -1, 7, *[-1] * 27]


def test_answers_of_several_files_count_together_and_must_not_contradict_each_other(tmp_path):
    stored, incoming, _ = tables()
    one, more, other = (tmp_path / f"{name}.csv" for name in ("one", "more", "other"))
    one.write_text("id,answer\no2,007\n")
    more.write_text("id;answer\no0;none\no2;007\n")
    other.write_text("id,answer\no2,008\n")
    assert linkage.checked_answers((one, more), stored, incoming).tolist() == [STRANGER, -1, 7, *[-1] * 27]
    with pytest.raises(ValueError, match=r"other\.csv answers 'o2' with both '007' and '008'"):
        linkage.checked_answers((one, other), stored, incoming)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("id,answer\na,\nb,x\nc, \nd,none\n", 2),
        ("id,answer\na,\n", 0),
        ("id,match\na,b\n", 0),
        ("id,answer\na\n", 0),
        ("", 0),
    ],
)
def test_the_answers_that_a_file_holds_are_counted_whatever_it_is(tmp_path, text, count):
    path = tmp_path / "check.csv"
    assert linkage.answers_in(path) == 0
    path.write_text(text)
    assert linkage.answers_in(path) == count


def test_checked_answers_judge_the_plain_alternatives_too_and_say_which_to_use(found):
    def told(found):
        return [text for word, text in linkage.lines(found) if word == "beside it"]

    assert "without known pairs or checked answers nobody can say" in told(found)[0]
    checked = found.indices.index_fill(0, torch.arange(20, 30), -1)
    after = linkage.answered(found, checked)
    assert told(after) == ["nearest by cosine 100 % of 20 checked answers", "nearest by cosine is as good here: use it"]
    few = linkage.answered(found, checked.index_fill(0, torch.arange(19, 30), -1))
    assert told(few)[1] == "too few checked answers to compare: 20 or more would tell"
    (one,) = after.alternatives
    for right, behind, words in (
        (18, 0, "nearest by cosine may be as good: 20 checked answers cannot tell"),
        (9, 1, "none of them is as good: they are right less often, by more than chance"),
        (20, -1, "nearest by cosine is better here, by more than chance: use it"),
    ):
        assert told(replace(after, alternatives=(replace(one, right=right, behind=behind),)))[1] == words


def test_pairs_that_are_enough_judge_the_alternatives_and_answers_do_where_they_are_not(found, taught):
    judged = taught.alternatives
    known = found.indices.index_fill(0, torch.arange(5, 30), -1)
    checked = found.indices.index_fill(0, torch.arange(5), -1)
    enough = replace(found, origins=known, alternatives=judged, judged=taught.judged)
    assert linkage.answered(enough, checked).alternatives == judged
    few = replace(enough, judged=replace(taught.judged, right=19, labels=19))
    assert [one.labels for one in linkage.answered(few, checked).alternatives] == [25]
