import gzip
import http.server
import importlib.util
import io
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ahop import datasets
from ahop.datasets import files
from ahop_paper import publishers
from ahop_paper.commands import app

spec = importlib.util.spec_from_file_location("publish", Path(__file__).with_name("publish.py"))
publish = importlib.util.module_from_spec(spec)
spec.loader.exec_module(publish)

BANK = '"age";"job";"duration";"y"\r\n30;"cook";5;"yes"\r\n41;"clerk";7;"no"\r\n'


def bags(dtype, dim):
    draw = np.random.default_rng(0)
    instances = draw.integers(-9, 9, (6, dim)).astype(dtype)
    return {"X": instances, "bag": np.array([0, 0, 1, 2, 2, 2], np.int32), "y": np.array([1, 0, 1], np.int8)}


def measured():
    draw = np.random.default_rng(0)
    spectra = draw.normal(size=(2, 7, 5)).astype(np.float32)
    return {
        "tablets": {
            "instrument1": spectra[0],
            "instrument2": spectra[1],
            "part": np.repeat(["Train", "Validate", "Test"], [3, 1, 3]),
        },
        "gas": {
            "x": draw.normal(size=(12, 3)).astype(np.float32),
            "gas": np.tile(np.array([1, 2], np.uint8), 6),
            "conc_ppmv": np.tile(np.array([10, 20, 30], np.float32), 4),
            "batch": np.repeat(np.array([1, 9], np.uint8), 6),
        },
        "wifi": {
            "rss": np.where(draw.random((8, 4)) < 0.5, 100, -60).astype(np.int8),
            **{key: np.zeros(8, np.int8) for key in ("floor", "building", "relpos")},
            "phone": np.array([1, 1, 2, 1, 1, 2, 3, 3], np.int8),
            "space": np.array([7, 7, 7, 8, 8, 8, 8, 8], np.int16),
            "is_validation": np.arange(8) > 6,
        },
    }


SMALL = {
    "adult": "age,workclass,fnlwgt,education,education_num,marital_status,occupation,relationship,race,sex,"
    "capital_gain,capital_loss,hours_per_week,native_country,income,split\n"
    "39,State-gov,77,BA,13,Single,Clerk,Own,White,Male,0,0,40,US,<=50K,train\n"
    "52,?,209,BA,9,Married,?,Husband,Black,Male,0,0,45,Cuba,>50K,test\n",
    "bank": BANK,
    "vaccine": 'respondent_id,opinion,town,h1n1_vaccine,seasonal_vaccine\n0,1.0,"MSA, City",0,1\n1,,,0,0\n',
    "purchase": ",".join(f"c{place}" for place in range(17)).replace("c0,", "Administrative,")
    + ",Revenue\n"
    + "0,0,0,0,1,0,0.2,0.2,0,0,Feb,1,1,1,1,New_Visitor,FALSE,TRUE\n",
    "heart": "id;age;gender;height;weight;ap_hi;ap_lo;cholesterol;gluc;smoke;alco;active;cardio\n"
    "0;18393;2;168;62.0;110;80;1;1;0;0;1;0\n",
    **{name: bags(np.float32, 4) for name in ("tiger", "fox", "elephant", "ucsb")},
    **{name: bags(np.int16, 4) for name in ("musk1", "musk2")},
    **measured(),
}


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch):
    monkeypatch.delenv("AHOP_DATA", raising=False)


def read(path):
    """What a prepared file holds."""
    if path.name.endswith(".csv.gz"):
        return gzip.decompress(path.read_bytes()).decode()
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def published(name, folder):
    folder.mkdir(exist_ok=True)
    return publish.WRITERS[name](SMALL[name], folder)


@pytest.mark.parametrize("name", SMALL)
def test_the_files_of_a_publisher_become_what_the_loader_reads(name, tmp_path):
    made = publishers.prepare(name, published(name, tmp_path / name))
    (path,) = made.paths
    assert path == files.cache_folder() / datasets.ENTRIES[name].files[0].path
    assert publishers.checksum(read(path)) == publishers.checksum(SMALL[name])
    assert not made.same, "a few rows are not the set"
    if name != "purchase":  # Its columns have other names here.
        datasets.load(name)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ValueError, match="is damaged: its sha256"):
        datasets.load(name)


def test_every_set_that_can_be_prepared_is_tested_here_and_can_be_checked():
    sets = {name: entry.origin for name, entry in datasets.ENTRIES.items() if entry.origin and entry.origin.files}
    assert set(sets) == set(publishers.CONVERTERS) == {*SMALL, "ms2"}
    assert all(len(origin.values) == 64 for origin in sets.values())


