import json

import numpy as np
import pytest
import torch
from tests.guards import Watch, apart, rows
from typer.testing import CliRunner

from ahop import datasets
from ahop.datasets import Bags
from ahop.estimators import HopfieldBagClassifier
from ahop_paper import mil
from ahop_paper.commands import app


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


@pytest.mark.slow
def test_the_table_of_bags(little, tmp_path):
    out = tmp_path / "mil.json"
    result = invoke("--quick", "--data", "tiger", "--models", "max,m-hop,a-hop", "--out", str(out))
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text())
    assert [row["model"] for row in report["rows"]] == ["max", "m-hop", "a-hop"]
    assert all(0 <= row["auc"]["mean"] <= 1 for row in report["rows"])
    assert [row["paper"] for row in report["rows"]] == [None, 0.8924, 0.9030]
    assert all(len(one["folds"]) == len(one["chosen"]) == 2 for one in report["done"])


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_stopped(little, tmp_path, monkeypatch):
    out = tmp_path / "mil.json"
    # A measure that only counts is other code.
    monkeypatch.setattr(mil, "code_of", lambda config, one: "the same")
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
    assert "with different settings; choose another file" in result.output
    out.write_text("{}")
    assert "no report of a run that can be resumed" in invoke("--quick", "--out", str(out)).output


def test_the_experiment_is_the_estimator_as_it_ships():
    for model, own in mil.POOLINGS.items():
        made = mil.classifier(model, mil.CANDIDATES[0], 3, mil.Config()).get_params()
        usual = HopfieldBagClassifier().get_params()
        differs = {name for name in usual if made[name] != usual[name]}
        assert differs <= {*own, *mil.Candidate._fields, "random_state", "device"}
        assert made["random_state"] == 3
    networks = {model: fitted(model).network_ for model in mil.POOLINGS}
    # Where the largest values stand beside the pooled ones.
    joined = {model for model, network in networks.items() if network.largest is not None}
    assert joined == {"mean and max", "attention and max", *mil.OURS}
    assert {model: network.head.out_features for model, network in networks.items()} == dict.fromkeys(networks, 1)


def test_hopfield_pooling_stands_beside_the_best_other_on_the_same_folds():
    config = mil.Config(data=("tiger",), models=("mean", "max", "m-hop"), runs=2)

    def ran(model, seed, *folds):
        return {"data": "tiger", "model": model, "seed": seed, "auc": float(np.mean(folds)), "folds": list(folds)}

    done = [ran("mean", seed, 0.5, 0.6) for seed in (0, 1)] + [ran("max", seed, 0.6, 0.7) for seed in (0, 1)]
    done += [ran("m-hop", 0, 0.7, 0.8), ran("m-hop", 1, 0.7, 0.8)]
    rows = {row["model"]: row for row in mil.summary(config, {}, done)["rows"]}
    assert rows["m-hop"]["best_other"]["model"] == "max"
    assert rows["m-hop"]["difference"] == {"mean": 0.1, "low": 0.1, "high": 0.1}
    assert "difference" not in rows["max"]


def fitted(model):
    config = mil.Config(settings={"epochs": 1})
    return mil.classifier(model, mil.Candidate("standard", 16), 0, config).fit(*mil._arrays(small("tiger")))


@pytest.mark.parametrize(
    "model", ["b-hop", *(pytest.param(one, marks=pytest.mark.slow) for one in mil.POOLINGS if one != "b-hop")]
)
def test_every_pooling_learns_what_is_there(model):
    bags, labels = mil._arrays(small("tiger"))
    settings = {"epochs": 25, "batch_size": 8, "learning_rate": 2e-2, "dropout": 0.0}
    network = mil.classifier(model, mil.Candidate("standard", 16), 0, mil.Config(settings=settings))
    assert network.fit(bags, labels).score(bags, labels) > 0.9


@pytest.mark.slow
def test_a_report_says_how_the_estimator_was_set(little, tmp_path):
    out = tmp_path / "mil.json"
    invoke("--quick", "--data", "tiger", "--models", "max", "--out", str(out))
    config = json.loads(out.read_text())["config"]
    assert config["estimator"] == HopfieldBagClassifier(epochs=5).get_params()
    assert config["poolings"] == mil.POOLINGS


