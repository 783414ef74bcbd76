import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ahop_paper import report
from ahop_paper.commands import app
from ahop_paper.parts import BENCHMARKS, PARTS, TWELVE, Run


def test_the_parts_are_all_there():
    assert len({part.file for part in PARTS}) == len(PARTS)
    assert len(set(TWELVE)) == 12
    shown = " ".join(part.shows for part in PARTS)
    for what in ("Figure 1", "main figure", "retrieval figure", "Table 2", "Table 3", "Table 4", "ablations", "timing"):
        assert what in shown


def settings_of(part, monkeypatch):
    """What a part asks its experiment for, in full, as it would be read back from a report."""
    captured = {}

    def stamp(name, config, *_):
        captured.update(json.loads(json.dumps({"experiment": name, "config": config})))
        raise InterruptedError

    monkeypatch.setattr(report, "stamp", stamp)
    with pytest.raises(InterruptedError):
        part.make(Run(Path("nowhere"), full=True, device="cuda"), Path("nowhere/x.json"), math.inf)
    return captured


RESULTS = sorted((Path(__file__).parents[2] / "results").glob("*.json"))
BY_FILE = {part.file: part for part in PARTS}


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_every_result_is_made_by_a_command(path, monkeypatch):
    """By a part of ``ahop-paper paper`` with the settings that stand in the report, or by a benchmark that is there."""
    found = json.loads(path.read_text())
    if path.name in BENCHMARKS:
        python, script, *_ = BENCHMARKS[path.name].split()
        assert python == "python" and (path.parents[1] / script).is_file()
        assert Path(script).stem == found["experiment"]
        return
    assert path.name in BY_FILE, "name what makes it in ahop_paper.parts"
    asked = settings_of(BY_FILE[path.name], monkeypatch)
    assert asked["experiment"] == found["experiment"]
    for key, value in found["config"].items():
        now = asked["config"].get(key)
        # Where it ran is free, and in which order. A set that has joined since voids nothing, nor does what has joined
        # the zoo, and is run when there is time.
        if (key == "data" or path.stem == "zoo") and isinstance(now, list):
            assert set(value) <= set(now)
        elif key in ("models", "worlds") and isinstance(now, list):
            assert sorted(value) == sorted(now)
        elif isinstance(value, dict):
            assert value == {name: now[name] for name in value}, key
        # The costs of a query were to be measured with the zoo, and are a benchmark now.
        elif key not in ("device", "quick", "counts"):
            assert value == now, key


def test_the_list_names_every_result():
    listed = CliRunner().invoke(app, ["paper", "--list", "--full"], env={"COLUMNS": "300"}).output
    assert all(path.name in listed for path in RESULTS)
    assert not Path("paper-full").exists()
