import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tests.guards import Watch, apart, rows
from typer.testing import CliRunner

from ahop import datasets
from ahop.datasets.tables import Table
from ahop.estimators import HopfieldClassifier
from ahop.paper import table_models, tabular
from ahop.paper.commands import app


def small(name, features="sound"):
    """People who are rich when old or from the town of y; every third row is for the test."""
    draw = np.random.default_rng(0)
    age, town = draw.uniform(18, 90, 150), draw.choice(["x", "y", "z"], 150)
    frame = pd.DataFrame({"age": age, "town": pd.Categorical(town)})
    labels = ((age > 60) | (town == "y")).astype(int)
    frame.loc[::20, "age"] = np.nan
    frame.loc[::30, "town"] = None
    return Table(frame, labels, np.arange(150) % 3 > 0)


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(datasets, "table", small)


def invoke(*arguments):
    return CliRunner().invoke(app, ["tabular", *arguments], env={"COLUMNS": "160"})


# These are in the table below as well, or have a twin.
LONG = ("default", "adaboost", "extra trees")


@pytest.mark.parametrize(
    "model",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in table_models.CONTESTANTS],
)
def test_every_contestant_can_be_tuned_and_trained(model):
    frame, labels, train = small("adult")
    learn, check = np.flatnonzero(train)[:70], np.flatnonzero(train)[70:]
    tried = [table_models.tune(model, frame, labels, learn, check, trial, "cpu") for trial in (0, 1)]
    json.dumps(tried)
    assert all(np.isfinite(one["loss"]) and 0 <= one["accuracy"] <= 1 for one in tried)
    fitted = table_models.final(model, tried[1]["settings"], frame[train], labels[train], 0, "cpu")
    likely = table_models.chances(fitted, frame[~train])
    assert ((likely > 0.5) == labels[~train]).mean() > 0.6
    again = table_models.tune(model, frame, labels, learn, check, 1, "cpu")
    assert again["settings"] == tried[1]["settings"]
    assert model == "default" or tried[0]["settings"] != tried[1]["settings"]


@pytest.mark.parametrize("model", ["ours", "a-hop-cases"])
def test_a_vote_of_the_best_settings(model):
    frame, labels, train = small("adult")
    tried = [
        {"data": "adult", "model": model, "trial": trial, "loss": loss, "accuracy": 0.0}
        | {"settings": {"epochs": 1, "width": 8 + trial}}
        for trial, loss in enumerate((0.5, 0.2, 0.9, 0.4, 0.3, 0.6, 0.8))
    ]
    chosen = tabular.likeliest(tried)["chosen"]
    assert [settings["width"] for settings in chosen["vote"]] == [9, 12, 11, 8, 13, 14]
    fitted = table_models.final(model, chosen, frame[train], labels[train], 0, "cpu")
    assert [len(one.memories_) for one in fitted.estimators_] == [table_models.MEMBERS[model]] * table_models.VOTES
    # No rows are held out in the end.
    assert {memory.temperature for one in fitted.estimators_ for memory in one.memories_} == {1.0}


@pytest.mark.parametrize(
    ("model", "similarities"), [("a-hop-cases", {"adaptive"}), ("ours", {"adaptive", "euclidean"})]
)
def test_the_similarities_of_a_vote(model, similarities):
    draws = [None, *(table_models.Draw(trial) for trial in range(1, 12))]
    settings = [table_models.CONTESTANTS[model].settings(draw) for draw in draws]
    models = [HopfieldClassifier(**one) for one in settings]
    assert {model.similarity for model in models} == similarities
    # Each pair is sorted, which a wide vector would make slow.
    assert all(model.width <= 32 for model in models if model.similarity == "adaptive")


def test_the_table(little, tmp_path):
    out = tmp_path / "tables.json"
    asked = ("--data", "adult", "--models", "m-hop,default,xgboost,adaboost", "--features", "benchmark")
    result = invoke(*asked, "--trials", "2", "--runs", "1", "--out", str(out))
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text())
    rows = {row["model"]: row for row in report["rows"]}
    assert rows["m-hop"]["paper"] == 0.8080 and rows["xgboost"]["paper"] == 0.8640 and rows["default"]["paper"] is None
    assert rows["m-hop"]["fit"] > 0 and rows["xgboost"]["fit"] == 1.0
    assert all(0 <= row[what]["mean"] <= 1 for row in report["rows"] for what in ("accuracy", "auc"))
    tuned = {one["model"]: one for one in report["done"] if one["seed"] is None}
    assert [len(tuned[model]["trials"]) for model in ("m-hop", "default", "xgboost")] == [2, 1, 2]
    assert "(.8080)" in result.output


