import inspect
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ahop
from ahop import datasets
from ahop.cli.moved import MOVED
from ahop_paper import (
    ablations,
    blends,
    claims,
    generators,
    mil,
    multimodal,
    plots,
    real,
    retrieval,
    tabular,
    timing,
    worlds,
    zoo,
)
from ahop_paper import report as reports
from ahop_paper.commands import app
from ahop_paper.retrieval import Setting

COMMANDS = {command.name or command.callback.__name__: command.callback for command in app.registered_commands}
WORKS = (ablations, blends, claims, generators, mil, multimodal, real, retrieval, tabular, timing, worlds, zoo)


TAKEN = {
    ("retrieval", "models"): ("b-hop*", "a-hop-adam", "mlp", "oracle", "hop", "k2-hop"),
    ("retrieval", "data"): ("synthetic", "digits", "mnist"),
    ("generators", "data"): tuple(generators.LEVELS),
    ("worlds", "models"): ("b-hop*", "oracle", "s-hop"),
    ("worlds", "world"): tuple(map(repr, worlds.WORLDS)),
    ("zoo", "world"): tuple(map(repr, zoo.TRIALS)),
    ("real", "models"): tuple(real.MODELS),
    ("real", "data"): datasets.names_of(datasets.Measured),
    ("mil", "models"): tuple(mil.POOLINGS),
    ("mil", "data"): datasets.names_of(datasets.Bags),
    ("images", "models"): ("m-hop", "s-hop", "k-hop", "a-hop", "a-hop-1"),
    ("images", "data"): datasets.names_of(datasets.Photos),
    ("tabular", "models"): tuple(tabular.MODELS),
    ("tabular", "data"): datasets.names_of(datasets.Table),
    ("paper", "only"): ("claims.json", "timing-cpu.json"),
}


def taking(option):
    """The commands that have this option."""
    return [name for name, call in COMMANDS.items() if option in inspect.signature(call).parameters]


@pytest.fixture(autouse=True)
def no_work(monkeypatch, tmp_path):
    """Nothing is to be worked on before a bad argument is found, and nothing is to be left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AHOP_DATA", raising=False)

    def work(*_, **__):
        raise AssertionError("the work has begun")

    for module in WORKS:
        monkeypatch.setattr(module, "run", work)
    monkeypatch.setattr("ahop_paper.images.run", work)
    monkeypatch.setattr("ahop_paper.paper.make", work)


def refused(*arguments):
    """The one line that a command ends in."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 2, (arguments, result.output, result.exception)
    (line,) = result.output.splitlines()
    return line


@pytest.mark.parametrize("command", taking("seed"))
def test_a_seed_that_no_library_can_take_is_refused_in_one_line(command):
    for seed in ("99999999999999999999", str(10**9 + 1), "-1", "-99999999999999999999"):
        line = refused(command, "--seed", seed)
        assert line == f"error: seed must be an integer between 0 and 1000000000, got {seed}"


@pytest.mark.parametrize("option", ["models", "data", "only"])
def test_an_empty_list_of_names_is_refused_in_one_line(option):
    for command in taking(option):
        if (command, option) in (("images", "data"), ("retrieval", "data"), ("generators", "data")):
            continue  # One name, not a list.
        for text in ("", " , ,"):
            line = refused(command, f"--{option}", text)
            assert line == f"error: {option} must name at least one, separated by commas; got {text!r}"


@pytest.mark.parametrize("option", ["models", "data", "only", "world"])
def test_names_that_are_not_known_are_refused_in_one_line_that_lists_those_that_are(option):
    names = ",".join(f"x{place}" for place in range(300))
    for command in taking(option):
        line = refused(command, f"--{option}", names)
        assert line.startswith("error: ") and "'x0" in line
        missing = [name for name in TAKEN[command, option] if name not in line]
        assert not missing, f"{command} takes {missing} as well"


@pytest.mark.parametrize(
    "command",
    ["retrieval", *(pytest.param(one, marks=pytest.mark.slow) for one in taking("out") if one != "retrieval")],
)
def test_a_report_that_could_not_be_written_is_refused_before_the_work(command, tmp_path):
    (tmp_path / "file").touch()
    long = "x" * 250 + ".json"
    for out in ("file/x.json", "/proc/nowhere/x.json", long):
        assert refused(command, "--out", out).startswith(f"error: {out} cannot be written: ")
    (tmp_path / "folder.json").mkdir()
    assert refused(command, "--out", "folder.json") == "error: folder.json must be a file that ends in .json"
    assert refused(command, "--out", "") == "error: . must be a file that ends in .json"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.json"]


@pytest.mark.parametrize("command", taking("out"))
def test_a_report_in_a_folder_that_is_not_there_is_refused_before_the_work(command, tmp_path):
    assert refused(command, "--out", "resluts/x.json") == (
        "error: resluts/x.json cannot be written: the folder 'resluts' does not exist"
    )
    assert not list(tmp_path.iterdir())


def test_pictures_and_folders_that_are_not_there_are_refused_before_the_work(tmp_path):
    for option in ("--plot", "--picture"):
        line = refused("retrieval", "--data", "digits", option, "new/x.png")
        assert line == "error: new/x.png cannot be written: the folder 'new' does not exist"
    for command in ("figures", "paper"):
        assert refused(command, "--folder", "new").endswith("the folder 'new' does not exist")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_folder_that_a_command_names_itself_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr("ahop_paper.paper.make", lambda part, run: "made")
    for command, own in (("figures", "figures"), ("paper", "paper-quick")):
        assert CliRunner().invoke(app, [command]).exit_code == 0
        assert (tmp_path / own).is_dir()


