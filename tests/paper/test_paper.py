import json

import pytest
from typer.testing import CliRunner

from ahop.paper import paper
from ahop.paper.commands import app
from ahop.paper.paper import Part


def invoke(*arguments):
    return CliRunner().invoke(app, ["paper", *arguments], env={"COLUMNS": "300"})


def test_small_parts_are_made_once(tmp_path):
    asked = ("--folder", str(tmp_path), "--only", "claims.json,clouds.png")
    first = invoke(*asked)
    assert first.exit_code == 0, first.output
    assert first.output.count(": made") == 2
    assert (tmp_path / "clouds.png").stat().st_size > 10_000
    assert invoke(*asked).output.count(": there already") == 2


def test_what_has_no_data_is_skipped_and_the_rest_goes_on(tmp_path, monkeypatch):
    def missing(run, out):
        raise FileNotFoundError("nowhere to be found")

    parts = (Part("mil.json", "bags", missing), Part("other.json", "others", lambda run, out: out.write_text("{}")))
    monkeypatch.setattr(paper, "PARTS", parts)
    result = invoke("--folder", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "mil.json, bags: skipped: nowhere to be found" in result.output
    assert "other.json, others: made" in result.output


def test_a_quick_report_is_not_taken_for_a_full_one(tmp_path):
    (tmp_path / "claims.json").write_text('{"quick": true}')
    result = invoke("--folder", str(tmp_path), "--only", "claims.json", "--full")
    assert result.exit_code == 2
    assert "comes from a quick run; choose another folder" in result.output


def test_settings_and_a_picture_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "TWELVE", paper.TWELVE[:1])
    part = Part("settings.json", "settings", paper._twelve(512), draw=paper.plots.accuracy)
    assert paper.make(part, paper.Run(tmp_path)) == "made"
    report = json.loads((tmp_path / part.file).read_text())
    assert {row["setting"] for row in report["rows"]} == {"mask 0.5"}
    assert report["quick"] and report["config"]["patterns"] == 32
    picture = tmp_path / "settings.png"
    picture.unlink()
    assert paper.make(part, paper.Run(tmp_path)) == "there already"
    assert picture.exists()


def test_the_parts_are_all_there():
    assert len({part.file for part in paper.PARTS}) == len(paper.PARTS)
    assert len(set(paper.TWELVE)) == 12
    shown = " ".join(part.shows for part in paper.PARTS)
    for what in ("Figure 1", "main figure", "retrieval figure", "Table 2", "Table 3", "Table 4", "ablations", "timing"):
        assert what in shown


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
