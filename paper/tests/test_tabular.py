import itertools
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
from ahop_paper import parallel, table_base, table_models, tabular
from ahop_paper.commands import app
from ahop_paper.parallel import TimeUp


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
LONG = ("default", "adaboost", "extra trees", "random forest", "ours", "a-hop", "a-hop-cases")
# Those with trials of their own.
TUNED = [name for name, one in table_models.MODELS.items() if one.search is None]


@pytest.mark.parametrize(
    "model",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in TUNED],
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


LOSSES = (0.5, 0.2, 0.9, 0.4, 0.3, 0.6, 0.8)


def attempted(trial, loss, settings):
    where = {"data": "adult", "model": "xgboost", "split": 1}
    return {**where, "trial": trial, "loss": loss, "accuracy": 0.0, "settings": settings}


@pytest.mark.parametrize("model", ["ours", "a-hop-cases"])
def test_a_vote_of_the_best_settings(model):
    frame, labels, train = small("adult")
    tried = [attempted(trial, loss, {"epochs": 1, "width": 8 + trial}) for trial, loss in enumerate(LOSSES)]
    chosen = table_models.MODELS[model].chosen(tabular.likeliest(tried)["ranked"])
    assert [settings["width"] for settings in chosen["vote"]] == [9, 12, 11, 8, 13, 14]
    fitted = table_models.final(model, chosen, frame[train], labels[train], 0, "cpu")
    assert [len(one.memories_) for one in fitted.estimators_] == [table_base.MEMBERS[model]] * table_base.VOTES
    # No rows are held out in the end.
    assert {memory.temperature for one in fitted.estimators_ for memory in one.memories_} == {1.0}


def test_trees_have_the_vote_of_memories():
    """As many settings, as many seeds each, and what they say is the mean; all from the trials of the single ones."""
    frame, labels, train = small("adult")
    tried = [attempted(trial, loss, {"n_estimators": 3 + trial}) for trial, loss in enumerate(LOSSES)]
    several = table_models.MODELS["vote of xgboost"]
    fitted = several.fit(several.chosen(tabular.likeliest(tried)["ranked"]), frame[train], labels[train], 1, "cpu")
    sizes = [one.model.n_estimators for one in fitted.models]
    assert len(sizes) == table_base.VOTES * table_base.MEMBERS["ours"]
    assert list(dict.fromkeys(sizes)) == [4, 7, 6, 3, 8, 9]
    assert {one.model.random_state for one in fitted.models} == {4, 5, 6, 7}
    single = [table_models.chances(one, frame[~train]) for one in fitted.models]
    np.testing.assert_allclose(table_models.chances(fitted, frame[~train]), np.mean(single, 0))
    voting = [one for one in table_models.MODELS.values() if one.search]
    assert [one.title for one in voting] == ["a vote of XGBoost", "a vote of LightGBM", "a vote of CatBoost"]
    assert [one.search for one in voting] == ["xgboost", "lightgbm", "catboost"]


@pytest.mark.parametrize(
    ("model", "similarities"), [("a-hop-cases", {"adaptive"}), ("ours", {"adaptive", "euclidean"})]
)
def test_the_similarities_of_a_vote(model, similarities):
    draws = [None, *(table_base.Draw(trial) for trial in range(1, 12))]
    settings = [table_models.MODELS[model].settings(draw) for draw in draws]
    models = [HopfieldClassifier(**one) for one in settings]
    assert {model.similarity for model in models} == similarities
    # Each pair is sorted, which a wide vector would make slow.
    assert all(model.width <= 32 for model in models if model.similarity == "adaptive")


@pytest.mark.slow
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
    tuned = {one["model"]: one for one in report["done"] if "ranked" in one}
    assert [len(tuned[model]["trials"]) for model in ("m-hop", "default", "xgboost")] == [2, 1, 2]
    assert "(.8080)" in result.output


def test_the_likeliest_settings_win():
    found = tabular.likeliest([attempted(trial, loss, {"was": loss}) for trial, loss in ((2, 0.5), (0, 0.7), (1, 0.2))])
    assert [one["was"] for one in found["ranked"]] == [0.2, 0.5, 0.7]
    assert table_models.MODELS["xgboost"].chosen(found["ranked"]) == {"was": 0.2}
    assert [one["loss"] for one in found["trials"]] == [0.7, 0.2, 0.5]


