import re
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from ahop_paper.commands import app
from ahop_paper.commands.report import DOCUMENTS
from ahop_paper.pages import markdown, tables
from ahop_paper.pages.documents import filled

ROOT = Path(__file__).parents[3]
SCIENCE = (Path("docs/science/footprints.md"), Path("docs/science/likelihood.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_documents_say_what_the_results_say(document):
    text = (ROOT / document).read_text()
    assert text.count("<!-- table: ") == text.count("<!-- end of table -->") > 0
    assert filled(text, ROOT / "results") == text, "run: ahop-paper report"


def test_every_table_and_picture_of_the_results_is_shown_in_a_document():
    text = "".join((ROOT / document).read_text() for document in (*DOCUMENTS, *SCIENCE))
    assert sorted(re.findall("<!-- table: (.*) -->", text)) == sorted(tables.TABLES)
    for path in (ROOT / "results").glob("*.png"):
        assert f"/results/{path.name})" in text, path


PICTURES = sorted(
    {
        (page.parent / name).resolve().relative_to(ROOT)
        for page in (*ROOT.glob("docs/results/*.md"), *ROOT.glob("docs/science/*.md"))
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    }
)


@pytest.mark.parametrize("path", PICTURES, ids=str)
def test_a_picture_of_results_has_no_ground_of_its_own(path):
    if path.suffix != ".svg":
        with Image.open(ROOT / path) as image:
            assert image.convert("RGBA").getpixel((0, 0))[3] == 0


def test_every_page_of_results_is_kept_to_them():
    pages = {path.relative_to(ROOT) for path in ROOT.glob("docs/**/*.md") if "<!-- table: " in path.read_text()}
    assert pages == set(DOCUMENTS)


def test_a_table_is_made_anew(tmp_path):
    document = tmp_path / "README.md"
    document.write_text("before\n<!-- table: bags -->\nold\n<!-- end of table -->\nafter\n")
    asked = ["report", "--document", str(document), "--results", str(ROOT / "results")]
    assert "tables made again" in CliRunner().invoke(app, asked, env={"COLUMNS": "300"}).output
    text = document.read_text()
    assert "old" not in text and "| a-hop | .906" in text
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "says what the results say" in CliRunner().invoke(app, asked, env={"COLUMNS": "300"}).output


def test_what_cannot_be(tmp_path):
    with pytest.raises(ValueError, match=r"unknown table 'cats'; known: .*retrieval"):
        filled("<!-- table: cats -->\n<!-- end of table -->", tmp_path)
    with pytest.raises(ValueError, match=r"mil\.json cannot be read"):
        filled("<!-- table: bags -->\n<!-- end of table -->", tmp_path)
    for text, message in (("{}", "it has no rows"), ('{"rows": [{}], "quick": true}', "comes from a quick run")):
        (tmp_path / "mil.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            filled("<!-- table: bags -->\n<!-- end of table -->", tmp_path)
    with pytest.raises(ValueError, match=r"every marked table must have its end, .*; 1 of 2 have"):
        filled("<!-- table: bags -->\nprose\n<!-- table: bags -->\n<!-- end of table -->", tmp_path)
    (tmp_path / "mil.json").write_text("no report")
    with pytest.raises(ValueError, match=r"mil\.json is no report"):
        filled("<!-- table: bags -->\n<!-- end of table -->", tmp_path)


@pytest.mark.parametrize("name", tables.TABLES)
def test_every_line_of_a_table_has_its_cells(name):
    lines = tables.made(name, ROOT / "results").splitlines()
    assert len(lines) > 2 and lines[1].startswith("|---")
    assert len({line.count("|") for line in lines}) == 1


def test_numbers():
    assert [markdown.figure(value) for value in (0.5, 1.0, -0.25, 12.3456)] == [".500", "1.000", "-.250", "12.346"]
    assert [markdown.plain(value) for value in (3.97, 37.3)] == ["4.0", "37"]
    figures = {"mean": 0.5, "std": 0.1, "runs": [0.4, 0.6]}
    assert markdown.with_spread(figures, 0.7) == ".500 ± .100 (.700)"
    assert markdown.with_spread({"mean": 0.5, "std": 0.0, "runs": [0.5]}) == ".500"
    assert markdown.with_spread(figures, 0.7, digits=1) == ".5 ± .1 (.7)"
    assert [markdown.short(value) for value in (1, 0.35549, 1.225, 840)] == ["1", ".3555", "1.225", "840"]


@pytest.mark.parametrize("path", sorted((ROOT / "results").glob("*.json")), ids=lambda path: path.stem)
def test_every_report_says_where_it_comes_from(path):
    report = markdown.read(path.parent, path.stem)
    assert {"ahop", "torch", "python"} <= report["versions"].keys()
    assert report["experiment"]
    # Of the whole run, or of each of its parts.
    assert "seed" in report["config"] or all("seed" in part for part in report["done"])
    assert all(sitting["machine"] for sitting in report["sittings"]) and report["sittings"]
