import json

import pytest
from tests.guards import Watch, apart, rows
from typer.testing import CliRunner

from ahop.memories import AdaptiveHopfield, BayesianHopfield
from ahop.similarity.perceptron import Perceptron
from ahop.variants import Biased, Samples
from ahop_paper import ablations, retrieval, worlds
from ahop_paper.commands import app
from ahop_paper.retrieval import Config, Setting, draw_patterns

SMALL = ["--patterns", "20", "--samples", "30", "--queries", "30", "--runs", "2", "--difficulty", "0.3"]


def call(*arguments):
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, list(arguments))


# Thirty queries are too few for a memory without labels.
@pytest.mark.filterwarnings("ignore:the .* queries fit these patterns no better")
@pytest.mark.slow
def test_the_benchmark_writes_what_it_prints(tmp_path, monkeypatch):
    monkeypatch.setattr(Perceptron.__init__, "__defaults__", (16, 0))
    out, plot = tmp_path / "out.json", tmp_path / "plot.png"
    result = call(
        "retrieval", *SMALL, "--runs", "1", "--dim", "8", "--setting", "0.5,0,0", "--out", str(out), "--plot", str(plot)
    )
    assert result.exit_code == 0, result.output
    report = json.loads(out.read_text())
    assert plot.stat().st_size > 10_000
    models = {row["model"] for row in report["rows"]}
    assert models == {*Config().models, "oracle"}
    assert {row["setting"] for row in report["rows"]} == {"difficulty 0.3", "mask 0.5"}
    for row in report["rows"]:
        assert len(row["accuracy"]["runs"]) == 1
        mean = f"{row['accuracy']['mean']:.3f}".removeprefix("0")
        assert mean in result.output
        assert row["fraction_of_oracle"]["mean"] == 1 or row["model"] != "oracle"
    assert report["config"]["seed"] == 0


@pytest.mark.slow
def test_images_can_be_looked_at(tmp_path):
    picture = tmp_path / "digits.png"
    result = call("retrieval", *SMALL, "--models", "m-hop,a-hop", "--data", "digits", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    assert picture.stat().st_size > 10_000


SIZES = {"patterns": 16, "dim": 8, "samples": 24, "queries": 30, "runs": 2}
BENCHMARKS = {
    retrieval: lambda *models: Config(models=models, **SIZES),
    worlds: lambda *models: worlds.Config(("noise of variance .7",), models, **SIZES),
    ablations: lambda *models: ablations.Config(**SIZES),
}


@pytest.fixture
def watch(monkeypatch):
    """Memories that learn nothing, so that all that counts is which queries they are given to learn from."""
    watch = Watch(monkeypatch)
    for kind in (AdaptiveHopfield, BayesianHopfield):
        watch.on(kind, "fit", lambda memory, *data, **options: memory)
    return watch


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_no_query_is_scored_that_was_learned_from(benchmark, watch):
    # Worlds are scored as retrieval is.
    watch.on(retrieval if benchmark is worlds else benchmark, "evaluate")
    benchmark.run(BENCHMARKS[benchmark]("a-hop", "b-hop*", "b-hop"))
    learned, scored = watch.of("fit"), watch.of("evaluate")
    apart(rows(*(call.queries for call in learned)), rows(*(call.samples.queries for call in scored)))


@pytest.mark.parametrize("benchmark", [retrieval, worlds])
def test_a_model_without_labels_is_given_none(benchmark, watch):
    benchmark.run(BENCHMARKS[benchmark]("b-hop*"))
    assert watch.calls and all(call.origins is None for call in watch.calls)


def test_the_same_seed_gives_the_same_report():
    config = Config(models=("a-hop",), patterns=30, dim=8, samples=30, queries=40, runs=1)
    assert retrieval.run(config)["rows"] == retrieval.run(config)["rows"]


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    """What is added later is scored on the same queries, and beside the same ceiling."""
    out = tmp_path / "out.json"
    small = {"patterns": 20, "dim": 8, "samples": 30, "queries": 30, "runs": 2}
    first = retrieval.run(Config(models=("m-hop",), **small), out)
    both = retrieval.run(Config(models=("m-hop", "centred L1"), **small), out)
    assert both["done"][: len(first["done"])] == first["done"]
    assert len(both["done"]) == len(first["done"]) + 4, "one model in two settings with two seeds"
    assert both["rows"] == retrieval.run(Config(models=("m-hop", "centred L1"), **small))["rows"]
    with pytest.raises(ValueError, match="different settings; choose another file"):
        retrieval.run(Config(models=("m-hop",), **{**small, "samples": 31}), out)


@pytest.mark.parametrize("name", retrieval.BASELINES)
def test_baselines_learn_from_what_the_memories_learn_from(name):
    """And from labels only those that say so."""
    patterns = draw_patterns(Config(patterns=30, dim=8), seed=0)
    world = Biased(1.0, seed=0)
    seen, test = world.sample(patterns, 60), world.sample(patterns, 40)
    made = retrieval.prepare(name, patterns, seen, world)
    found = retrieval.scored(made, patterns, test)
    assert found.accuracy == found.first_choice > 0.9
    wanted = patterns[test.origins]
    assert found.error == pytest.approx(
        float((retrieval.answers(made, patterns, test.queries) - wanted).square().mean())
    )
    without = Samples(seen.queries, seen.origins.flip(0))
    same = retrieval.prepare(name, patterns, without, world).first(test.queries).equal(made.first(test.queries))
    assert same or retrieval.MODELS[name].labels


def test_the_papers_figures_stand_where_the_paper_has_them():
    config = Config()
    assert retrieval.paper_figure(config, Setting(0.4, 0.4, 0.4), "a-hop") == (0.724, 0.106)
    assert retrieval.paper_figure(config, Setting(0.4, 0.4, 0.4), "mlp") is None
    assert retrieval.paper_figure(config, Setting(0.4, 0.4, 0.0), "a-hop") is None
    assert retrieval.paper_figure(Config(patterns=100), Setting(0.4, 0.4, 0.4), "a-hop") is None


@pytest.mark.parametrize("command", [["--help"], ["prepare", "--help"], ["retrieval", "--help"]])
def test_commands_explain_themselves(command):
    result = call(*command)
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "x-hop"], "got 'x-hop'"),
        (["--data", "cats"], "data must be one of 'synthetic', 'digits', 'mnist', got 'cats'"),
        (["--preset", "other"], "preset must be one of"),
        (["--setting", "1,2"], "setting must be three numbers MASK,NOISE,BIAS, got '1,2'"),
        (["--runs", "0"], "runs must be at least 1, got 0"),
        (["--data", "digits", "--patterns", "5000"], "patterns must be at most 1797"),
        (["--picture", "x.png"], "picture needs images"),
        (["--setting", "[/red]"], "got '[/red]'"),
        (["--out", "."], ". must be a file that ends in .json"),
        (["--plot", "x.gif"], "x.gif must be a file that ends in .pdf or .png or .svg"),
        (["--patterns", "0"], "patterns must be at least 1, got 0"),
        (["--difficulty", "-1"], "mask must not be negative"),
    ],
)
def test_wrong_arguments_end_in_one_line(arguments, message):
    result = call("retrieval", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert message in " ".join(result.output.split())
