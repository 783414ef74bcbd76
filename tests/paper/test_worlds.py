import json

import pytest
from typer.testing import CliRunner

from ahop.paper import worlds
from ahop.paper.commands import app


def test_every_world_is_drawn_and_scored(tmp_path):
    out = tmp_path / "worlds.json"
    small = ["--patterns", "16", "--samples", "24", "--queries", "30", "--runs", "1", "--models", "b-hop"]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["worlds", *small, "--out", str(out)])
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert {row["world"] for row in rows} == set(worlds.WORLDS)
    assert all(row["fraction_of_oracle"]["mean"] == 1 for row in rows if row["model"] == "oracle")
    assert all("rejection_auroc" in row for row in rows if row["model"] == "b-hop")


def test_counts_that_cannot_be_are_refused():
    result = CliRunner().invoke(app, ["worlds", "--runs", "0"])
    assert result.exit_code == 2
    assert "runs must be at least 1, got 0" in result.output


def test_unknown_worlds_are_refused():
    with pytest.raises(ValueError, match=r"unknown world 'nowhere'; known: published 0.4"):
        worlds.Config(worlds=("nowhere",))
