import hashlib
import http.server
import threading

import numpy as np
import pytest

from ahop import datasets
from ahop.datasets import files, images, real
from ahop.datasets.files import DataFile, fetch


def test_digits_need_no_file():
    patterns, labels, shape = datasets.load("digits")
    assert patterns.shape == (1797, 64)
    assert shape == (8, 8)
    assert (patterns.min(), patterns.max()) == (-1, 1)
    assert labels.unique().tolist() == list(range(10))
    assert datasets.ENTRIES["digits"].where() == "always there"


def archive(path):
    generator = np.random.default_rng(0)
    pixels = generator.integers(0, 256, (5, 28, 28)).astype(np.uint8)
    np.savez(path, x_train=pixels, y_train=np.arange(5, dtype=np.uint8))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def known(tmp_path, monkeypatch):
    """A small archive in place of MNIST, its checksum known, and no data folder set."""
    monkeypatch.delenv("AHOP_DATA", raising=False)
    digest = archive(tmp_path / "mnist.npz")
    file = DataFile("mnist.npz", (digest,), "http://127.0.0.1:9/mnist.npz")
    monkeypatch.setattr(images, "MNIST", file)
    return file, tmp_path / "mnist.npz"


def test_files_come_from_the_data_folder(known, monkeypatch):
    monkeypatch.setenv("AHOP_DATA", str(known[1].parent))
    patterns, labels, shape = datasets.load("mnist")
    assert patterns.shape == (5, 784)
    assert shape == (28, 28)
    assert -1 <= patterns.min() < patterns.max() <= 1
    assert labels.tolist() == [0, 1, 2, 3, 4]


def test_then_from_the_cache(known):
    files.cache_folder().mkdir()
    known[1].rename(files.cache_folder() / "mnist.npz")
    assert fetch(known[0]) == files.cache_folder() / "mnist.npz"


def test_a_damaged_file_is_refused(known, monkeypatch):
    monkeypatch.setenv("AHOP_DATA", str(known[1].parent))
    known[1].write_bytes(known[1].read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"mnist.npz is damaged: its sha256 .* is not one of the known ones"):
        datasets.load("mnist")


def test_offline_the_error_says_where_was_looked(known):
    with pytest.raises(
        FileNotFoundError, match=r"not in AHOP_DATA \(not set\) nor in the cache .*could not be downloaded"
    ):
        fetch(known[0])
    assert not list(files.cache_folder().iterdir())


@pytest.mark.parametrize("name", ["AHOP_CACHE", "XDG_CACHE_HOME"])
def test_an_empty_variable_is_as_good_as_none_and_not_the_working_folder(monkeypatch, tmp_path, name):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AHOP_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    usual = files.cache_folder()
    monkeypatch.setenv(name, "")
    assert files.cache_folder() == usual == tmp_path / ".cache" / "ahop"


def test_an_empty_data_folder_is_not_the_working_folder(known, monkeypatch):
    monkeypatch.setenv("AHOP_DATA", "")
    monkeypatch.chdir(known[1].parent)
    assert files.find(known[0]) is None
    with pytest.raises(FileNotFoundError, match=r"not in AHOP_DATA \(not set\)"):
        fetch(known[0])


@pytest.fixture
def server(tmp_path):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_then_by_a_checked_download(known, server):
    file = DataFile("mnist.npz", known[0].sha256, f"{server}/mnist.npz")
    assert fetch(file).read_bytes() == known[1].read_bytes()
    known[1].unlink()
    assert fetch(file).is_file()


def test_a_download_with_another_checksum_is_not_kept(known, server):
    file = DataFile("mnist.npz", ("0" * 64,), f"{server}/mnist.npz")
    with pytest.raises(ValueError, match="not the one expected; nothing was kept"):
        fetch(file)
    assert not list(files.cache_folder().iterdir())


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"unknown data set 'mnits'; known: .*digits.*mnist"):
        datasets.load("mnits")


