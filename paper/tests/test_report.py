import json

import pytest

from ahop_paper import report


def test_a_report_tells_how_long_each_sitting_took(tmp_path):
    out = tmp_path / "some.json"
    head = report.stamp("some", {"size": 3, "runs": 1}, __file__)
    assert head["sittings"][0]["machine"].endswith("cores")
    head["sittings"][0]["began"] = "2026-01-01T00:00:00+00:00"
    first, second = ({"seed": seed, "sitting": 0} for seed in (1, 2))
    report.write({**head, "done": [first]}, out)
    report.write({**head, "done": [first, second]}, out)
    (sitting,) = json.loads(out.read_text())["sittings"]
    assert sitting["seconds"] > 1_000_000
    again, done = report.resume(out, report.stamp("some", {"size": 3, "runs": 2}, __file__), free=("runs",))
    assert done == [first, second]
    report.write({**again, "done": [*done, {"seed": 3}]}, out)
    before, now = json.loads(out.read_text())["sittings"]
    assert before == sitting and now["seconds"] < 60


def test_each_sitting_keeps_its_own_versions(tmp_path, monkeypatch):
    out = tmp_path / "some.json"
    monkeypatch.setattr(report, "__version__", "0.0.1")
    report.write({**report.stamp("some", {"size": 3}, __file__), "done": [{"seed": 1, "sitting": 0}]}, out)
    monkeypatch.setattr(report, "__version__", "0.0.2")
    again, _ = report.resume(out, report.stamp("some", {"size": 3}, __file__), free=())
    assert [sitting["versions"]["ahop"] for sitting in again["sittings"]] == ["0.0.1", "0.0.2"]


def test_nothing_was_done_in_a_file_that_is_not_there(tmp_path):
    head = report.stamp("some", {"size": 3}, __file__)
    fresh, none = report.resume(tmp_path / "none.json", head, free=())
    assert fresh is head and none == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (text, r"some\.json is no report of a run that can be resumed; choose another file")
            for text in (
                *("{", "", "[]", "3", "null", '"words"', "{}", '{"done": 3}', "\0\1\2"),
                *(
                    json.dumps({"experiment": "some", "config": {"size": 3}, "done": [], **alien})
                    for alien in (
                        {"done": 5},
                        {"done": [1]},
                        {"done": [{"sitting": 7}]},
                        {"config": [1]},
                        {"versions": 7},
                        {"sittings": 1},
                    )
                ),
            )
        ),
        ('{"experiment": "some", "config": {"size": 4}, "done": []}', "holds a run with different settings"),
    ],
)
def test_a_file_that_cannot_be_resumed_is_refused_in_one_line(tmp_path, text, message):
    out = tmp_path / "some.json"
    out.write_text(text)
    with pytest.raises(ValueError, match=message):
        report.resume(out, report.stamp("some", {"size": 3}, __file__), free=())
