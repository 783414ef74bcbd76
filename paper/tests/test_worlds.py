import json

import pytest
import torch
from tests.guards import Watch
from typer.testing import CliRunner

from ahop._registry import Registry
from ahop.memories import AssociativeMemory, BayesianHopfield, Oracle
from ahop.variants import Noisy
from ahop_paper import retrieval, worlds
from ahop_paper.commands import app
from ahop_paper.pages import tables
from ahop_paper.pages.markdown import Grid
from ahop_paper.spread import spread


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
        worlds.group(untuned=True),
        ("centred L1", "centred cosine", "m-hop"),
        patterns=70,
        samples=60,
        queries=100,
        runs=1,
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


def test_the_table_of_untuned_worlds_shows_the_best_baseline_and_the_worst_run():
    def row(model, first, share, off=None):
        spreads = {"first_choice": first, "fraction_of_oracle": share} | ({"calibration_error": off} if off else {})
        return {"world": "w", "model": model, **{key: spread(values) for key, values in spreads.items()}}

    report = {
        "rows": [
            row("centred L1", [0.2, 0.4], [0.25, 0.5]),
            row("ridge", [0.1, 0.3], [0.125, 0.375]),
            row("b-hop*", [0.6, 0.8], [0.75, 1.0], [0.02, 0.04]),
            row("oracle", [0.8, 0.8], [1.0, 1.0], [0.0, 0.01]),
        ]
    }
    head = ["world", "Oracle", "best baseline", "b-hop, no labels"]
    share, off = (tables.TABLES[name].make(report) for name in ("worlds-untuned", "worlds-untuned-calibration"))
    assert share == Grid(head, [["w", ".800", ".375 (.250) centred L1", ".875 (.750)"]])
    assert off == Grid(head, [["w", ".005", "", ".030 (.040)"]])


def test_a_likelihood_detects_strangers():
    config = worlds.Config(("bias 1",), ("b-hop",), patterns=16, dim=8, samples=24, queries=30, runs=1)
    learned, _ = worlds.run(config)["rows"]
    assert learned["rejection_auroc"]["mean"] > 0.5


def test_strangers_are_variants_of_what_is_not_stored(monkeypatch):
    still = worlds.World(lambda dim, seed: Noisy(1e-3, seed=seed), lambda patterns: patterns, untuned=False)
    monkeypatch.setitem(worlds.WORLDS, "still", still)
    monkeypatch.setattr(BayesianHopfield, "fit", lambda memory, *data: memory)
    watch = Watch(monkeypatch).on(worlds, "_rejection", lambda *queries: 0.5)
    worlds.run(worlds.Config(("still",), ("b-hop",), patterns=16, dim=8, samples=24, queries=30, runs=2))
    assert len(watch.calls) == 2
    for call in watch.calls:
        near, far = (torch.cdist(some, call.memory.patterns).amin(1) for some in (call.stored, call.strangers))
        assert near.max() < 0.1 < far.min()


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    out = tmp_path / "worlds.json"
    small = {"worlds": ("bias 1",), "patterns": 16, "dim": 8, "samples": 24, "queries": 30, "runs": 2}
    first = worlds.run(worlds.Config(models=("m-hop",), **small), out)
    config = worlds.Config(models=("m-hop", "centred L1"), **small)
    both = worlds.run(config, out)
    assert both["done"][: len(first["done"])] == first["done"]
    assert len(both["done"]) == len(first["done"]) + 2
    assert both["rows"] == worlds.run(config)["rows"]
    assert "calibration_error" not in both["rows"][1], "a nearest neighbour does not say how sure it is"


def test_a_world_and_a_model_join_by_registering_themselves(monkeypatch):
    monkeypatch.setattr(worlds, "WORLDS", Registry("world"))
    monkeypatch.setattr(retrieval, "MODELS", models := Registry("model"))

    @worlds.world("still")
    def still(dim, seed):
        return Noisy(1e-3, seed=seed)

    @retrieval.model("nearest", "the nearest pattern", ours=True)
    def nearest(patterns, seen, world, seed):
        return AssociativeMemory(patterns, "distance", "argmax")

    models["oracle"] = retrieval.Model(
        lambda patterns, seen, world, seed: Oracle(patterns, world), "Oracle", ceiling=True
    )
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
