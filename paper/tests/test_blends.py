import json

import pytest
import torch
from typer.testing import CliRunner

from ahop_paper import blends
from ahop_paper.commands import app


def test_sets_of_orthogonal_patterns_come_back_whole_without_noise():
    patterns, generator = torch.eye(16), torch.Generator().manual_seed(0)
    for size in blends.SIZES:
        drawn = blends.draw(patterns, size, 0.0, 20, generator)
        assert bool((drawn.queries > 0).sum(1).eq(size).all())
        assert drawn.whole(drawn.queries > 0) == 1 and drawn.whole(drawn.queries > 9) == 0
        assert drawn.whole(blends._subset_at_rest(patterns, 3.0, drawn)) == 1
        assert drawn.whole(blends._support(patterns, 1.0, drawn)) == 1


@pytest.mark.slow
def test_the_command_prints_every_way_with_its_spread(tmp_path, monkeypatch):
    small = blends.Config(patterns=16, dim=16, samples=60, queries=20, runs=2)
    monkeypatch.setattr(blends, "quick", lambda config: small)
    out = tmp_path / "blends.json"
    result = CliRunner().invoke(app, ["blends", "--quick", "--out", str(out)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == 5 * len(blends.SIZES) and all(len(row["whole"]["runs"]) == 2 for row in rows)
    # Cells break where a terminal is narrow.
    assert all(word in result.output for row in rows for word in row["way"].split()) and "±" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [({"patterns": 3}, "patterns must be at least 4, got 3"), ({"runs": 0}, "runs must be at least 1, got 0")],
)
def test_what_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        blends.Config(**options)