def test_selection_sees_the_training_part_alone(monkeypatch):
    bags, labels = mil._arrays(small("tiger"))
    train, seen = np.arange(16), []

    def watched(network, bags, labels, learn, check):
        seen.extend([*learn.tolist(), *check.tolist()])
        assert not set(learn) & set(check)
        return np.random.default_rng(0).random(len(check))

    monkeypatch.setattr(mil, "log_odds", watched)
    assert mil.select(bags, labels, train, "max", 0, mil.Config()) in mil.CANDIDATES
    assert set(seen) == set(train.tolist())


def test_what_is_learned_does_not_depend_on_the_bags_to_judge():
    bags, labels = mil._arrays(small("tiger"))
    network = mil.classifier("max", mil.Candidate("quantile", 16), 0, mil.Config(settings={"epochs": 2}))
    odds = mil.log_odds(network, bags, labels, np.arange(12), np.arange(12, 24))
    changed = [*bags[:12], *(100 * bag + 7 for bag in bags[12:])]
    mil.log_odds(network, changed, labels, np.arange(12), np.arange(12, 24))
    np.testing.assert_array_equal(network.decision_function(bags[12:]), odds)


@pytest.fixture
def watch(monkeypatch):
    """Networks that learn nothing and answer anything, so that all that counts is which bags they meet."""
    watch = Watch(monkeypatch)
    watch.on(HopfieldBagClassifier, "fit", lambda network, bags, labels: network)
    return watch.on(HopfieldBagClassifier, "decision_function", lambda network, bags: np.arange(len(bags)))


def test_no_bag_is_scored_that_was_learned_from_or_selected_by(little, watch):
    watch.on(mil, "select")
    mil.cross_validate("tiger", "max", 0, mil.Config(folds=3, inner=2, refits=2))
    selections = watch.of("select")
    assert len(selections) == 3
    scored = []
    for selection in selections:
        final = watch.after(selection)[:4]
        assert [call.what for call in final] == ["fit", "decision_function"] * 2
        test = rows(*(call.X for call in final[1::2]))
        # Nothing that was done for this fold has met its test bags before.
        apart(test, rows(*(call.X for call in [*selection.inside, *final[::2]])))
        scored.append(test)
        for learned, judged in zip(selection.inside[::2], selection.inside[1::2], strict=True):
            assert learned.self is judged.self
            apart(rows(learned.X), rows(judged.X))
    assert set.union(*scored) == rows(mil._arrays(small("tiger"))[0])


@pytest.mark.slow
def test_a_check_is_passed_on_bags_that_were_not_learned_from(watch):
    mil.run_checks(("max",), runs=1)
    for fit, *asked in zip(watch.calls[::3], watch.calls[1::3], watch.calls[2::3], strict=True):
        assert rows(asked[0].X) == rows(fit.X)
        apart(rows(asked[1].X), rows(fit.X))


def checked(out, monkeypatch, epochs):
    monkeypatch.setattr(mil, "CHECK_SETTINGS", {**mil.CHECK_SETTINGS, "epochs": epochs, "learning_rate": 8e-3})
    result = invoke("--checks", "--models", "m-hop", "--runs", "1", "--out", str(out))
    assert result.exit_code == 0, result.output
    return {(row["check"], row["model"]): row for row in json.loads(out.read_text())["rows"]}


@pytest.mark.slow
def test_the_checks_cover_a_model_and_the_monotone_network(tmp_path, monkeypatch):
    rows = checked(tmp_path / "checks.json", monkeypatch, epochs=1)
    assert set(rows) == {(check, "m-hop") for check in mil.CHECKS} | {(check, "monotone") for check in mil.CHECKS}
    assert all(0 <= row[part]["mean"] <= 1 for row in rows.values() for part in ("train", "test"))


@pytest.mark.slow
def test_what_a_model_may_learn(tmp_path, monkeypatch):
    """Hopfield pooling fails both, as attention does, and that is stated; the monotone network keeps to the rule."""
    rows = checked(tmp_path / "checks.json", monkeypatch, epochs=15)
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