def test_splits_differ_and_keep_their_sizes_and_shares(little):
    config = tabular.Config(data=("adult",), models=("xgboost",))
    _, labels, published, rest = tabular.parts("adult", 0, config)
    assert published.tolist() == np.flatnonzero(small("adult").train).tolist()
    drawn = [tabular.parts("adult", split, config) for split in (1, 1, 2)]
    for _, _, train, test in drawn:
        assert (len(train), len(test)) == (len(published), len(rest))
        assert sorted([*train, *test]) == list(range(150))
        assert labels[train].mean() == pytest.approx(labels.mean(), abs=0.01)
    (_, _, one, _), (_, _, same, _), (_, _, other, _) = drawn
    assert one.tolist() == same.tolist() != other.tolist() != published.tolist()


@pytest.mark.parametrize("split", [0, 1])
def test_test_rows_are_not_seen_while_tuning(little, monkeypatch, split):
    config = tabular.Config(data=("adult",), models=("xgboost",), trials=1)
    *_, train, _ = tabular.parts("adult", split, config)
    seen = []
    monkeypatch.setattr(
        tabular,
        "tune",
        lambda model, frame, labels, learn, check, *rest: (
            seen.extend([*learn, *check]) or {"loss": 1.0, "accuracy": 0.0, "settings": {}}
        ),
    )
    tabular.attempt("adult", "xgboost", split, 0, config)
    assert sorted(seen) == train.tolist()


def test_a_memory_stands_beside_the_best_trees_on_the_same_splits():
    models = ("ours", "xgboost", "vote of xgboost", "lightgbm")
    config = tabular.Config(data=("adult",), models=models, runs=3)

    def tested(model, split, accuracy):
        figures = {"accuracy": accuracy, "auc": accuracy}
        return {"data": "adult", "model": model, "split": split, "rows": [200, 100], **figures}

    done = [tested("ours", split, 0.8 + 0.1 * split) for split in range(3)]
    done += [tested("xgboost", split, 0.7 + 0.1 * split) for split in range(3)]
    done += [tested("vote of xgboost", split, 0.75 + 0.1 * split) for split in range(3)]
    # Not on all splits, and so not to be compared with.
    done += [tested("lightgbm", split, 1.0) for split in range(2)]
    rows = {row["model"]: row for row in tabular.summary(config, {}, done)["rows"]}
    for what in ("accuracy", "auc"):
        beside = rows["ours"]["beside"][what]
        assert beside["best_other"]["model"] == "vote of xgboost"
        assert beside["difference"] == {"mean": 0.05, "low": 0.05, "high": 0.05}
    assert "beside" not in rows["xgboost"]


@pytest.mark.slow
def test_a_vote_shares_the_trials_of_the_single_one(little, tmp_path):
    out = tmp_path / "tables.json"
    asked = ("--quick", "--data", "adult", "--models", "xgboost,vote of xgboost", "--out", str(out))
    assert invoke(*asked).exit_code == 0
    done = json.loads(out.read_text())["done"]
    assert [one["model"] for one in done] == ["xgboost", "xgboost", "vote of xgboost"]


def test_each_split_is_tuned_by_itself(little, monkeypatch):
    """Settings that were chosen on another split could have been chosen by this one's test rows."""

    def tune(model, frame, labels, learn, *_):
        return {"loss": 1.0, "accuracy": 0.0, "settings": {"learned": tuple(map(int, learn))}}

    chosen = {}

    def compare(name, model, split, settings, *_):
        chosen[model, split] = settings["vote"][0] if "vote" in settings else settings
        return {"data": name, "model": model, "split": split, "rows": [2, 1], "accuracy": 0.5, "auc": 0.5}

    monkeypatch.setattr(tabular, "tune", tune)
    monkeypatch.setattr(tabular, "compare", compare)
    config = tabular.Config(data=("adult",), models=("xgboost", "vote of xgboost"), trials=1, runs=3)
    tabular.run(config)
    assert len(chosen) == 6
    for (_, split), settings in chosen.items():
        *_, train, test = tabular.parts("adult", split, config)
        assert set(settings["learned"]) < set(train)
        apart(set(settings["learned"]), set(test))


