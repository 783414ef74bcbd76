import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tests.guards import Watch, poisoned, rows
from typer.testing import CliRunner

from ahop import datasets
from ahop._registry import Registry
from ahop.datasets import Measured
from ahop.memories import AdaptiveHopfield, AssociativeMemory, BayesianHopfield
from ahop.similarity import Correlated, Distance, Likelihood, Regimes
from ahop_paper import baselines, plots, real, real_models
from ahop_paper.commands import app
from ahop_paper.pages import tables
from ahop_paper.pages.tables import real_data
from ahop_paper.real_models import MODELS, partly_labelled


def small(name):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.randn(40, 12, generator=generator)
    origins = torch.arange(40).repeat(4)
    causes = 2 * torch.randn(160, 1, generator=generator)
    queries = patterns[origins] + causes + 0.2 * torch.randn(160, 12, generator=generator)
    return Measured(patterns, queries, origins, origins % 2 == 0)


def wide(name):
    """The same with queries of more dimensions than patterns have."""
    data = small(name)
    return data._replace(queries=torch.cat([data.queries, data.queries[:, :3]], 1))


CHEAP = ("distance", "z-scored cosine", "whitening", "ridge")


@pytest.mark.slow
def test_the_table_of_real_variants(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", small)
    out = tmp_path / "real.json"
    asked = ["real", "--data", "gas", "--runs", "1", "--models", ",".join((*CHEAP, "b-hop*", "b-hop"))]
    result = CliRunner().invoke(app, [*asked, "--out", str(out)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    rows = {row["model"]: row for row in json.loads(out.read_text())["rows"]}
    assert rows["b-hop"]["accuracy"]["mean"] > rows["distance"]["accuracy"]["mean"]
    assert rows["whitening"]["accuracy"]["mean"] > rows["distance"]["accuracy"]["mean"]
    assert "shifted by" in rows["b-hop"]["learned"]
    assert {"confidence", "calibration_error"} <= rows["b-hop*"].keys()
    assert all(name in result.output for name in ("distance", "whitening", "b-hop"))


@pytest.mark.slow
def test_a_few_labels_are_learned_from(monkeypatch):
    monkeypatch.setattr(datasets, "load", small)
    assert real.score("gas", "b-hop 10", 0, real.Config())["accuracy"] > 0.9


def test_all_but_a_few_labels_are_unknown():
    data = small("gas")
    queries, origins = partly_labelled(data, seed=0, count=10)
    assert (len(queries), int((origins >= 0).sum()), int(origins.min())) == (80, 10, -1)
    torch.testing.assert_close(queries.sum(0), data.queries[data.learn].sum(0))
    for query, origin in zip(queries[origins >= 0], origins[origins >= 0], strict=True):
        assert int(data.origins[(data.queries == query).all(1)]) == origin


@pytest.mark.slow
def test_a_run_goes_on_where_it_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", small)
    out, config = tmp_path / "real.json", real.Config(("gas",), ("distance", "L1"), runs=2)
    # A measure that only fails is other code.
    monkeypatch.setattr(real, "code_of", lambda config, one: "the same")
    first = real.run(config, out)
    assert {(one["model"], one["split"]) for one in first["done"]} == {(m, s) for m in config.models for s in (0, 1)}
    monkeypatch.setattr(real, "score", lambda *job: pytest.fail(f"{job} was done again"))
    assert real.run(config, out)["rows"] == first["rows"]
    with pytest.raises(ValueError, match="holds a run with different settings"):
        real.run(real.quick(config), out)


@pytest.mark.slow
def test_machines_share_a_run(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "load", small)
    models, asked = ("distance", "b-hop*"), ("--data", "gas", "--runs", "2", "--models", "distance,b-hop*")
    monkeypatch.setattr(real, "score", lambda name, model, split, config: scored(name, model, split))
    files = [tmp_path / f"{place}.json" for place in range(2)]
    for model, out in zip(models, files, strict=True):
        real.run(real.Config(("gas",), (model,), runs=2), out)
    alone = real.run(real.Config(("gas",), models, runs=2))
    whole = tmp_path / "whole.json"
    # Once a file; with commas between them, tables are joined in their own test.
    joins = [word for file in files for word in ("--join", str(file))]
    invoked = CliRunner().invoke(app, ["real", *asked, *joins, "--out", str(whole)])
    assert invoked.exit_code == 0, invoked.output
    joined = json.loads(whole.read_text())
    assert joined["rows"] == alone["rows"]
    (row,) = [row for row in joined["rows"] if row["model"] == "b-hop*"]
    assert row["ahead"] and row["best_other"]["model"] == "distance"


def scored(name, model, split):
    """As if it had been run."""
    accuracy = 0.5 + 0.1 * split + 0.2 * (model == "b-hop*")
    found = {"data": name, "model": model, "split": split, "items": [10, 10], "accuracy": accuracy, "learned": ""}
    return {**found, "confidence": 0.5, "calibration_error": 0.1} if model == "b-hop*" else found


@pytest.mark.parametrize("number", range(4))
def test_no_item_is_on_both_sides_of_a_split(number):
    data = real.split(small("gas"), number)
    learned, scored = (set(data.origins[rows].tolist()) for rows in (data.learn, ~data.learn))
    assert not learned & scored
    assert len(learned) == len(scored) == 20
    assert data.learn.equal(small("gas").learn) == (number == 0)


@pytest.fixture
def watch(monkeypatch):
    """What takes long to learn learns nothing, and is watched."""

    def unlearned(make, options, patterns, *data):
        return baselines.Compared(patterns.double(), lambda asked: asked, baselines.METRICS["cosine"])

    watch = Watch(monkeypatch).on(baselines, "tuned", unlearned)
    for kind in (AdaptiveHopfield, BayesianHopfield):
        watch.on(kind, "fit", lambda memory, *data, **options: memory)
    return watch


def answers(made, queries):
    """What is recalled, and how sure a memory is of it."""
    return made.recall(queries.to(made.patterns)) if isinstance(made, AssociativeMemory) else made.first(queries)


@pytest.mark.parametrize("name", MODELS)
def test_no_model_learns_from_what_is_scored_nor_from_labels_that_it_must_not_have(name, watch):
    data, model = small("gas"), MODELS[name]
    secret = torch.ones_like(data.learn) if model.labels == 0 else ~data.learn
    # No pattern has the number that stands for a secret origin.
    origins = data.origins.masked_fill(secret, len(data.patterns))
    made = model.build(data._replace(queries=poisoned(data.queries, ~data.learn), origins=origins), 1)
    for call in watch.calls:
        assert bool(call.queries.isfinite().all())
        assert call.origins is None or int(call.origins.max()) < len(data.patterns)
    asked = data.queries[~data.learn]
    torch.testing.assert_close(answers(made, asked), answers(model.build(data, 1), asked))


@pytest.mark.parametrize("name", [name for name in MODELS if 0 < MODELS[name].labels < float("inf")])
def test_no_model_is_given_more_labels_than_it_says(name, watch):
    watch.on(baselines, "procrustes").on(baselines, "whitening")
    origins = torch.arange(5000)
    MODELS[name].build(Measured(torch.rand(5000, 2), torch.rand(5000, 2), origins, origins % 2 == 0), 0)
    (call,) = watch.calls
    assert int((call.origins >= 0).sum()) == MODELS[name].labels


def test_what_is_scored_are_the_items_that_were_not_learned_from(monkeypatch):
    asked, data = [], small("gas")
    guess = SimpleNamespace(first=lambda queries: asked.append(queries) or torch.zeros(len(queries)))
    monkeypatch.setattr(datasets, "load", small)
    monkeypatch.setitem(MODELS, "guess", real_models.Model(lambda data, seed: guess, "nothing", False, None))
    real.score("gas", "guess", 0, real.Config())
    assert rows(*asked) == rows(data.queries[~data.learn])


def test_a_small_set_asks_for_the_same_items():
    whole = small("gas")
    few = real.small(whole, items=10, queries=30)
    assert (len(few.patterns), len(few.queries)) == (10, 30)
    for query, origin in zip(few.queries, few.origins, strict=True):
        row = int((whole.queries == query).all(1).nonzero())
        assert few.patterns[origin].equal(whole.patterns[whole.origins[row]])


def test_models_take_part_where_they_are_meant_to():
    data = small("gas")
    meant = {name: {model for model in MODELS if MODELS[model].suits(name, data)} for name in ("gas", "ms2")}
    assert "spectral entropy" in meant["ms2"] - meant["gas"]
    assert not any(MODELS[model].labels in (500, 2000) for model in meant["gas"]), "there are but 80 queries"
    suited = {model for model in MODELS if MODELS[model].suits("embeddings-wide", wide("wide"))}
    assert suited == {
        "self-learned rotation",
        "VecMap",
        "ridge",
        "CSLS ridge",
        "Procrustes",
        "residual MLP",
        "b-hop*",
        "b-hop 10",
        "b-hop",
    }
    assert suited == {model for model in MODELS if MODELS[model].suits("text-glove", wide("wide"))}


def test_a_model_that_joins_further_data_leaves_what_it_is_made_of_as_it_was(monkeypatch):
    data, models = small("gas"), Registry("model")
    monkeypatch.setattr(real_models, "MODELS", models)

    @real_models.model("drift", learns=real_models.NOTHING, for_data=real_models.of("gas"))
    def drift(data, seed):
        return AssociativeMemory(data.patterns, "dot", "argmax")

    before = real.lineage.fingerprint(models["drift"].build)
    real_models.also_for(real_models.of("smoke"), "drift")
    assert [models["drift"].suits(name, data) for name in ("gas", "smoke-old", "wifi")] == [True, True, False]
    assert models["drift"].build is drift and real.lineage.fingerprint(drift) == before
    with pytest.raises(ValueError, match="unknown model 'guess'"):
        real_models.also_for(real_models.of("smoke"), "guess")


def done(model, *accuracies):
    """What splits of ten items each would leave in a report."""
    return [
        {"data": "gas", "model": model, "split": split, "items": [10, 10], "accuracy": accuracy}
        for split, accuracy in enumerate(accuracies)
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "holds"),
    [(0.79, 0.8, True), (0.77, 0.8, False), (0.9, 0.8, True)],
)
def test_a_law_says_whether_ours_is_behind_what_anyone_would_try_first(ours, theirs, holds):
    # The field's own is ahead of both, and no plain one.
    parts = [done("ridge", theirs, theirs), done("orthogonal projection", 0.95, 0.95), done("b-hop", ours, ours)]
    config = real.Config(("gas",), ("ridge", "orthogonal projection", "b-hop"), runs=2)
    result = real.summary(config, {}, [one for part in parts for one in part])
    law = result["rows"][-1]["plain"]
    assert (law["model"], law["holds"]) == ("ridge", holds)
    assert tables.never_behind(result).lines[0][-1] == ("yes" if holds else "**no**")


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [((0.4, 1.0), "cannot be told"), ((0.79, 0.81), "yes"), ((0.7, 0.72), "**no**"), ((0.99, 1.0), "yes")],
)
def test_a_law_is_not_kept_where_splits_cannot_tell(ours, verdict):
    config = real.Config(("gas",), ("ridge", "b-hop"), runs=2)
    result = real.summary(config, {}, [*done("ridge", 0.8, 0.82), *done("b-hop", *ours)])
    law, (line,) = result["rows"][-1]["plain"], tables.never_behind(result).lines
    assert line[-1] == verdict and law["told"] == (verdict != "cannot be told")
    assert float(line[4]) == pytest.approx(law["difference"]["mean"], abs=1e-3)


def test_ours_stands_beside_the_best_that_was_given_no_more_labels():
    config = real.Config(("gas",), ("distance", "cosine", "ridge", "b-hop*", "b-hop"), runs=2)
    parts = [
        done("distance", 0.3, 0.5),
        done("cosine", 0.9),
        done("ridge", 0.8, 0.8),
        done("b-hop*", 0.6, 0.8),
        done("b-hop", 0.7, 0.8),
    ]
    rows = {row["model"]: row for row in real.summary(config, {}, [one for part in parts for one in part])["rows"]}
    assert rows["b-hop*"]["best_other"]["model"] == "distance", "cosine was not there in both splits"
    assert rows["b-hop*"]["difference"] == {"mean": 0.3, "low": 0.3, "high": 0.3}
    assert rows["b-hop"]["best_other"]["model"] == "ridge"
    assert rows["b-hop"]["difference"]["low"] < -0.05 < rows["b-hop"]["difference"]["high"]
    assert "best_other" not in rows["ridge"]


def test_a_set_and_a_model_join_by_registering_themselves(monkeypatch):
    """In the experiment, in its options, in the terminal and on the page, with nothing else edited."""
    sets, models = Registry("data set"), Registry("model")
    monkeypatch.setattr("ahop.datasets.base.ENTRIES", sets)
    monkeypatch.setattr(datasets, "ENTRIES", sets)
    for module, name in ((real, "MODELS"), (real_models, "MODELS"), (real_data, "MEASURED")):
        monkeypatch.setattr(module, name, models)

    @datasets.register("smoke", about="made up", title="Smoke")
    def smoke() -> Measured:
        return small("smoke")

    def second() -> Measured:
        return small("smoke")

    @real_models.model("first", learns=real_models.NOTHING)
    def first(data, seed):
        return AssociativeMemory(data.patterns, "dot", "argmax")

    assert real.Config() == real.Config(data=("smoke",), models=("first",))
    grid = tables.real_models(real.run(real.Config(runs=1)))
    assert grid.head == ["", "learns from", "Smoke"]
    assert grid.lines[0][:2] == ["first", "nothing"]
    with pytest.raises(ValueError, match="unknown model 'b-hop'; known: 'first"):
        real.Config(models=("b-hop",))
    with pytest.raises(ValueError, match=r"learns must be one of 'nothing', .*, got 'books'"):
        real_models.model("second", learns="books")
    with pytest.raises(ValueError, match="data set 'smoke' is known already"):
        datasets.register("smoke", about="another's")(second)
    with pytest.raises(TypeError, match="data set 'mute' must say what it returns"):
        datasets.register("mute", about="of no kind")(lambda: small("mute"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--data", "smoke"], "got 'smoke'"), (["--models", "guess"], "unknown model 'guess'")],
)
def test_unknown_names(arguments, message):
    result = CliRunner().invoke(app, ["real", *arguments])
    assert result.exit_code == 2
    assert message in result.output


def test_a_model_that_is_meant_for_other_data_is_named(monkeypatch):
    monkeypatch.setattr(datasets, "load", small)
    result = CliRunner().invoke(app, ["real", "--runs", "1", "--data", "gas", "--models", "distance,ranks,b-hop 500"])
    assert result.exit_code == 0 and result.output.rstrip().endswith("than there are: b-hop 500, ranks.")


@pytest.mark.parametrize("similarity", [Likelihood(8, 2), Regimes([Likelihood(8), Likelihood(8)]), Correlated(8, 2)])
def test_what_was_learned_can_be_drawn(similarity, tmp_path):
    plots.corruption(similarity, tmp_path / "learned.png")
    assert (tmp_path / "learned.png").stat().st_size > 5000


def test_only_what_was_learned_can_be_drawn(tmp_path):
    with pytest.raises(TypeError, match=r"similarity must be a likelihood \(a Density\), got Distance"):
        plots.corruption(Distance(), tmp_path / "learned.png")


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A machine without data, and what a run would be of."""
    monkeypatch.delenv("AHOP_DATA", raising=False)
    monkeypatch.setenv("AHOP_CACHE", str(tmp_path / "cache"))
    configs = []

    def run(config, out, workers):
        configs.append(config)
        return {"rows": [], "quick": True}

    monkeypatch.setattr(real, "run", run)
    return configs


def test_a_quick_run_leaves_out_what_is_not_here_and_says_so(fresh, monkeypatch):
    gas = replace(datasets.ENTRIES["gas"], files=())
    monkeypatch.setitem(datasets.ENTRIES, "gas", gas)
    result = CliRunner().invoke(app, ["real", "--quick"])
    assert result.exit_code == 0 and fresh[0].data == ("gas",)
    line = result.output.splitlines()[0]
    assert line.startswith("Not here, and left out: tablets, wifi,") and line.endswith("how to get one.")


@pytest.mark.slow
def test_a_quick_run_needs_no_data(fresh, monkeypatch):
    result = CliRunner().invoke(app, ["real", "--quick"])
    assert result.exit_code == 0 and fresh[0].data == ("digits-again",)
    assert "Instead of all: digits-again." in result.output
    monkeypatch.undo()
    done = real.score("digits-again", "b-hop*", 0, fresh[0])
    assert done["accuracy"] > 0.5


def test_a_whole_run_and_one_that_names_its_data_are_of_just_those(fresh):
    for arguments, data in (([], datasets.names_of(Measured)), (["--quick", "--data", "gas"], ("gas",))):
        assert CliRunner().invoke(app, ["real", *arguments]).exit_code == 0
        assert fresh.pop().data == data
