import json

import pytest
import torch
from typer.testing import CliRunner

from ahop._registry import Registry
from ahop.memories import AssociativeMemory, Oracle
from ahop.paper import retrieval, worlds
from ahop.paper.commands import app
from ahop.paper.pages import tables
from ahop.paper.pages.markdown import Grid
from ahop.paper.report import spread
from ahop.paper.simple import Simple
from ahop.variants import Noisy


def test_every_world_is_drawn_and_scored(tmp_path):
    out = tmp_path / "worlds.json"
    small = ["--patterns", "16", "--samples", "24", "--queries", "30", "--runs", "1", "--models", "m-hop"]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["worlds", *small, "--out", str(out)])
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert {row["world"] for row in rows} == set(worlds.group(untuned=False))
    assert len(worlds.group(untuned=False)) == 14
    assert all(row["fraction_of_oracle"]["mean"] == 1 for row in rows if row["model"] == "oracle")


def test_every_world_that_nobody_tuned_on_is_drawn_and_scored():
    config = worlds.Config(
        worlds.group(untuned=True), ("L1", "centred cosine", "m-hop"), patterns=70, samples=60, queries=100, runs=1
    )
    report = worlds.run(config)
    found = {(row["world"], row["model"]): row["first_choice"]["mean"] for row in report["rows"]}
    for name in config.worlds:
        assert found[name, "oracle"] >= max(found[name, model] for model in config.models) - 0.05
    assert {line[0] for line in tables.TABLES["worlds-untuned"].make(report).lines} == set(config.worlds)


def test_patterns_may_have_outliers():
    patterns = torch.ones(130, 2)
    far = worlds.WORLDS["std 0.4, outliers among patterns"].stored(patterns)
    assert (far == 10).all(1).nonzero().squeeze(1).tolist() == [0, 64, 128]
    assert (far == 1).all(1).sum() == 127


def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    out = tmp_path / "worlds.json"
    small = {"patterns": 8, "dim": 6, "samples": 8, "queries": 9}
    worlds.run(worlds.Config(("bias 1",), ("L1",), **small, runs=1), out)
    asked = []
    score = worlds.score
    monkeypatch.setattr(worlds, "score", lambda *job: asked.append(job[:3]) or score(*job))
    report = worlds.run(worlds.Config(("bias 1",), ("L1", "m-hop"), **small, runs=2), out)
    assert set(asked) == {("bias 1", "m-hop", 0), *(("bias 1", model, 1) for model in ("oracle", "L1", "m-hop"))}
    assert [len(row["first_choice"]["runs"]) for row in report["rows"]] == [2, 2, 2]


def test_the_table_of_untuned_worlds_shows_the_best_simple_metric_and_the_worst_run():
    def row(model, first, share, off):
        spreads = {"first_choice": first, "fraction_of_oracle": share, "calibration_error": off}
        return {"world": "w", "model": model, **{key: spread(values) for key, values in spreads.items()}}

    report = {
        "rows": [
            row("L1", [0.2, 0.4], [0.25, 0.5], [0.1, 0.3]),
            row("distance", [0.1, 0.3], [0.125, 0.375], [0.0, 0.0]),
            row("b-hop*", [0.6, 0.8], [0.75, 1.0], [0.02, 0.04]),
            row("oracle", [0.8, 0.8], [1.0, 1.0], [0.0, 0.01]),
        ]
    }
    head = ["world", "Oracle", "best simple metric", "b-hop, no labels"]
    share, off = (tables.TABLES[name].make(report) for name in ("worlds-untuned", "worlds-untuned-calibration"))
    assert share == Grid(head, [["w", ".800", ".375 (.250) L1", ".875 (.750)"]])
    assert off == Grid(head, [["w", ".005", ".200 (.300) L1", ".030 (.040)"]])


def test_a_simple_metric_is_as_sure_as_it_is_right():
    patterns = torch.rand(200, 8, generator=torch.Generator().manual_seed(0))
    world = Noisy(0.2)
    seen, test = world.sample(patterns, 2000), world.sample(patterns, 2000)
    for name in ("distance", "centred distance"):
        found = Simple.fitted(name, patterns, seen)
        # The distance is this noise's likelihood at one over twice its variance.
        assert found.beta == pytest.approx(1 / (2 * 0.2**2), rel=0.15)
        assert found.measured(test)["calibration_error"] < 0.04


def test_a_likelihood_tells_strangers():
    config = worlds.Config(("bias 1",), ("b-hop",), patterns=16, dim=8, samples=24, queries=30, runs=1)
    learned, _ = worlds.run(config)["rows"]
    assert learned["rejection_auroc"]["mean"] > 0.5


def test_a_world_and_a_model_join_by_registering_themselves(monkeypatch):
    monkeypatch.setattr(worlds, "WORLDS", Registry("world"))
    monkeypatch.setattr(retrieval, "MODELS", models := Registry("model"))

    @worlds.world("still")
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
    with pytest.raises(ValueError, match=r"unknown world 'nowhere'; known: published 0.4"):
        worlds.Config(worlds=("nowhere",))
