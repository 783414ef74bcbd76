import numpy as np
import pytest
import torch

from ahop.playground import upload, yours
from ahop.playground.tabs.yours import scored
from ahop.playground.upload import Data, File, UploadError
from ahop.variants import Biased, Compose, Noisy

PATTERNS = torch.rand(16, 5, generator=torch.Generator().manual_seed(2)) * 2 - 1
WORLD = Compose([Biased(0.5), Noisy(0.05)])


@pytest.fixture
def data():
    seen = WORLD.sample(PATTERNS, 60, torch.Generator().manual_seed(3))
    return Data(PATTERNS, seen.queries, seen.origins)


def test_no_origin_is_learned_from_and_scored(data):
    unknown = torch.where(torch.arange(60) < 10, -1, data.origins)
    halves = yours.split(data._replace(origins=unknown))
    learned, tested = (set(unknown[half].tolist()) for half in halves)
    assert learned and tested and not learned & tested and -1 not in learned | tested
    assert int(halves.learn.sum() + halves.score.sum()) == 50


def test_too_little_to_hold_out_is_refused_in_a_sentence(data):
    with pytest.raises(UploadError, match="of 12 queries"):
        yours.split(data._replace(queries=data.queries[:12], origins=data.origins[:12]))
    with pytest.raises(UploadError, match="No origin is known"):
        yours.split(data._replace(origins=None))


@pytest.mark.slow
def test_every_model_has_a_line_and_b_hop_learns_the_shift(data):
    rows = {row.name: row for row in yours.rows(data, yours.split(data))}
    assert list(rows) == list(yours.MODELS) and not any(row.problem for row in rows.values())
    assert rows["b-hop"].right > 0.9 > rows["m-hop"].right
    for row in rows.values():
        assert 0 <= row.calibration <= 1 and all(0 <= value <= 1.001 for point in row.curve for value in point)


def test_a_model_that_cannot_take_part_says_why_and_the_others_go_on(data, monkeypatch):
    def create(name, patterns):
        raise ValueError("it cannot") if name == "u-hop" else LookupError

    monkeypatch.setattr(yours, "MODELS", {"u-hop": "nothing"})
    monkeypatch.setattr(yours, "create", create)
    (row,) = yours.rows(data, yours.split(data))
    assert row.problem == "it cannot"


def file_of(data, kind):
    if kind == "npz":
        # In double precision, as files have them; the page learns in single.
        return {"patterns": data.patterns.double(), "queries": data.queries.double(), "origins": data.origins}
    names = [f"x{place}" for place in range(data.patterns.shape[1])]
    lines = [",".join(["kind", "item", *names])]
    for what, rows, items in (
        ("pattern", data.patterns, range(len(data.patterns))),
        ("query", data.queries, data.origins),
    ):
        lines += [
            ",".join([what, str(int(item)), *map(str, row.tolist())]) for item, row in zip(items, rows, strict=True)
        ]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", pytest.param("npz", marks=pytest.mark.slow)])
@pytest.mark.parametrize("labelled", [pytest.param(True, marks=pytest.mark.slow), False])
def test_the_five_lines_do_what_the_page_did(data, kind, labelled, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    content = file_of(data, kind)
    if kind == "npz":
        np.savez("mine.npz", **content)
    else:
        (tmp_path / "mine.csv").write_text(content)
    read = upload.data(File(f"mine.{kind}", (tmp_path / f"mine.{kind}").read_bytes()))
    lines = yours.code(f"mine.{kind}", labelled)
    assert len(lines.splitlines()) == 5
    exec(compile(lines, "five lines", "exec"), {})
    said = capsys.readouterr().out
    assert said == "\n\n".join(yours.told(read if labelled else read._replace(origins=None))) + "\n"


def test_the_example_is_a_file_that_the_page_reads():
    found = upload.data(yours.example())
    assert found.patterns.shape == (60, 64) and int((found.origins >= 0).sum()) == 240


def test_a_bad_file_is_a_message_and_no_error():
    (text,) = scored(File("x.csv", b"nothing"))
    assert 'role="alert"' in text and "kind" in text


def test_queries_without_origins_are_learned_from_and_told(data):
    lines = file_of(data._replace(origins=torch.full((60,), -1)), "csv").replace("query,-1,", "query,,")
    *_, last = scored(File("x.csv", lines.encode()))
    assert "origins of 0 queries are known" in last and "What happened to the queries" in last and "<table" not in last
