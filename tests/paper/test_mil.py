import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from ahop import datasets
from ahop.datasets import Bags
from ahop.nn import pad
from ahop.paper import mil
from ahop.paper.commands import app


def small(name):
    """Bags that are positive when an instance lies far out in the first dimension."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(24) % 2
    bags = [torch.randn(3 + int(label) + index % 4, 6, generator=generator) for index, label in enumerate(labels)]
    for bag, label in zip(bags, labels, strict=True):
        bag[0, 0] = 4.0 if label else 0.0
    return Bags(bags, labels)


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(datasets, "load", small)
    monkeypatch.setattr(mil, "CANDIDATES", mil.CANDIDATES[::2])


def invoke(*arguments):
    return CliRunner().invoke(app, ["mil", *arguments], env={"COLUMNS": "160"})


def test_the_table_of_bags(little, tmp_path):
    out = tmp_path / "mil.json"
    result = invoke("--quick", "--data", "tiger", "--models", "max,m-hop,a-hop", "--out", str(out))
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text())
    assert [row["model"] for row in report["rows"]] == ["max", "m-hop", "a-hop"]
    assert all(0 <= row["auc"]["mean"] <= 1 for row in report["rows"])
    assert [row["paper"] for row in report["rows"]] == [None, 0.8924, 0.9030]
    assert all(len(one["folds"]) == len(one["chosen"]) == 2 for one in report["done"])


def test_a_run_goes_on_where_it_was_stopped(little, tmp_path, monkeypatch):
    out = tmp_path / "mil.json"
    invoke("--quick", "--data", "tiger", "--models", "max", "--out", str(out))
    first = json.loads(out.read_text())["done"]
    asked = []

    def counted(*job):
        asked.append(job[:3])
        return {"data": job[0], "model": job[1], "seed": job[2], "auc": 0.5, "folds": [], "chosen": []}

    monkeypatch.setattr(mil, "cross_validate", counted)
    result = invoke("--quick", "--data", "tiger,fox", "--models", "max,mean", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert ("tiger", "max", 0) not in asked
    assert len(asked) == 3
    assert json.loads(out.read_text())["done"][0] == first[0]
    result = invoke("--data", "tiger", "--models", "max", "--out", str(out))
    assert result.exit_code == 2
    assert "with other settings; choose another file" in result.output
    out.write_text("{}")
    assert "no report of a run that can be resumed" in invoke("--quick", "--out", str(out)).output


def test_pooling_learns_what_is_there():
    data = small("tiger")
    config = mil.Config(epochs=25, batch=8, rate=2e-2, dropout=0.0)
    everything = np.arange(24)
    bags = mil.scale(data.bags, everything, "standard")
    for model in mil.POOLINGS:
        network = mil.fit(bags, data.labels, everything, model, mil.Candidate("standard", 16), 0, config)
        right = (mil.predict(network, bags, everything) > 0).long() == data.labels
        assert float(right.float().mean()) > 0.9, model


def test_selection_sees_the_training_part_alone(monkeypatch):
    data, train, seen = small("tiger"), np.arange(16), []

    def watched(bags, labels, chosen, *rest):
        seen.extend(chosen.tolist())
        return "network"

    monkeypatch.setattr(mil, "fit", watched)
    monkeypatch.setattr(
        mil, "predict", lambda network, bags, chosen: seen.extend(chosen.tolist()) or torch.rand(len(chosen))
    )
    assert mil.select(data, train, "max", 0, mil.Config()) in mil.CANDIDATES
    assert set(seen) == set(train.tolist())


@pytest.mark.parametrize("scaling", mil.SCALINGS)
def test_scaling_is_learned_on_training_bags(scaling):
    bags = small("tiger").bags
    train = np.arange(12)
    before, _ = mil.scale(bags, train, scaling)
    changed = [*bags[:12], *(100 * bag + 7 for bag in bags[12:])]
    after, padding = mil.scale(changed, train, scaling)
    torch.testing.assert_close(before[:12], after[:12])
    assert float(after.abs().max()) <= 5
    assert padding.shape == after.shape[:2]


def test_a_large_bag_is_seen_in_part():
    instances, padding = pad([torch.arange(10.0)[:, None], torch.arange(2.0)[:, None]])
    torch.manual_seed(0)
    some, left_out = mil.draw(instances, padding, most=4)
    assert some.shape == (2, 4, 1)
    assert len(set(some[0].flatten().tolist())) == 4
    assert left_out.tolist() == [[False] * 4, [False, False, True, True]]
    assert sorted(some[1, :2].flatten().tolist()) == [0.0, 1.0]
    whole, _ = mil.draw(instances[1:], padding[1:], most=4)
    assert whole.shape == (1, 2, 1)


def test_the_checks_of_what_a_model_may_learn(tmp_path, monkeypatch):
    """Hopfield pooling fails both, as attention does, and that is stated; the monotone network keeps to the rule."""
    long = mil.fit
    monkeypatch.setattr(mil, "fit", lambda *given: long(*given[:-1], replace(given[-1], epochs=15, rate=8e-3)))
    out = tmp_path / "checks.json"
    result = invoke("--checks", "--models", "m-hop", "--runs", "1", "--out", str(out))
    assert result.exit_code == 0, result.output
    rows = {(row["check"], row["model"]): row for row in json.loads(out.read_text())["rows"]}
    for check in mil.CHECKS:
        assert rows[check, "m-hop"]["train"]["mean"] > 0.95
        assert rows[check, "m-hop"]["test"]["mean"] < 0.5
    assert rows["standard", "monotone"]["test"]["mean"] > 0.8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "lion"], "data must be one of 'tiger'"),
        (["--models", "min"], "models must be one of 'mean'"),
        (["--workers", "0"], "workers must be at least 1, or -1"),
        (["--runs", "0"], "runs must be at least 1, got 0"),
        (["--out", "table.txt"], "must be a file that ends in .json"),
    ],
)
def test_options_that_cannot_be(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.output
