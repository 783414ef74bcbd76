import csv
import os
import pty
import re
import shutil
import subprocess
import sys

import pytest
from tests.linkage.data import drawn
from typer.testing import CliRunner

from ahop import linkage
from ahop.cli import app
from ahop.tables import Table, write

STORED, INCOMING, ORIGINS = drawn()
WANTED = [f"{row:03}" for row in ORIGINS]


def said(*arguments):
    result = CliRunner().invoke(app, ["match", *map(str, arguments)])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of files, and a model of what was learned from them by the command itself."""
    folder = tmp_path_factory.mktemp("match")
    write(STORED, folder / "stored.parquet")
    write(INCOMING, folder / "incoming.csv")
    write({"order": INCOMING["order"], "sku": WANTED}, folder / "known.csv")
    code, text = said(
        *(folder / "stored.parquet", folder / "incoming.csv", "--pairs", folder / "known.csv"),
        *("--out", folder / "first.csv", "--save", folder / "model", "--require", "0.85"),
    )
    (folder / "said.txt").write_text(text)
    assert code == 0, text
    return folder


def read(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_it_says_what_was_read_what_happened_how_right_it_is_and_what_else_would_do(folder):
    lines = (folder / "said.txt").read_text().splitlines()
    words = [line[:13].strip() for line in lines]
    for word in ("stored", "incoming", "known pairs", "what happened", "how right", "rests on", "beside it", "verdict"):
        assert word in words
    assert len(lines) <= 20 and "30 known pairs, held out while learning" in "".join(lines)
    assert lines[-1].startswith("verdict        PASS: ")


def test_matches_are_written_by_id(folder):
    rows = read(folder / "first.csv")
    assert list(rows[0]) == ["id", "match", "probability", "second", "second_probability", "verified", "reason"]
    assert [row["match"] for row in rows] == WANTED and {row["reason"] for row in rows} == {"known pair"}


def test_a_model_matches_the_next_batch_and_checked_answers_decide(folder, tmp_path):
    model = (folder / "incoming.csv", "--model", folder / "model")
    out = tmp_path / "next.csv"
    code, text = said(*model, "--out", out, "--ask", "20")
    assert code == 0 and f"{tmp_path / 'next-check.csv'} (rows to check)" in text
    assert "20 rows of " in (tmp_path / "next-check.html").read_text()
    rows = read(tmp_path / "next-check.csv")
    truth = dict(zip(INCOMING["order"], WANTED, strict=True))
    write({"id": [row["id"] for row in rows], "answer": [truth[row["id"]] for row in rows]}, tmp_path / "checked.csv")
    code, text = said(*model, "--out", out, "--answers", tmp_path / "checked.csv", "--require", "0.85")
    assert code == 0 and "rests on       20 checked answers" in text
    code, text = said(*model, "--out", out, "--answers", tmp_path / "checked.csv", "--require", "0.99")
    assert code == 3 and "WARN: 100 % of 20 first choices were right" in text
    assert [row["match"] for row in read(out)] == WANTED


def test_whoever_sends_decimal_commas_gets_them_back_and_their_answers_are_read(folder, tmp_path):
    write(INCOMING, tmp_path / "incoming.csv", decimal=",")
    model = (tmp_path / "incoming.csv", "--model", folder / "model")
    assert said(*model, "--out", tmp_path / "m.csv", "--ask", "20")[0] == 0
    head, row, *_ = (tmp_path / "m.csv").read_text().splitlines()
    assert head.startswith("id;match;probability;") and row.startswith(f"o0;{WANTED[0]};") and "." not in row
    head, *rows = (tmp_path / "m-check.csv").read_text().splitlines()
    truth = dict(zip(INCOMING["order"], WANTED, strict=True))
    filled = [row + truth[row.split(";")[0]] for row in rows]
    (tmp_path / "done.csv").write_text("\n".join([head, *filled]))
    code, text = said(*model, "--out", tmp_path / "m.csv", "--answers", tmp_path / "done.csv")
    assert code == 0 and "rests on       20 checked answers" in text


def test_a_batch_of_one_row_is_matched_by_what_the_model_compares_though_it_looks_like_ids(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    page = tmp_path / "model" / "linkage.json"
    page.write_text(page.read_text().replace('"x0"', '"number"'))
    names, row = ["number", "x1", "x2", "x3", "x4"], Table.of(STORED).values[ORIGINS[0]] + 1
    row[0] = round(row[0])
    write(dict(zip(names, row[:, None].tolist(), strict=True)), tmp_path / "one.csv")
    code, text = said(tmp_path / "one.csv", "--model", tmp_path / "model", "--out", tmp_path / "out.csv")
    assert code == 0 and "1 row, 5 columns of numbers; ids: row numbers, from 0" in text
    assert [row["match"] for row in read(tmp_path / "out.csv")] == WANTED[:1]


@pytest.fixture
def answers(folder, tmp_path):
    """Rows of the next batch that somebody has checked, in the file that --ask writes them to."""
    write({"id": INCOMING["order"][:20], "answer": WANTED[:20]}, tmp_path / "out-check.csv")
    return tmp_path / "out-check.csv"


def test_answers_that_somebody_gave_are_never_written_over(folder, answers):
    model, out = (folder / "incoming.csv", "--model", folder / "model"), answers.with_name("out.csv")
    before = answers.read_bytes()
    for more in (("--answers", answers), ()):
        code, text = said(*model, "--out", out, "--ask", "5", *more)
        assert code == 2 and answers.read_bytes() == before and not out.exists()
        assert f"error: --ask would write over {answers}, in which somebody has given 20 answers" in text
    assert said(*model, "--out", answers, "--answers", answers)[0] == 2 and answers.read_bytes() == before


def test_rows_that_were_answered_are_not_asked_again(folder, answers):
    model, out = (folder / "incoming.csv", "--model", folder / "model"), answers.with_name("more.csv")
    code, _ = said(*model, "--out", out, "--answers", answers, "--ask", "10")
    asked = {row["id"] for row in read(answers.with_name("more-check.csv"))}
    assert code == 0 and asked == set(INCOMING["order"][20:])
    assert [row["reason"] for row in read(out)] == [*["checked answer"] * 20, *[""] * 10]
    write({"id": INCOMING["order"][20:], "answer": WANTED[20:]}, answers.with_name("done.csv"))
    both = ("--answers", answers, "--answers", answers.with_name("done.csv"))
    code, text = said(*model, "--out", out, *both)
    assert code == 0 and "rests on       30 checked answers" in text


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_what_is_read_is_never_written_over(folder, tmp_path, option):
    before = (folder / "incoming.csv").read_bytes()
    written = {"--out": tmp_path / "out.csv", option: folder / ".." / folder.name / "incoming.csv"}
    code, text = said(folder / "incoming.csv", "--model", folder / "model", *sum(written.items(), ()))
    assert code == 2 and f"error: {option} would write over {written[option]}, which" in text
    assert (folder / "incoming.csv").read_bytes() == before


def test_a_bad_file_of_answers_costs_no_work(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(linkage, "link", lambda *given, **options: pytest.fail("it has begun to work"))
    (tmp_path / "checked.csv").write_text("id,answer\nx,007\n")
    told = said(
        *(folder / "incoming.csv", "--model", folder / "model"),
        *("--out", tmp_path / "out.csv", "--answers", tmp_path / "checked.csv"),
    )
    assert told[0] == 2 and "names ids that" in told[1]


@pytest.mark.parametrize("count", ["0", "11"])
def test_more_rows_to_check_than_nobody_knows_cost_no_work(folder, answers, monkeypatch, count):
    monkeypatch.setattr(linkage, "link", lambda *given, **options: pytest.fail("it has begun to work"))
    told = said(
        *(folder / "incoming.csv", "--model", folder / "model", "--answers", answers),
        *("--out", answers.with_name("more.csv"), "--ask", count),
    )
    assert told[0] == 2 and f"error: --ask must be 1 to 10, as many rows as nobody knows; got {count}" in told[1]


def test_parquet_goes_out_as_it_comes_in(folder, tmp_path):
    assert said(folder / "incoming.csv", "--model", folder / "model", "--out", tmp_path / "out.parquet")[0] == 0
    from pyarrow import parquet

    assert parquet.read_table(tmp_path / "out.parquet")["match"].to_pylist() == WANTED


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("stored.parquet", "incoming.csv", "--out", "nowhere/out.csv"), "nowhere/out.csv cannot be written"),
        (("stored.parquet", "incoming.csv", "--out", "out.doc"), "out.doc must end in .csv or .parquet"),
        (("stored.parquet", "--out", "out.csv"), "files must be two, STORED and INCOMING; got"),
        (("stored.parquet", "incoming.csv", "--model", "model", "--out", "out.csv"), "files must be INCOMING alone"),
        (("stored.parquet", "nothing.csv", "--out", "out.csv"), "nothing.csv does not exist"),
        (("stored.parquet", "incoming.csv", "--id", "ean", "--out", "out.csv"), "has no column 'ean' for the ids"),
        (("stored.parquet", "incoming.csv", "--id", "sku", "--out", "out.csv"), "--incoming-id names another"),
        (("stored.parquet", "incoming.csv", "--require", "95", "--out", "out.csv"), "--require must be a number in 0"),
        (("stored.parquet", "incoming.csv", "--pairs", "none.csv", "--out", "out.csv"), "none.csv does not exist"),
        (("stored.parquet", "incoming.csv", "--save", "nowhere/model", "--out", "out.csv"), "nowhere' does not exist"),
        (("stored.parquet", "incoming.csv", "--save", "known.csv", "--out", "out.csv"), "known.csv is a file, and"),
        (("stored.parquet", "incoming.csv", "--out", "."), "error: . must end in .csv or .parquet"),
        (("stored.parquet", "incoming.csv", "--report", "r.txt", "--out", "out.csv"), "--report must end in .html"),
        (("stored.parquet", "incoming.csv", "--report", ".", "--out", "out.csv"), "--report must end in .html; got ."),
        (("incoming.csv", "--model", "nowhere", "--out", "out.csv"), "holds no model of ahop match"),
        (("incoming.csv", "--model", "model", "--ask", "31", "--out", "out.csv"), "--ask must be 1 to 30, as many"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_leaves_nothing(folder, monkeypatch, arguments, told):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    code, text = said(*arguments)
    (line,) = [line for line in text.splitlines() if line.startswith("error: ")]
    assert code == 2 and told in line
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
def test_it_can_be_read_in_a_terminal_and_in_a_log(folder, tmp_path):
    command = [sys.executable, "-m", "ahop", "match", str(folder / "incoming.csv"), "--model", str(folder / "model")]
    command += ["--out", str(tmp_path / "out.csv")]
    ours, theirs = pty.openpty()
    shown = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    running = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=shown)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 4096):
            text += part
    except OSError:
        pass  # So ends a terminal whose other side is closed.
    os.close(ours)
    assert running.wait() == 0 and (tmp_path / "out.csv").exists()
    lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text.decode()).splitlines()
    assert max(map(len, lines)) <= 80 and any(line.startswith("how right") for line in lines)
    log = "\n".join(said(folder / "incoming.csv", "--model", folder / "model", "--out", tmp_path / "out.csv")[1:])
    assert "\x1b" not in log and "how right      " in log


def test_frames_are_matched_in_python_as_files_are(folder):
    model = linkage.Model.load(folder / "model")
    assert linkage.link(model, Table.of(INCOMING)).table()["match"] == WANTED


def test_no_file_is_written_over_another_nor_over_answers(tmp_path):
    files = tmp_path / "stored.csv", tmp_path / "incoming.csv"
    for table, path in zip((STORED, INCOMING), files, strict=True):
        write(table, path)
    answers, given = tmp_path / "m-check.csv", "id,answer\no1,3\n"
    answers.write_text(given)
    code, text = said(*files, "--out", answers)
    assert code == 2 and "--out would write over" in text and answers.read_text() == given
    code, text = said(*files, "--out", tmp_path / "n.csv", "--ask", 3, "--report", tmp_path / "n-check.html")
    assert code == 2 and "the page of --ask" in text and not (tmp_path / "n.csv").exists()


@pytest.mark.parametrize(
    ("one", "other", "place"),
    [
        ("--report", "--out", "m.csv"),
        ("--save", "--out", "m.csv"),
        ("--report", "--ask", "m-check.csv"),
        ("--save", "--ask", "m-check.csv"),
        ("--report", "the page of --ask", "m-check.html"),
        ("--save", "the page of --ask", "m-check.html"),
        ("--save", "--report", "r.html"),
    ],
)
def test_no_two_things_are_written_to_one_place(folder, tmp_path, monkeypatch, one, other, place):
    monkeypatch.setattr(linkage, "link", lambda *given, **options: pytest.fail("it has begun to work"))
    (tmp_path / "same").symlink_to(tmp_path)
    written = {"--out": tmp_path / "m.csv", "--ask": 3, "--report": tmp_path / "r.html", "--save": tmp_path / "model"}
    written[one] = tmp_path / "same" / place
    code, text = said(folder / "incoming.csv", "--model", folder / "model", *sum(written.items(), ()))
    assert code == 2 and f"error: {one} would write over {other}, since both are {written[one]}" in text
    assert [path.name for path in tmp_path.iterdir()] == ["same"]