def test_a_set_with_the_known_values_is_said_to_be_the_same(monkeypatch, tmp_path):
    known(monkeypatch, "bank", values=publishers.checksum(BANK.replace("\r", "")))
    assert publishers.prepare("bank", published("bank", tmp_path)).same


def test_a_file_that_is_missing_is_named_beside_what_came(tmp_path):
    path, _ = published("vaccine", tmp_path)
    (tmp_path / "other.csv").write_text("x")
    with pytest.raises(ValueError, match=r"training_set_labels.csv must be among the files; got .*other.csv"):
        publishers.prepare("vaccine", [path, tmp_path / "other.csv"])
    with pytest.raises(FileNotFoundError, match=r"nowhere.zip is not there"):
        publishers.prepare("vaccine", [tmp_path / "nowhere.zip"])
    (tmp_path / "broken.zip").write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match=r"broken.zip is damaged"):
        publishers.prepare("adult", [tmp_path / "broken.zip"])


def test_archives_that_are_made_to_do_harm_are_refused_in_one_line(tmp_path, monkeypatch):
    inside = b"x"
    for name in ("a.csv", "a.zip", "b.zip", "c.zip", "d.zip"):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"../../{name}", inside)
        inside = file.getvalue()
    (tmp_path / "deep.zip").write_bytes(inside)
    with pytest.raises(ValueError, match=r"b\.zip lies in 3 archives, one in another"):
        publishers.prepare("adult", [tmp_path / "deep.zip"])
    monkeypatch.setattr("ahop_paper.publishers.given._MAX_BYTES", 2**20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("adult.data", bytes(2**21))
    with pytest.raises(ValueError, match=r"adult\.data has 2,097,152 bytes; at most 1,048,576 are read"):
        publishers.prepare("adult", [tmp_path / "bomb.zip"])
    whole = (tmp_path / "bomb.zip").read_bytes()
    for place in (60, 200):
        (tmp_path / "cut.zip").write_bytes(whole[:place] + b"?????" + whole[place + 5 :])
        monkeypatch.setattr("ahop_paper.publishers.given._MAX_BYTES", 2**22)
        with pytest.raises(ValueError, match=r"cut\.zip is damaged: [^\n]+$"):
            publishers.prepare("adult", [tmp_path / "cut.zip"])


@pytest.mark.parametrize(
    ("name", "file", "text", "told"),
    [
        ("vaccine", "training_set_labels.csv", "respondent_id,a,b\n1,0,0\n0,0,0\n", "to the same respondents"),
        ("heart", "my-copy.csv", "id;age\n1;2\n", "row 0 must have 13 columns, got 2: id;age"),
        ("gas", "batch2.dat", "1;10 1:2.0 2:3.0\n", "'gas' cannot be built from these files: "),
        ("fox", "data_100x100.svm", "1 2 3\n", "instance:bag:label feature:value ..., got '1 2 3'"),
    ],
)
def test_a_file_of_another_form_is_refused(name, file, text, told, tmp_path):
    given = published(name, tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(ValueError, match=told):
        publishers.prepare(name, given if name != "fox" else [tmp_path / file])


def test_a_file_of_the_old_program_compress_is_expanded(tmp_path):
    published("musk1", tmp_path)
    plain = tmp_path / "clean1.data"
    # What is under test is that gzip is asked: it takes its own files by any name.
    (tmp_path / "clean1.data.Z").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    publishers.prepare("musk1", [tmp_path])
    assert len(datasets.load("musk1").bags) == 3
    (tmp_path / "clean1.data.Z").write_bytes(b"no such file")
    with pytest.raises(ValueError, match=r"clean1.data.Z is damaged"):
        publishers.prepare("musk1", [tmp_path])


def known(monkeypatch, name, **changes):
    """The set with another origin."""
    entry = datasets.ENTRIES[name]
    monkeypatch.setitem(datasets.ENTRIES, name, replace(entry, origin=replace(entry.origin, **changes)))


@pytest.fixture
def server(tmp_path):
    """A publisher: /short/ promises more than it sends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = (tmp_path / self.path.rsplit("/", 1)[1]).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data) + 10 * self.path.startswith("/short/")))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_what_needs_no_account_is_downloaded_and_checked(monkeypatch, tmp_path, server):
    published("adult", tmp_path)
    known(monkeypatch, "adult", url=f"{server}/adult.zip", values=publishers.checksum(SMALL["adult"]))
    assert datasets.ENTRIES["adult"].where() == "to be downloaded"
    made = publishers.prepare("adult")
    assert made.same and read(made.paths[0]) == SMALL["adult"]
    assert datasets.load("adult").train.tolist() == [True, False]
    names = sorted(path.name for path in files.cache_folder().iterdir())
    assert names == ["adult.csv.gz", "adult.csv.gz.sha256"]


@pytest.mark.parametrize(
    ("place", "told"), [("", "holds different values from the known ones"), ("short/", "could not be")]
)
def test_a_download_that_is_not_the_set_is_not_kept(place, told, monkeypatch, tmp_path, server):
    published("adult", tmp_path)
    known(monkeypatch, "adult", url=f"{server}/{place}adult.zip")
    with pytest.raises((ValueError, OSError), match=told):
        publishers.prepare("adult")
    assert not list(files.cache_folder().iterdir())


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("vaccine", [], "has to be fetched by hand, from https://www.drivendata.org"),
        ("digits", [], "needs no file"),
        ("embeddings-new", ["x"], "cannot be prepared: Not published elsewhere"),
        ("mnist", ["x"], "is read as it is published: ahop-paper prepare mnist, and no files"),
        ("nope", [], "unknown data set 'nope'; known: .*'adult'"),
    ],
)
def test_what_cannot_be_prepared_says_why(name, given, told):
    with pytest.raises(ValueError, match=told):
        publishers.prepare(name, given)


def test_spectra_of_compounds_that_two_laboratories_know(tmp_path):
    strong = [(43.04, 50), (68.3, 100), (68.4, 100), (99.6, 20)]
    one = publish.record
    one(tmp_path, "A", "A-1", "KEYONE00000000", strong)
    one(tmp_path, "B", "B-1", "KEYONE00000000", strong, licence="CC0")
    one(tmp_path, "B", "B-2", "KEYTWO00000000", strong)
    one(tmp_path, "C", "C-1", "KEYTWO00000000", strong)
    # Each of these lacks something.
    one(tmp_path, "A", "A-2", "KEYTHREE000000", strong)
    one(tmp_path, "A", "A-3", "KEYTWO00000000", strong, licence="CC BY-NC")
    one(tmp_path, "A", "A-4", "KEYTWO00000000", strong, level="MS3")
    one(tmp_path, "A", "A-5", "KEYTWO00000000", strong, ion="[M+Na]+")
    one(tmp_path, "A", "A-6", "KEYTWO00000000", [(43.0, 1), (50.0, 2), (701.0, 9)])
    made = publishers.prepare("ms2", [tmp_path])
    arrays = read(made.paths[0])
    assert arrays["shape"].tolist() == [4, 700] and arrays["compound"].tolist() == [0, 0, 1, 1]
    # B knows both compounds, A and C one each.
    assert arrays["reference"].tolist() == [False, True, True, False]
    assert (arrays["col"][:3] + 1).tolist() == [43, 68, 100]
    assert arrays["val"][:3].tolist() == [2500, 9999, 1000]
    assert datasets.load("ms2").origins.tolist() == [0, 1]
    with pytest.raises(ValueError, match="no compound has spectra of two laboratories"):
        publishers.prepare("ms2", [tmp_path / "A"])


def test_the_command_advises_no_preparation_of_what_it_would_refuse_to_prepare(monkeypatch):
    origin = datasets.ENTRIES["cifar10"].origin
    monkeypatch.setitem(datasets.ENTRIES, "drawn", replace(datasets.ENTRIES["digits"], origin=origin))
    for name in datasets.ENTRIES:
        output = CliRunner().invoke(app, ["datasets", name]).output
        entry = datasets.ENTRIES[name]
        # Whatever can be prepared at all has files that were downloaded or made of the publisher's.
        assert bool(entry.files) or "prepare" not in output, name
    with pytest.raises(ValueError, match="'drawn' needs no file"):
        publishers.prepare("drawn")


def test_the_command_prepares_and_says_what_it_made(tmp_path):
    published("bank", tmp_path)
    result = CliRunner().invoke(app, ["prepare", "bank", str(tmp_path / "bank+marketing.zip")])
    assert result.exit_code == 0, result.output
    assert "bank-additional-full.csv.gz" in result.output and "other values than those" in result.output
    result = CliRunner().invoke(app, ["prepare", "nope"])
    assert result.exit_code == 2 and "unknown data set 'nope'; known: " in result.output
