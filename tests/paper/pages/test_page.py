import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ahop.paper.commands import app
from ahop.paper.pages import page, tables

RESULTS = Path(__file__).parents[3] / "results"


class Tags(HTMLParser):
    """Checks that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(tmp_path):
    out = tmp_path / "report.html"
    readme = tmp_path / "README.md"
    readme.write_text("nothing to fill in")
    asked = ["report", "--results", str(RESULTS), "--document", str(readme), "--page", str(out)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    text = out.read_text()
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert tags.seen.count("table") == sum(len(section.tables) for section in page.SECTIONS)
    assert tags.seen.count("img") == sum(len(section.pictures) for section in page.SECTIONS)
    assert not re.search(r'(src|href)="(?!data:)', text)
    assert readme.read_text() == "nothing to fill in"


def test_marks_become_tags():
    table = page._table("| | a |\n|---|---|\n| **b-hop, no labels** (`b-hop*`) | 1 < 2 |", "Of what?")
    assert "<caption>Of what?</caption>" in table and "words" not in table
    assert '<table class="words">' in page._table(f"| |\n|---|\n| {'word ' * 20} |", "Of what?")
    assert "<td><b>b-hop, no labels</b> (<code>b-hop*</code>)</td><td>1 &lt; 2</td>" in table
    assert page._inline("b-hop*") == "b-hop*"
    assert page._inline("a**<b>") == "a**&lt;b&gt;"


def test_every_table_is_on_the_page():
    assert {name for section in page.SECTIONS for name in section.tables} == set(tables.TABLES)


def test_a_missing_picture(tmp_path):
    with pytest.raises(ValueError, match=r"clouds\.png cannot be read; it is needed for the report"):
        page.page(tmp_path)
