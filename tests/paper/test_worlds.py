import json

import pytest
from typer.testing import CliRunner

from ahop._registry import Registry
from ahop.memories import AssociativeMemory, Oracle
from ahop.paper import retrieval, worlds
from ahop.paper.commands import app
from ahop.paper.pages import tables
from ahop.paper.pages.markdown import Grid
from ahop.variants import Noisy


def test_every_world_is_drawn_and_scored(tmp_path):
    out = tmp_path / "worlds.json"
    small = ["--patterns", "16", "--samples", "24", "--queries", "30", "--runs", "1", "--models", "m-hop"]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["worlds", *small, "--out", str(out)])
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert {row["world"] for row in rows} == set(worlds.WORLDS)
    assert all(row["fraction_of_oracle"]["mean"] == 1 for row in rows if row["model"] == "oracle")


def test_a_likelihood_tells_strangers():
    config = worlds.Config(("bias 1",), ("b-hop",), patterns=16, dim=8, samples=24, queries=30, runs=1)
    learned, _ = worlds.run(config)["rows"]
    assert learned["rejection_auroc"]["mean"] > 0.5


def test_a_world_and_a_model_join_by_registering_themselves(monkeypatch):
    monkeypatch.setattr(worlds, "WORLDS", Registry("world"))
    monkeypatch.setattr(retrieval, "MODELS", models := Registry("model"))

    @worlds.WORLDS.register("still")
    def still(dim, seed):
        return Noisy(1e-3, seed=seed)

    @retrieval.model("nearest", "the nearest pattern", ours=True)
    def nearest(patterns, seen, world, seed):
        return AssociativeMemory(patterns, "distance", "argmax")

    models["oracle"] = retrieval.Model(lambda patterns, seen, world, seed: Oracle(patterns, world), "Oracle", False)
    config = worlds.Config(models=retrieval.Config().models, patterns=4, dim=3, samples=4, queries=5, runs=1)
    assert (config.worlds, config.models) == (("still",), ("nearest",))
    assert tables.worlds(worlds.run(config)) == Grid(["world", "the nearest pattern"], [["still", "1.000"]])


def test_counts_that_cannot_be_are_refused():
    result = CliRunner().invoke(app, ["worlds", "--runs", "0"])
    assert result.exit_code == 2
    assert "runs must be at least 1, got 0" in result.output


def test_unknown_worlds_are_refused():
    with pytest.raises(ValueError, match=r"unknown world 'nowhere'; known: 'published 0.4'"):
        worlds.Config(worlds=("nowhere",))