def test_the_likeliest_settings_win():
    tried = [
        {"data": "adult", "model": "xgboost", "trial": trial, "loss": loss, "accuracy": 0.0, "settings": {"was": loss}}
        for trial, loss in ((2, 0.5), (0, 0.7), (1, 0.2))
    ]
    found = tabular.likeliest(tried)
    assert found["chosen"] == {"was": 0.2}
    assert [one["loss"] for one in found["trials"]] == [0.7, 0.2, 0.5]


def test_test_rows_are_not_seen_while_tuning(little, monkeypatch):
    _, _, train = small("adult")
    seen = []
    monkeypatch.setattr(
        tabular,
        "tune",
        lambda model, frame, labels, learn, check, *rest: (
            seen.extend([*learn, *check]) or {"loss": 1.0, "accuracy": 0.0, "settings": {}}
        ),
    )
    tabular.attempt("adult", "xgboost", 0, tabular.Config(data=("adult",), models=("xgboost",), trials=1))
    assert sorted(seen) == np.flatnonzero(train).tolist()


def test_a_trial_learns_from_no_row_that_it_is_judged_by(monkeypatch):
    frame, labels, train = small("adult")
    learn, check = np.flatnonzero(train)[:70], np.flatnonzero(train)[70:]
    learned, asked = [], []

    def fit(settings, *lessons):
        learned.append(lessons[:2])
        return SimpleNamespace(predict_proba=lambda frame: asked.append(frame) or np.full((len(frame), 2), 0.5))

    monkeypatch.setitem(table_models.CONTESTANTS, "guess", table_models.Contestant("guess", lambda draw: {}, fit))
    table_models.tune("guess", frame, labels, learn, check, 0, "cpu")
    ((table, told),) = learned
    assert rows(table) == set(learn) and (told == labels[learn]).all()
    apart(rows(table), rows(*asked))


def test_the_final_models_learn_from_no_test_row(little, monkeypatch):
    _, labels, train = small("adult")
    watch = Watch(monkeypatch).on(tabular, "final", lambda *lessons: None)
    watch.on(tabular, "chances", lambda model, frame: np.linspace(0, 1, len(frame)))
    for most in (0, 40):
        config = tabular.Config(data=("adult",), models=("xgboost", "adaboost"), most=most)
        tabular.compare("adult", 0, {"adaboost": {}}, {}, config)
    # The reference is trained as well, to be timed.
    assert [call.model for call in watch.of("final")] == ["xgboost", "adaboost"] * 2
    for learned, scored in zip(watch.of("final"), watch.of("chances"), strict=True):
        assert rows(learned.frame) <= set(np.flatnonzero(train))
        assert (learned.labels == labels[learned.frame.index]).all()
        apart(rows(learned.frame), rows(scored.frame))


def test_a_run_goes_on_where_it_was_stopped(little, tmp_path, monkeypatch):
    out = tmp_path / "tables.json"
    invoke("--quick", "--data", "adult", "--models", "adaboost,xgboost", "--out", str(out))
    before = json.loads(out.read_text())
    assert before["quick"] and {"sklearn", "xgboost"} < before["versions"].keys()
    asked = []
    final = table_models.final

    def watched(model, *rest):
        asked.append(model)
        return final(model, *rest)

    monkeypatch.setattr(tabular, "final", watched)
    result = invoke("--quick", "--data", "adult", "--models", "adaboost,xgboost,m-hop", "--out", str(out))
    assert result.exit_code == 0, result.output
    # The one that times are measured by is trained again, to be timed beside the new one.
    assert asked == ["xgboost", "m-hop"]
    after = json.loads(out.read_text())
    assert after["done"][: len(before["done"])] == before["done"]
    assert len(after["done"]) == len(before["done"]) + 2


def test_a_reference_that_comes_later(little, tmp_path):
    out = tmp_path / "tables.json"
    invoke("--quick", "--data", "adult", "--models", "adaboost", "--out", str(out))
    result = invoke("--quick", "--data", "adult", "--models", "adaboost,xgboost", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "not timed" in result.output and "1.0, 1.0" in result.output


def test_a_library_that_is_not_there(little, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    result = invoke("--quick", "--models", "xgboost")
    assert result.exit_code == 2
    assert "xgboost is not installed: pip install 'ahop[paper]'" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "iris"), "data must be one of 'adult'"),
        (("--models", "svm"), "models must be one of 'default'"),
        (("--features", "odd"), "features must be one of 'sound', 'benchmark', got 'odd'"),
        (("--seed", "-1"), "seed must be a whole number in 0 to 1000000000, got -1"),
        (("--trials", "0"), "trials must be at least 1, got 0"),
        (("--workers", "0"), "workers must be at least 1"),
    ],
)
def test_what_cannot_be(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code != 0
    assert message in result.output
