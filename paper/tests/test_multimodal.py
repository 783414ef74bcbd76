import json

import pytest
from tests.guards import Watch, apart, rows
from typer.testing import CliRunner

from ahop.memories import AdaptiveHopfield
from ahop_paper import multimodal
from ahop_paper.commands import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["multimodal", *arguments], env={"COLUMNS": "160"})


@pytest.mark.slow
def test_the_table_of_concepts(tmp_path, monkeypatch):
    sizes = {"concepts": (32, 128), "samples": 30, "queries": 30, "runs": 1, "dim": 8}
    monkeypatch.setattr(multimodal, "quick", lambda config: multimodal.Config(**sizes))
    out = tmp_path / "multimodal.json"
    result = invoke("--quick", "--out", str(out))
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == 2 * len(multimodal.PAPER)
    papers = {(row["first"], row["second"], row["concepts"]): row["paper"] for row in rows}
    assert papers["a-hop", "a-hop", 128] == 0.997
    assert papers["a-hop", "a-hop", 32] is papers["b-hop", "b-hop", 128] is None


def test_learning_the_damage_helps_in_both_phases():
    config = multimodal.Config(samples=256, queries=200, dim=32)
    plain, adaptive = (multimodal.retrieve(model, model, 64, 0, config) for model in ("m-hop", "a-hop"))
    assert adaptive > plain + 0.2


def test_without_damage_every_concept_is_found():
    config = multimodal.Config(mask=0.0, noise=0.0, bias=0.0, samples=64, queries=50)
    for model in ("a-hop", "centred L1"):
        assert multimodal.retrieve(model, model, 32, 0, config) == 1.0


def test_neither_memory_learns_from_what_is_scored(monkeypatch):
    watch = Watch(monkeypatch).on(AdaptiveHopfield, "fit", lambda memory, *data: memory)
    watch.on(AdaptiveHopfield, "retrieve").on(multimodal, "scored")
    multimodal.retrieve("a-hop", "a-hop", 16, 0, multimodal.Config(samples=24, queries=30, dim=8))
    (first, second), (judged,) = watch.of("fit"), watch.of("scored")
    # The first memory is asked for what the second learns from, and then for what is scored.
    seen, asked = [call for call in watch.of("retrieve") if call.self is first.self]
    assert rows(seen.queries) == rows(first.queries)
    apart(rows(asked.queries), rows(first.queries))
    apart(rows(judged.test.queries), rows(second.queries))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concepts": ()}, "concepts must name at least one number"),
        ({"concepts": (0,)}, "concepts must be at least 1, got 0"),
        ({"samples": 3}, "samples must be at least 5 and runs 1, got 3 and 5"),
    ],
)
def test_what_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        multimodal.Config(**options)