def test_a_trial_learns_from_no_row_that_it_is_judged_by(monkeypatch):
    frame, labels, train = small("adult")
    learn, check = np.flatnonzero(train)[:70], np.flatnonzero(train)[70:]
    learned, asked = [], []

    def fit(settings, *data):
        learned.append(data[:2])
        return SimpleNamespace(predict_proba=lambda frame: asked.append(frame) or np.full((len(frame), 2), 0.5))

    monkeypatch.setitem(table_models.MODELS, "guess", table_base.Model("guess", lambda draw: {}, fit))
    table_models.tune("guess", frame, labels, learn, check, 0, "cpu")
    ((table, told),) = learned
    assert rows(table) == set(learn) and (told == labels[learn]).all()
    apart(rows(table), rows(*asked))


def test_the_final_models_learn_from_no_test_row(little, monkeypatch):
    _, labels, train = small("adult")
    watch = Watch(monkeypatch).on(tabular, "final", lambda *data: None)
    watch.on(tabular, "chances", lambda model, frame: np.linspace(0, 1, len(frame)))
    for most in (0, 40):
        config = tabular.Config(data=("adult",), models=("xgboost", "adaboost"), most=most)
        tabular.compare("adult", "adaboost", 0, {}, {}, config)
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
    assert "xgboost is not installed: pip install ahop-paper" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--data", "iris"), "data must be one of 'adult'"),
        (("--models", "svm"), "models must be one of 'default'"),
        (("--features", "odd"), "features must be one of 'sound', 'benchmark', got 'odd'"),
        (("--seed", "-1"), "seed must be an integer between 0 and 1000000000, got -1"),
        (("--trials", "0"), "trials must be at least 1, got 0"),
        (("--workers", "0"), "workers must be at least 1"),
    ],
)
def test_what_cannot_be(arguments, message):
    result = invoke(*arguments)
    assert result.exit_code != 0
    assert message in result.output


def test_a_search_that_was_interrupted_goes_on_with_the_next_trial(little, tmp_path, monkeypatch):
    tried = []

    def attempt(name, model, split, trial, config):
        tried.append(trial)
        figures = {"loss": 1 - trial / 10, "accuracy": 0.5, "settings": {"depth": trial}}
        return {"data": name, "model": model, "split": split, "trial": trial, **figures}

    def compare(name, model, split, chosen, *_):
        return {"data": name, "model": model, "split": split, "accuracy": 0.5, "auc": 0.5, "chosen": chosen}

    monkeypatch.setattr(tabular, "attempt", attempt)
    monkeypatch.setattr(tabular, "compare", compare)
    config = tabular.Config(data=("heart",), models=("random forest",), trials=3, runs=1)
    with monkeypatch.context() as clock, pytest.raises(TimeUp):
        clock.setattr(parallel, "time", SimpleNamespace(monotonic=itertools.count().__next__))
        tabular.run(config, tmp_path / "some.json", until=2)
    assert tried == [0, 1]
    search, final = tabular.run(config, tmp_path / "some.json")["done"]
    assert tried == [0, 1, 2] and len(search["ranked"]) == 3
    assert final["sitting"] == 1


