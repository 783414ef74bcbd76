import json

import pytest
from typer.testing import CliRunner

from ahop.paper import retrieval
from ahop.paper.commands import app
from ahop.paper.retrieval import Config, Setting
from ahop.similarity.perceptron import Perceptron

SMALL = ["--patterns", "20", "--samples", "30", "--queries", "30", "--runs", "2", "--difficulty", "0.3"]


def call(*arguments):
    return CliRunner(env={"COLUMNS": "100"}).invoke(app, list(arguments))


def test_the_benchmark_writes_what_it_prints(tmp_path, monkeypatch):
    monkeypatch.setattr(Perceptron.__init__, "__defaults__", (16, 0))
    out, plot = tmp_path / "deep" / "out.json", tmp_path / "plot.png"
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


def test_images_can_be_looked_at(tmp_path):
    picture = tmp_path / "digits.png"
    result = call("retrieval", *SMALL, "--models", "m-hop,a-hop", "--data", "digits", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    assert picture.stat().st_size > 10_000


def test_the_same_seed_gives_the_same_report():
    config = Config(models=("a-hop",), patterns=30, dim=8, samples=30, queries=40, runs=1)
    assert retrieval.run(config)["rows"] == retrieval.run(config)["rows"]


def test_the_papers_figures_stand_where_the_paper_has_them():
    config = Config()
    assert retrieval.paper_figure(config, Setting(0.4, 0.4, 0.4), "a-hop") == (0.724, 0.106)
    assert retrieval.paper_figure(config, Setting(0.4, 0.4, 0.4), "mlp") is None
    assert retrieval.paper_figure(config, Setting(0.4, 0.4, 0.0), "a-hop") is None
    assert retrieval.paper_figure(Config(patterns=100), Setting(0.4, 0.4, 0.4), "a-hop") is None


@pytest.mark.parametrize("command", [["models"], ["datasets"], ["--help"], ["retrieval", "--help"]])
def test_commands_explain_themselves(command):
    result = call(*command)
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "q-hop"], "got 'q-hop'"),
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
