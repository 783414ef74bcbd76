"""An index on disk: opened without being read, whole or not at all."""

import json
import os

import pytest
import torch
from tests.index.models import COUNT, DIM, MODELS, drawn, memory_of

import ahop
from ahop.index import Index
from ahop.index import view as module


@pytest.mark.parametrize("name, prior", [*((name, False) for name in MODELS), ("likelihood", True), ("regimes", True)])
def test_it_is_opened_as_it_was_saved(tmp_path, name, prior, monkeypatch):
    memory, queries = memory_of(name, prior)
    before = memory.index().recall(queries, k=3)
    memory.index().save(tmp_path)
    monkeypatch.setattr(module, "build_engine", lambda memory: pytest.fail("made anew"))
    index = ahop.load(tmp_path)
    assert isinstance(index, Index) and index.memory.index() is index
    after = index.recall(queries, k=3)
    assert after.indices.equal(before.indices)
    torch.testing.assert_close(after.probabilities, before.probabilities)
    assert index.memory.patterns.equal(memory.patterns)


def test_opening_reads_no_pattern(tmp_path):
    memory, _ = memory_of("likelihood")
    memory.index().save(tmp_path)
    (large,) = tmp_path.glob("large-*")
    content = bytearray(large.read_bytes())
    content[-1000] ^= 255
    large.write_bytes(content)
    # It is not read, so that nobody notices; who wants to know asks.
    ahop.load(tmp_path)
    with pytest.raises(ValueError, match="do not match their checksum"):
        ahop.index.verify(tmp_path)


def test_an_opened_index_grows_and_is_saved_over_itself(tmp_path):
    memory, queries = memory_of("likelihood")
    memory.index().save(tmp_path)
    index = ahop.load(tmp_path)
    index.memory.add(drawn(100, DIM, seed=30))
    index.save(tmp_path)
    again = ahop.load(tmp_path)
    assert len(again) == COUNT + 100
    assert again.recall(queries).indices.equal(index.recall(queries).indices)
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["index.json", "large", "small"]
    ahop.index.verify(tmp_path)


@pytest.mark.parametrize("damage", ["cut", "small", "page", "gone", "format", "unsigned", "recipe"])
def test_damaged_folders_get_one_clear_error(tmp_path, damage):
    memory, _ = memory_of("likelihood")
    memory.index().save(tmp_path)
    (large,), (small,), page = tmp_path.glob("large-*"), tmp_path.glob("small-*"), tmp_path / "index.json"
    if damage == "cut":
        large.write_bytes(large.read_bytes()[:-10])
    elif damage == "small":
        content = bytearray(small.read_bytes())
        content[-1] ^= 1
        small.write_bytes(content)
    elif damage == "page":
        page.write_text(page.read_text()[:50])
    elif damage == "gone":
        large.unlink()
    else:
        told = json.loads(page.read_text())
        unsigned = {key: value for key, value in told["small"].items() if key != "sha256"}
        changes = {"format": {"format": "9"}, "recipe": {"recipe": 3}, "unsigned": {"small": unsigned}}
        page.write_text(json.dumps({**told, **changes[damage]}))
    with pytest.raises((ValueError, FileNotFoundError), match=r"damaged|holds no complete index|format"):
        ahop.load(tmp_path)


def test_saving_removes_no_file_of_others(tmp_path):
    memory, _ = memory_of("likelihood")
    other = tmp_path / "model-00001-of-00002.safetensors"
    other.write_bytes(b"precious")
    for _ in range(2):
        memory.index().save(tmp_path)
    assert other.read_bytes() == b"precious"
    assert len(list(tmp_path.iterdir())) == 4


def test_a_save_that_breaks_off_leaves_what_was_there(tmp_path, monkeypatch):
    memory, queries = memory_of("likelihood")
    memory.index().save(tmp_path)
    wanted = memory.recall_exactly(queries).indices
    memory.add(drawn(50, DIM))

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("ahop.index.storage.write_atomically", fail)
    with pytest.raises(OSError, match="disk full"):
        memory.index().save(tmp_path)
    monkeypatch.undo()
    assert ahop.load(tmp_path).recall(queries).indices.equal(wanted)


def test_what_the_page_names_was_on_disk_before_it(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: (synced.append(os.fstat(number).st_ino), sync(number)))
    memory, _ = memory_of("likelihood")
    memory.index().save(tmp_path)
    (large,), (small,), page = tmp_path.glob("large-*"), tmp_path.glob("small-*"), tmp_path / "index.json"
    large, small, page = (synced.index(path.stat().st_ino) for path in (large, small, page))
    assert max(large, small) < page