@pytest.fixture
def shares(little, tmp_path, monkeypatch):
    """Two machines went on from one beginning, which had a trial of a search that the second then made whole."""

    def compare(name, model, split, *_):
        figures = {"accuracy": len(model) / 100 + split, "auc": len(model) / 200 + split}
        return {"data": name, "model": model, "split": split, "rows": [2, 1], **figures}

    monkeypatch.setattr(tabular, "tune", lambda *_: {"loss": 1.0, "accuracy": 0.0, "settings": {}})
    monkeypatch.setattr(tabular, "compare", compare)
    asked = ("--data", "adult", "--models", "adaboost,extra trees", "--trials", "1", "--runs", "2")
    first, second, whole = (tmp_path / f"{name}.json" for name in ("first", "second", "whole"))
    invoke(*asked[:2], "--models", "adaboost", *asked[4:6], "--runs", "1", "--out", str(first))
    report = json.loads(first.read_text())
    trial = {**attempted(0, 0.5, {}), "model": "extra trees", "sitting": 0}
    first.write_text(json.dumps({**report, "done": [*report["done"], trial]}))
    second.write_text(json.dumps(report))
    invoke(*asked[:2], "--models", "adaboost", *asked[4:6], "--seed", "1", "--runs", "1", "--out", str(first))
    invoke(*asked[:2], "--models", "extra trees", *asked[4:], "--out", str(second))
    for file in (first, second):
        report = json.loads(file.read_text())
        report["sittings"][1]["machine"] = file.stem
        file.write_text(json.dumps(report))
    return asked, first, second, whole


def figures(report):
    return [{key: row[key] for key in ("data", "model", "accuracy", "auc")} for row in report["rows"]]


def test_machines_that_share_a_run_make_the_report_of_one(shares, tmp_path):
    asked, first, second, whole = shares
    before = [json.loads(file.read_text())["sittings"] for file in (first, second)]
    result = invoke(*asked, "--join", f"{first},{second}", "--out", str(whole))
    assert result.exit_code == 0, result.output
    joined = json.loads(whole.read_text())
    invoke(*asked, "--out", str(tmp_path / "alone.json"))
    alone = json.loads((tmp_path / "alone.json").read_text())
    assert figures(joined) == figures(alone) and len(figures(joined)) == 2
    # What both have is there once, and a trial makes way for the choice that came of it.
    assert len(joined["done"]) == len(alone["done"]) and not any("trial" in one for one in joined["done"])
    assert joined["sittings"] == [*before[0], before[1][1]]
    made = [joined["sittings"][one["sitting"]] for one in joined["done"] if one["model"] == "extra trees"]
    assert made == [before[1][1]] * 4
    assert joined["config"] == alone["config"]


def test_what_a_gpu_had_a_share_in_is_made_by_a_command_for_a_gpu(shares):
    asked, first, second, whole = shares
    report = json.loads(first.read_text())
    first.write_text(json.dumps({**report, "config": {**report["config"], "device": "cuda"}}))
    assert invoke(*asked, "--join", f"{first},{second}", "--out", str(whole)).exit_code == 0
    assert json.loads(whole.read_text())["config"]["device"] == "cuda"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda report: {}, r"second.json is no report of a run that can be resumed"),
        (
            lambda report: {key: value for key, value in report.items() if key != "experiment"},
            "second.json is no report of a run that can be resumed",
        ),
        (lambda report: {**report, "experiment": "mil"}, "second.json holds a run with different settings from those"),
        (
            lambda report: {**report, "quick": True},
            "second.json holds a run with different settings from those to join",
        ),
        (
            lambda report: {**report, "config": {**report["config"], "checked": 0.5}},
            "holds a run with different settings",
        ),
        (
            lambda report: {**report, "done": [{**one, "accuracy": 0.123} for one in report["done"]]},
            "have different figures for adult adaboost 0; leave one out",
        ),
        (
            lambda report: {
                **report,
                "done": [{**one, "split": one["split"] + 7, "code": "other"} for one in report["done"]],
            },
            "files to join must come from the same code; got commits",
        ),
    ],
)
def test_what_cannot_be_joined(shares, change, message):
    asked, first, second, whole = shares
    second.write_text(json.dumps(change(json.loads(second.read_text()))))
    result = invoke(*asked, "--join", f"{first},{second}", "--out", str(whole))
    assert result.exit_code == 2 and not whole.exists()
    assert message in " ".join(result.output.split())


def test_a_share_that_is_not_there_and_one_in_a_hurry(tmp_path):
    missing = invoke("--join", str(tmp_path / "none.json"))
    assert missing.exit_code == 2 and "none.json" in missing.output
    quick = invoke("--join", str(tmp_path / "none.json"), "--quick")
    assert quick.exit_code == 2 and "join takes whole runs; leave quick out" in quick.output