def test_real_variants_say_where_they_come_from_when_they_are_not_there(monkeypatch):
    monkeypatch.delenv("AHOP_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError,
        match=r"real/gas_drift.npz is not in .* cannot be downloaded in this form \(Gas .* ahop datasets NAME",
    ):
        datasets.load("gas")
    assert datasets.ENTRIES["gas"].where() == "to be downloaded"
    assert datasets.ENTRIES["vaccine"].where() == "to be fetched by hand"
    assert datasets.ENTRIES["embeddings-new"].where() == "not here: set AHOP_DATA"


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Small archives of the same make in place of the real ones."""
    generator = np.random.default_rng(0)
    (tmp_path / "real").mkdir()
    monkeypatch.setenv("AHOP_DATA", str(tmp_path))
    first = generator.normal(size=(20, 30))
    tables = {
        "TABLETS": {
            "instrument1": first,
            "instrument2": first + 0.1 * generator.normal(size=(20, 30)),
            "part": np.array(["Train"] * 8 + ["Test"] * 12),
        },
        "GAS": {
            "x": generator.normal(size=(60, 5)),
            "gas": np.repeat([1, 2], 30),
            "conc_ppmv": np.tile([10.0, 20.0, 30.0], 20),
            "batch": np.tile([1, 1, 1, 2, 2, 3], 10),
        },
        "WIFI": {
            "rss": np.where(generator.random((40, 6)) < 0.5, 100, -60).astype(np.int8),
            "phone": np.tile([1, 1, 2, 3], 10),
            "is_validation": np.arange(40) >= 32,
            "building": np.zeros(40, dtype=int),
            "floor": np.zeros(40, dtype=int),
            "space": np.arange(40) // 8,
            "relpos": np.ones(40, dtype=int),
        },
        "MS2": {
            "shape": np.array([12, 5]),
            "row": np.arange(12),
            "col": np.arange(12) % 5,
            "val": np.where(np.arange(12) < 8, 9999, 2500).astype(np.uint16),
            "compound": np.arange(12) % 4,
            "reference": np.arange(12) < 4,
        },
        "EMBEDDINGS": {
            name: generator.normal(size=(10, 6 if name == "wide" else 4)).astype(np.float16)
            for name in ("old", *real.VERSIONS)
        },
    }
    for name, arrays in tables.items():
        file = getattr(real, name)
        np.savez(tmp_path / file.path, **arrays)
        digest = hashlib.sha256((tmp_path / file.path).read_bytes()).hexdigest()
        monkeypatch.setattr(real, name, DataFile(file.path, (digest,)))
    return tables


@pytest.mark.parametrize("name", datasets.names_of(datasets.Measured))
def test_real_variants_are_learned_and_scored_on_different_items(measured, name):
    data = datasets.load(name)
    assert len(data.queries) == len(data.origins) == len(data.learn)
    assert 0 <= data.origins.min() <= data.origins.max() < len(data.patterns)
    assert not set(data.origins[data.learn].tolist()) & set(data.origins[~data.learn].tolist())
    assert 0 < int(data.learn.sum()) < len(data.learn)


def test_a_place_is_what_its_commonest_phone_heard(measured):
    data = datasets.load("wifi")
    heard = np.where(measured["WIFI"]["rss"] == 100, -1, 2 * (-60 + 105) / 105 - 1)
    np.testing.assert_allclose(data.patterns[1].numpy(), heard[[8, 9, 12, 13]].mean(0), rtol=1e-6)
    assert (data.queries > -1).any(1).all()


def test_a_compound_is_its_reference_at_a_base_peak_of_one(measured):
    data = datasets.load("ms2")
    assert data.patterns.amax(1).tolist() == [1, 1, 1, 1]
    assert data.origins.tolist() == [0, 1, 2, 3] * 2
    np.testing.assert_allclose(data.queries.amax(1).numpy(), [1] * 4 + [(2500 / 9999) ** 0.5] * 4, rtol=1e-6)


def test_a_wider_space_may_ask(measured):
    data = datasets.load("embeddings-wide")
    assert (data.patterns.shape, data.queries.shape) == ((10, 4), (10, 6))
    assert data.origins.tolist() == list(range(10))
    assert int(data.learn.sum()) == 5
