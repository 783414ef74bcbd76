import json

import pytest
import torch
from typer.testing import CliRunner

from ahop import datasets
from ahop._registry import Registry
from ahop.datasets import Measured
from ahop.memories import AssociativeMemory
from ahop.paper import plots, real
from ahop.paper.commands import app
from ahop.paper.pages import tables
from ahop.similarity import Correlated, Distance, Likelihood, Regimes


def small(name):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(40, 12, generator=generator)
    origins = torch.arange(40).repeat(4)
    causes = 2 * torch.randn(160, 1, generator=generator)
    queries = patterns[origins] + causes + 0.2 * torch.randn(160, 12, generator=generator)
    return Measured(patterns, queries, origins, origins % 2 == 0)


def test_the_table_of_real_variants(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", small)
    result = CliRunner().invoke(app, ["real", "--data", "gas", "--out", str(tmp_path / "real.json")])
    assert result.exit_code == 0, result.output
    rows = {row["model"]: row for row in json.loads((tmp_path / "real.json").read_text())["rows"]}
    assert set(rows) == set(real.MODELS)
    assert rows["b-hop"]["accuracy"] > rows["distance"]["accuracy"]
    assert rows["whitening"]["accuracy"] > rows["distance"]["accuracy"]
    assert "shifted by" in rows["b-hop"]["learned"]
    assert "gas: learning without labels" in result.output


def test_a_set_and_a_model_join_by_registering_themselves(monkeypatch, tmp_path):
    """In the experiment, in its options, in the terminal and on the page, with nothing else edited."""
    sets, models = Registry("data set"), Registry("model")
    monkeypatch.setattr("ahop.datasets.base.ENTRIES", sets)
    monkeypatch.setattr(datasets, "ENTRIES", sets)
    monkeypatch.setattr(real, "MODELS", models)
    monkeypatch.setattr(tables, "MEASURED", models)

    @datasets.register("smoke", about="made up", title="Smoke")
    def smoke() -> Measured:
        return small("smoke")

    @real.model("first", learns=real.NOTHING)
    def first(data, samples, seed):
        return AssociativeMemory(data.patterns, "dot", "argmax")

    assert real.Config() == real.Config(data=("smoke",), models=("first",))
    grid = tables.real(real.run(real.Config()))
    assert grid.head == ["", "learns from", "Smoke"]
    assert grid.lines[0][:2] == ["first", "nothing"]
    with pytest.raises(ValueError, match="unknown model 'b-hop'; known: first"):
        real.Config(models=("b-hop",))
    with pytest.raises(ValueError, match="data set 'smoke' is known already"):
        datasets.register("smoke", about="again")(smoke)
    with pytest.raises(TypeError, match="data set 'mute' must say what it returns"):
        datasets.register("mute", about="of no kind")(lambda: small("mute"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--data", "smoke"], "unknown data set 'smoke'"), (["--models", "guess"], "unknown model 'guess'")],
)
def test_unknown_names(arguments, message):
    result = CliRunner().invoke(app, ["real", *arguments])
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("similarity", [Likelihood(8, 2), Regimes([Likelihood(8), Likelihood(8)]), Correlated(8, 2)])
def test_what_was_learned_can_be_drawn(similarity, tmp_path):
    plots.corruption(similarity, tmp_path / "learned.png")
    assert (tmp_path / "learned.png").stat().st_size > 5000


def test_only_what_was_learned_can_be_drawn(tmp_path):
    with pytest.raises(TypeError, match=r"similarity must be a likelihood \(a Density\), got Distance"):
        plots.corruption(Distance(), tmp_path / "learned.png")
