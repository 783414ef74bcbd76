import os
import signal
import subprocess
import sys
import time

import pytest
import torch

import ahop
from ahop.storage import FILE
from ahop.variants import Compose, Masked, Mixed, Noisy


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def memories():
    patterns, signs = noise(20, 6), noise(20, 6).sign()
    world = Mixed(0.2, 0.2, 0.2, seed=3)
    seen = world.sample(patterns, 40)
    yield ahop.ClassicalHopfield(signs, update="asynchronous", seed=4)
    yield ahop.DenseHopfield(signs, k=4)
    yield ahop.ExponentialHopfield(signs)
    yield ahop.ModernHopfield(patterns.double(), beta=0.3, values=noise(20, 2).double(), prior=torch.rand(20))
    yield ahop.UniversalHopfield(
        patterns, similarity="cosine", separation=ahop.separation.Entmax(1.3, learn_alpha=True)
    )
    yield ahop.SparseHopfield(patterns)
    yield ahop.create("k2-hop", patterns, features=4).fit(*seen, rate=0.03)
    yield ahop.AdaptiveHopfield(patterns, bases=["manhattan", "dot"], isolated=True).fit(*seen).remove([3])
    yield ahop.AdaptiveHopfield(patterns, matrix=noise(6, 6), learn_matrix=True, sort=False)
    yield ahop.Oracle(patterns, Compose([Noisy(torch.rand(6)), Masked(0.3, fill=(0.0, 2.0))], seed=2))
    yield ahop.AssociativeMemory(patterns, "distance", "softmax")


@pytest.mark.parametrize("memory", list(memories()), ids=lambda m: type(m).__name__)
def test_what_is_loaded_scores_like_what_was_saved(memory, tmp_path):
    memory.save(tmp_path / "deep" / "folder")
    loaded = ahop.load(tmp_path / "deep" / "folder")
    assert type(loaded) is type(memory)
    queries = noise(5, 6, seed=1).sign().to(memory.patterns)
    assert torch.equal(loaded.scores(queries), memory.scores(queries))
    assert torch.equal(loaded.retrieve(queries, steps=2), memory.retrieve(queries, steps=2))
    assert [path.name for path in (tmp_path / "deep" / "folder").iterdir()] == [FILE]


def test_saving_again_replaces_the_file(tmp_path):
    for seed in (0, 1):
        ahop.ModernHopfield(noise(3, 4, seed=seed)).save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).patterns, noise(3, 4, seed=1))


def test_a_truncated_file_is_refused(tmp_path):
    ahop.ModernHopfield(noise(30, 40)).save(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    for length in (0, 5, 100, len(whole) - 1):
        (tmp_path / FILE).write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is damaged"):
            ahop.load(tmp_path)


def test_an_altered_file_is_refused(tmp_path):
    ahop.ModernHopfield(noise(30, 40), beta=0.5).save(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    for place in (len(whole) - 2, len(whole) // 2, whole.index(b"m-hop")):
        changed = bytearray(whole)
        changed[place] ^= 1
        (tmp_path / FILE).write_bytes(changed)
        with pytest.raises(ValueError, match="is damaged"):
            ahop.load(tmp_path)


def test_a_foreign_file_and_an_empty_folder_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no saved memory"):
        ahop.load(tmp_path)
    import safetensors.torch

    safetensors.torch.save_file({"patterns": torch.eye(2)}, tmp_path / FILE)
    with pytest.raises(ValueError, match="is not a memory of this version of ahop"):
        ahop.load(tmp_path)


def test_what_cannot_be_written_as_data_is_refused_and_leaves_nothing(tmp_path):
    world = Masked(0.5, fill=lambda shape, generator: torch.zeros(shape))
    with pytest.raises(ValueError, match="cannot save <function"):
        ahop.Oracle(torch.eye(2), world).save(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_crash_while_saving_keeps_the_previous_file(tmp_path, monkeypatch):
    ahop.ModernHopfield(noise(3, 4)).save(tmp_path)

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        ahop.ModernHopfield(noise(9, 9)).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert torch.equal(ahop.load(tmp_path).patterns, noise(3, 4))


def test_a_process_killed_while_saving_keeps_the_previous_file(tmp_path):
    ahop.ModernHopfield(noise(3, 4)).save(tmp_path)
    script = (
        "import ahop, torch\n"
        "memory = ahop.ModernHopfield(torch.ones(200_000, 64))\n"
        "print('saving', flush=True)\n"
        f"while True: memory.save({str(tmp_path)!r} + '/other'); memory.save({str(tmp_path)!r})\n"
    )
    # The first save of the loop goes elsewhere, so the kill below falls into a save more often than not.
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"saving\n"
    time.sleep(0.15)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert ahop.load(tmp_path).patterns.shape in {(3, 4), (200_000, 64)}
