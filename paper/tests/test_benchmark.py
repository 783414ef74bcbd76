import itertools
import json
import sys
from datetime import datetime, timedelta

import pytest

from ahop_paper import benchmark, report

DONE = []


def work(data, seed, way):
    DONE.append((data, seed, way))
    return [{"data": data, "seed": seed, "way": way, "right": seed / 2}]


def summary(done):
    return [{"fits": len(done)}]


@pytest.fixture
def run(monkeypatch):
    days = itertools.count()

    class Clock(datetime):
        @classmethod
        def now(cls, zone):
            return datetime(2026, 1, 1, tzinfo=zone) + timedelta(days=next(days))

    # No two runs begin at the same time.
    monkeypatch.setattr(report, "datetime", Clock)

    def run(*options):
        DONE.clear()
        monkeypatch.setattr(sys, "argv", ["benchmark.py", *map(str, options)])
        benchmark.run("test", __file__, None, work, summary, ("a set", "another"), range(2), ("one way", "other way"))
        return list(DONE)

    return run


def test_a_part_that_was_done_is_not_done_again(run, tmp_path):
    out = tmp_path / "out.json"
    done = run("--out", out, "--sets", "another", "--ways", "one way")
    assert done == [("another", 0, "one way"), ("another", 1, "one way")]
    done = run("--out", out, "--seeds", 1)
    assert done == [("a set", 1, "one way"), ("a set", 1, "other way"), ("another", 1, "other way")]
    assert json.loads(out.read_text())["rows"] == [{"fits": 5}]


def test_several_files_make_the_report_that_one_run_would_have_made(run, tmp_path):
    whole, one, other, joined = (tmp_path / f"{name}.json" for name in ("whole", "one", "other", "joined"))
    run("--out", whole)
    # What both have done counts once.
    run("--out", one, "--seeds", 1)
    run("--out", other, "--ways", "other way")
    run("--out", other, "--sets", "another", "--seeds", 0)
    run("--out", one, "--sets", "a set")
    assert run("--out", joined, "--join", one, other) == []

    def told(path):
        found = json.loads(path.read_text())
        done = [{key: value for key, value in row.items() if key != "sitting"} for row in found["done"]]
        return found["rows"], sorted(done, key=str)

    assert told(joined) == told(whole)


def test_what_is_left_when_the_time_is_up_is_said(run, tmp_path, capsys):
    assert run("--out", tmp_path / "out.json", "--minutes", 0) == []
    assert "parts are left" in capsys.readouterr().out
