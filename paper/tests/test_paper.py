import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from ahop_paper import claims, mil, paper, parts, plots, provenance, real, retrieval
from ahop_paper.commands import app
from ahop_paper.parallel import TimeUp
from ahop_paper.parts import Part, Run


def invoke(*arguments):
    return CliRunner().invoke(app, ["paper", *arguments], env={"COLUMNS": "300"})


@pytest.mark.slow
def test_small_parts_are_made_once(tmp_path):
    asked = ("--folder", str(tmp_path), "--only", "claims.json,clouds.png")
    first = invoke(*asked)
    assert first.exit_code == 0, first.output
    assert first.output.count(": made") == 2
    assert (tmp_path / "clouds.png").stat().st_size > 10_000
    assert invoke(*asked).output.count(": there already") == 2


def test_what_has_no_data_is_skipped_and_the_rest_goes_on(tmp_path, monkeypatch):
    def missing(run, out, until):
        raise FileNotFoundError("nowhere to be found")

    others = Part("other.json", "others", claims, lambda run, out, until: out.write_text("{}"))
    some = (Part("mil.json", "bags", mil, missing), others)
    monkeypatch.setattr(parts, "PARTS", some)
    result = invoke("--folder", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "mil.json, bags: skipped: nowhere to be found" in result.output
    assert "other.json, others: made" in result.output


def test_a_quick_report_is_not_taken_for_a_full_one(tmp_path):
    (tmp_path / "claims.json").write_text('{"quick": true}')
    result = invoke("--folder", str(tmp_path), "--only", "claims.json", "--full")
    assert result.exit_code == 2
    assert "comes from a quick run; choose another folder" in result.output


@pytest.mark.slow
def test_settings_and_a_picture_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "TWELVE", parts.TWELVE[:1])
    part = Part("settings.json", "settings", retrieval, parts._twelve(512), draw=plots.accuracy)
    assert paper.make(part, Run(tmp_path)) == "made"
    report = json.loads((tmp_path / part.file).read_text())
    assert {row["setting"] for row in report["rows"]} == {"mask 0.5"}
    assert report["quick"] and report["config"]["patterns"] == 32
    picture = tmp_path / "settings.png"
    picture.unlink()
    assert paper.make(part, Run(tmp_path)) == "there already"
    assert picture.exists()


def test_time_is_up_between_pieces_and_the_next_call_goes_on(tmp_path, monkeypatch):
    """Of a part that can be resumed a piece a call is done; one that cannot be is not begun too late."""
    now = 0.0
    monkeypatch.setattr(paper, "time", SimpleNamespace(monotonic=lambda: now))
    pieces = []

    def resumable(run, out, until):
        assert until == 480
        for piece in [piece for piece in "abc" if piece not in pieces]:
            pieces.append(piece)
            out.write_text(json.dumps({"done": []}))
            raise TimeUp

    part = Part("some.json", "some", claims, resumable, minutes=2, resumable=True)
    run = Run(tmp_path, full=True, end=600)
    assert [paper.make(part, run) for _ in range(3)] == [paper.LEFT] * 3
    assert paper.make(part, run) == "there already"
    whole = Part("whole.json", "whole", claims, lambda run, out, until: out.write_text("{}"), minutes=8)
    now = 121.0
    assert paper.make(whole, run) == paper.LEFT and not (tmp_path / "whole.json").exists()
    now = 119.0
    assert paper.make(whole, run) == "made"


def test_a_call_that_leaves_something_says_so(tmp_path, monkeypatch):
    part = Part("some.json", "some", claims, lambda *_: pytest.fail("begun too late"), minutes=3)
    monkeypatch.setattr(parts, "PARTS", (part,))
    monkeypatch.setattr(paper, "time", SimpleNamespace(monotonic=lambda: math.inf))
    result = invoke("--folder", str(tmp_path), "--minutes", "5", "--full")
    assert result.exit_code == 1
    assert "some.json, some: left for the next call" in result.output and "the same command goes on" in result.output
    result = invoke("--folder", str(tmp_path), "--minutes", "2", "--full")
    assert "minutes must be at least 3, as some.json takes; got 2" in result.output and result.exit_code == 2


def test_what_other_code_made_is_refused_by_name_before_the_work(tmp_path, monkeypatch):
    def write(code, **more):
        sitting = {"machine": "m", "code": code}
        (tmp_path / "claims.json").write_text(json.dumps({"sittings": [sitting], "rows": [], **more}))

    asked = ("--folder", str(tmp_path), "--only", "claims.json")
    monkeypatch.setattr(claims, "run", lambda: pytest.fail("the work has begun"))
    write("other")
    before = (tmp_path / "claims.json").read_text()
    result = invoke(*asked)
    assert result.exit_code == 2
    assert "has claims.json, made by code other than that of commit" in result.output
    assert "delete them to make them again" in result.output
    assert (tmp_path / "claims.json").read_text() == before
    assert (
        "claims.json, theorems and lemmas, 1 min: commit not recorded, by other code" in invoke(*asked, "--list").output
    )
    write(provenance.fingerprint(claims.__file__))
    assert "claims.json, theorems and lemmas: there already" in invoke(*asked).output


def test_the_list_says_which_rows_are_by_other_code(tmp_path):
    asked = ("--folder", str(tmp_path), "--only", "real.json", "--list")
    one = {"data": "tablets", "model": "ridge", "split": 0, "sitting": 0}
    own = {**one, "code": real.code_of({}, one)}

    def told(*done):
        sitting = {"machine": "m", "code": "of another time"}
        (tmp_path / "real.json").write_text(json.dumps({"sittings": [sitting], "config": {}, "rows": [], "done": done}))
        return invoke(*asked).output.splitlines()[0].partition("recorded")[2]

    assert told(own) == ""
    assert told(own, {**own, "split": 1, "code": "other"}) == ", 1 of 2 parts by other code"
    assert told({**own, "model": "gone"}) == ", by other code"
    assert told(own, one) == ", 1 of 2 parts by other code (made before rows had fingerprints)"


RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize(
    "part", [part for part in parts.PARTS if hasattr(part.code, "code_of")], ids=lambda one: one.file
)
def test_every_row_of_every_result_has_code(part):
    """And another than the rows of other models."""
    path = RESULTS / part.file
    if not path.exists():
        pytest.skip("it is not kept")
    made = json.loads(path.read_text())
    models = {one["model"]: one for one in made["done"]}
    found = {name: part.code.code_of(made["config"], one) for name, one in models.items()}
    assert all(re.fullmatch("[0-9a-f]{16}", code) for code in found.values())
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "table9.json"), "only must name files of claims.json"),
        (("--workers", "0"), "workers must be at least 1"),
        (("--device", "abacus"), "device must be one that PyTorch can use here"),
    ],
)
def test_what_cannot_be(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.output
