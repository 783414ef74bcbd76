import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from ahop.variants import Mixed
from ahop.variants.mixed import PRESETS
from ahop_paper import generators, retrieval
from ahop_paper.commands import app
from ahop_paper.spread import spread


@pytest.mark.slow
def test_every_preset_stands_beside_the_paper(tmp_path, monkeypatch):
    monkeypatch.setattr(generators, "quick", lambda config: generators.Config(patterns=32, queries=20, runs=2))
    out = tmp_path / "generators.json"
    result = CliRunner().invoke(app, ["generators", "--quick", "--out", str(out)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == len(PRESETS) * 2 * len(generators.MODELS)
    for row in rows:
        papers = (row["accuracy"]["paper"], row["error"]["paper"])
        assert papers == retrieval.PAPER["synthetic", row["level"]][row["model"]]
    assert all(preset in result.output for preset in PRESETS)


@pytest.mark.slow
def test_what_was_done_is_not_done_again(tmp_path, monkeypatch):
    out = tmp_path / "generators.json"
    small = generators.Config(patterns=32, queries=20, runs=2)
    whole = generators.run(small)["rows"]
    generators.run(replace(small, presets=("std",)), out)
    drawn = []
    monkeypatch.setattr(
        generators, "Mixed", lambda *a, preset, **b: drawn.append(preset) or Mixed(*a, preset=preset, **b)
    )
    assert generators.run(small, out)["rows"] == whole
    assert "std" not in drawn and len(drawn) == 2 * 2 * (len(PRESETS) - 1)


@given(paper=st.floats(0, 1), own=st.floats(0.001, 0.1), deviation=st.floats(0.01, 0.1), off=st.floats(-20, 20))
def test_a_mean_that_is_so_many_standard_errors_off_is_said_to_be(paper, own, deviation, off):
    error = math.sqrt(own**2 / 9 + deviation**2 / 5)
    ours = {"mean": paper + off * error, "std": own, "runs": [0.0] * 9}
    assert generators.standard_errors(ours, paper, deviation) == pytest.approx(off, abs=0.06)


def test_a_spread_that_the_paper_rounds_to_nothing_is_no_certainty():
    ours = spread([0.5, 0.5])
    assert generators.standard_errors(ours, 0.4, 0.0) == generators.standard_errors(ours, 0.4, generators.LEAST_SPREAD)


@pytest.mark.slow
def test_networks_that_learn_nothing_have_the_papers_figures_with_the_calibrated_preset():
    """And not with the others, which is what the words in the documents are about."""
    rows = generators.run(generators.Config(runs=5))["rows"]
    off = {
        preset: [abs(row["accuracy"]["standard_errors"]) for row in rows if row["preset"] == preset]
        for preset in PRESETS
    }
    assert max(off["calibrated"]) < 2
    assert all(max(off[preset]) > 2 for preset in PRESETS if preset != "calibrated")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"presets": ()}, "presets must name at least one, got none"),
        ({"presets": ("paper",)}, "presets must be one of 'published', .*, got 'paper'"),
        ({"data": "cats"}, "data must be one of 'synthetic', 'mnist', got 'cats'"),
        ({"runs": 1}, "runs must be at least 2, got 1"),
        ({"queries": 0}, "queries must be at least 1, got 0"),
    ],
)
def test_what_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        generators.Config(**options)
