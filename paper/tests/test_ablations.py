import json

import pytest
import torch
from typer.testing import CliRunner

from ahop.similarity import Adaptive
from ahop_paper import ablations
from ahop_paper.commands import app


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(ablations, "DIFFICULTIES", (0.4,))
    monkeypatch.setattr(ablations, "quick", lambda config: ablations.Config(32, 12, 32, 100, 1, config.seed))


def invoke(*arguments):
    return CliRunner().invoke(app, ["ablations", *arguments], env={"COLUMNS": "160"})


@pytest.mark.slow
def test_the_four_ablations(little, tmp_path):
    out = tmp_path / "ablations.json"
    result = invoke("--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == len(ablations.CONDITIONS)
    found = {(row["study"], row["condition"]): row["accuracy"]["mean"] for row in rows}
    assert found["sorting and U", "both"] > found["sorting and U", "neither"]
    # The paper's figures are of another size.
    assert all(row["paper"] is None for row in rows)


@pytest.mark.slow
def test_a_network_of_several_lines_is_fitted_once(monkeypatch):
    fitted = []
    monkeypatch.setattr(ablations.AdaptiveHopfield, "fit", lambda self, *seen, solver: fitted.append(self) or self)
    monkeypatch.setattr(ablations.Config, "published", True)
    rows = ablations.run(ablations.Config(patterns=8, dim=4, samples=4, queries=5, runs=1))["rows"]
    assert len(fitted) == 2 * 11 and len(rows) == 2 * len(ablations.CONDITIONS)
    papers = {(row["study"], row["condition"], row["difficulty"]): row["paper"] for row in rows}
    assert papers["sorting and U", "neither", 0.4] == 0.5172 and papers["samples", "many", 0.5] == 0.36


def test_conditions_are_what_they_say():
    made = {(one.study, one.name): Adaptive(8, **one.network.options(8, 0)) for one in ablations.CONDITIONS}
    assert not made["sorting and U", "U alone"].sort and made["sorting and U", "sorted alone"].matrix == "identity"
    assert made["U", "learned from random"].learn_matrix and not made["U", "random"].learn_matrix
    assert torch.equal(made["U", "random"].matrix, made["U", "learned from random"].matrix)
    assert [base.name for base in made["bases", "dot"].bases] == ["dot"]


def test_the_paper_is_cited_where_the_size_is_its_own():
    assert ablations.Config().published
    assert not ablations.Config(samples=100).published
    with pytest.raises(ValueError, match="runs must be at least 1, got 0"):
        ablations.Config(runs=0)