def test_pictures_and_folders_that_could_not_be_written_are_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for option in ("--plot", "--picture"):
        line = refused("retrieval", "--data", "digits", option, "file/x.png")
        assert line.startswith("error: file/x.png cannot be written: ")
    for command in ("figures", "paper"):
        assert "cannot be written: " in refused(command, "--folder", "file")


@pytest.mark.parametrize("command", taking("runs"))
def test_no_runs_are_refused_in_one_line(command):
    assert refused(command, "--runs", "0") == "error: runs must be at least 1, got 0"


@pytest.mark.parametrize("command", taking("workers"))
def test_no_workers_are_refused_in_one_line(command):
    for count in (0, -2):
        assert refused(command, "--workers", count).startswith(
            "error: workers must be at least 1, or -1 for one per core"
        )


@pytest.mark.parametrize("command", taking("device"))
def test_a_device_that_is_not_there_is_refused_in_one_line(command):
    line = refused(command, "--device", "abacus")
    assert line == "error: device must be one that PyTorch can use here, got 'abacus'"


def test_intensities_that_cannot_be_are_refused_before_the_work():
    assert "must not be negative" in refused("retrieval", "--difficulty", "0.4", "--difficulty", "-1")
    assert "must not be negative" in refused("multimodal", "--noise", "-1")


def test_it_says_its_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0 and result.output == f"ahop-paper {ahop.__version__}\n"


def test_the_library_says_of_each_command_that_it_is_here():
    # Data sets are prepared by a part of another command there, and blends and the zoo came later.
    assert set(MOVED) == COMMANDS.keys() - {"prepare", "blends", "zoo"}


def test_a_report_outside_a_checkout_is_refused_in_one_line(tmp_path):
    line = refused("report")
    assert line.startswith(
        "error: docs/results/retrieval.md cannot be read; run ahop-paper report in a checkout of ahop"
    )
    (tmp_path / "README.md").write_text("<!-- table: worlds -->\n<!-- end of table -->")
    line = refused("report", "--document", "README.md")
    assert line.startswith("error: ") and "cannot be read; it is needed for the report" in line
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize(
    "damage",
    [
        {"rows": []},
        {"rows": [{"model": []}]},
        *(pytest.param({"rows": rows}, marks=pytest.mark.slow) for rows in ({}, None, 3, "rows", [1], {"a": 1})),
        *(pytest.param({"rows": [row]}, marks=pytest.mark.slow) for row in ({}, {"model": 1})),
        pytest.param({"config": 1, "rows": []}, marks=pytest.mark.slow),
    ],
)
def test_a_report_without_rows_is_refused_in_one_line_and_nothing_is_written(tmp_path, damage):
    """Whichever of the reports it is."""
    marks = "".join(f"<!-- table: {name} -->\n<!-- end of table -->\n" for name in ("worlds", "claims", "tables-sound"))
    results = tmp_path / "results"
    results.mkdir()
    for path in RESULTS.iterdir():
        (results / path.name).symlink_to(path)
    (tmp_path / "README.md").write_text(marks)
    for name in ("worlds", "claims", "tabular-sound"):
        path = results / f"{name}.json"
        whole = json.loads(path.read_text())
        path.unlink()
        path.write_text(json.dumps({**whole, **damage}))
        line = refused("report", "--document", "README.md")
        assert str(path.relative_to(tmp_path)) in line or "cannot be made from the reports in results" in line
        path.unlink()
        path.symlink_to(RESULTS / path.name)
    assert (tmp_path / "README.md").read_text() == marks
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "results"]


def test_a_configuration_refuses_what_a_command_refuses():
    for config in (ablations, generators, mil, multimodal, real, retrieval, tabular, timing, worlds):
        for seed in (-1, 10**20, 0.5, None):
            with pytest.raises(ValueError, match="seed must be an integer between 0 and"):
                config.Config(seed=seed)
    for config, name in ((worlds, "models"), (worlds, "worlds"), (retrieval, "models"), (retrieval, "settings")):
        with pytest.raises(ValueError, match=f"{name} must (name|be) at least one, got none"):
            config.Config(**{name: ()})
    with pytest.raises(ValueError, match="got 'none'"):
        worlds.Config(models=("none",))
    with pytest.raises(ValueError, match="must not be negative"):
        retrieval.Config(settings=(Setting(0, 0, 0), Setting(-1, 0, 0)))


def test_nothing_can_be_drawn_of_a_report_without_rows(tmp_path):
    for report in ({}, {"rows": []}):
        with pytest.raises(ValueError, match="report must have rows to be drawn, got none"):
            plots.accuracy(report, tmp_path / "x.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", [mil, tabular])
@pytest.mark.parametrize(
    "one",
    [
        {},
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ({"data": "tiger"}, {"data": [], "model": "mean", "seed": 0}, None)
        ),
    ],
)
def test_an_altered_report_is_not_resumed(module, one, tmp_path, monkeypatch):
    monkeypatch.undo()
    out, config = tmp_path / "x.json", module.Config(models=module.Config.models[:1])
    monkeypatch.setattr(module, "each", lambda *_: pytest.fail("the work has begun"))
    head = {}

    def stamp(*arguments):
        head.update(reports_stamp(*arguments))
        return dict(head)

    reports_stamp = reports.stamp
    monkeypatch.setattr(reports, "stamp", stamp)
    monkeypatch.setattr(module.datasets, "load", lambda name: None)
    monkeypatch.setattr(tabular, "parts", lambda *_: None)
    with pytest.raises(BaseException, match="the work has begun"):
        module.run(config, out)
    altered = json.dumps({**head, "done": [one if one is None else {**one, "sitting": 0}]})
    out.write_text(altered)
    with pytest.raises(ValueError, match=r"x\.json is no report of a run that can be resumed; choose another file"):
        module.run(config, str(out))
    assert out.read_text() == altered
