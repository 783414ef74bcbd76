from dataclasses import replace

import pytest
from typer.testing import CliRunner

from ahop_paper import timing
from ahop_paper.commands import app


@pytest.mark.slow
def test_times_on_a_processor_are_ratios_to_the_first_size(monkeypatch):
    # As if the paper had been content with little.
    monkeypatch.setattr(timing, "PAPER", {(sort, 8, 60): timing.PAPER[sort, 64, 2048] for sort in (True, False)})
    config = timing.Config(sizes=((8, 60), (4, 30)), samples=5, batch=4, repetitions=1)
    rows = timing.run(config)["rows"]
    assert [(row["dim"], row["patterns"], row["sort"]) for row in rows] == [
        *((8, 60, True), (8, 60, False), (4, 30, True), (4, 30, False))
    ]
    assert rows[0]["fit"] == rows[0]["adam"] == rows[0]["query"] == 1
    assert all(row["fit"] > 0 and row["query"] > 0 for row in rows)
    # The paper's figures, as far as it has any, are ratios too.
    assert rows[0]["paper"] == {"fit": 1, "query": 1}
    assert rows[1]["paper"]["fit"] == round(2093 / 840, 2)
    assert rows[2]["paper"] == {"fit": None, "query": None}


@pytest.mark.slow
def test_the_command_prints_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "quick", lambda config: replace(config, sizes=((8, 60),), repetitions=1))
    out = tmp_path / "timing.json"
    result = CliRunner().invoke(app, ["timing", "--quick", "--samples", "3", "--batch", "4", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "relative to the first cell" in " ".join(result.output.split())
    assert out.exists()


def test_bad_sizes_and_devices_are_refused_in_one_line():
    for arguments, words in (
        (["--batch", "0"], "batch must be at least 1, got 0"),
        (["--device", "toaster"], "device must be one that PyTorch can use here, got 'toaster'"),
    ):
        result = CliRunner().invoke(app, ["timing", "--quick", *arguments])
        assert result.exit_code == 2
        assert words in result.output


def test_a_report_needs_a_file(tmp_path):
    for command in ("timing", "real", "worlds"):
        result = CliRunner().invoke(app, [command, "--out", str(tmp_path)])
        assert result.exit_code == 2
        assert "must be a file that ends in .json" in result.output.replace("\n", "")
