"""Damage of every kind to what was saved, prepared and sent: it is read as it was, or refused in one line."""

import functools
import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import ahop
from ahop.datasets.files import DataFile, fetch
from ahop.playground import sent, upload
from ahop.playground.sent import File, UploadError
from ahop_paper.publishers.given import Given

DIM = 5
KINDS = ["memory", "learned", "index", "data set", "archive", "npz", "csv", "picture", "page"]
DAMAGES = ["flip", "cut", "insert", "zeros", "double", "text", "number", "swap", "link", "loop", "folder", "gone"]
# What numbers and words become that stand in heads, recipes and tables.
WORDS = [
    b"NaN",
    b"-1",
    b"1e999",
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"../../x",
    b"99999999999999999999",
    b"\x00",
    b"<b>${x}",
]


@st.composite
def cases(draw):
    """What is damaged, and how, one thing after another; places are shares of a file."""
    damage = st.tuples(
        st.sampled_from(DAMAGES), st.integers(0, 9), st.floats(0, 1), st.integers(0, 255), st.sampled_from(WORDS)
    )
    return {"kind": draw(st.sampled_from(KINDS)), "damages": draw(st.lists(damage, min_size=1, max_size=3))}


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@functools.cache
def whole(kind):
    """Files by name, as they are before."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        memory = ahop.BayesianHopfield(drawn(30, DIM), values=drawn(30, 2), prior=torch.arange(1.0, 31.0))
        if kind == "memory":
            ahop.AdaptiveHopfield(drawn(30, DIM), isolated=True, prior=torch.arange(1.0, 31.0)).save(folder)
        elif kind == "learned":
            memory.fit(drawn(30, DIM) + 0.3, hidden_causes=0, verbose=False).save(folder)
        elif kind == "index":
            memory.index().save(folder)
        elif kind in ("data set", "npz"):
            np.savez_compressed(folder / "x.npz", patterns=drawn(9, 3), queries=drawn(8, 3), origins=np.arange(8))
        elif kind == "archive":
            with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("deep/data.csv", "a,b\n1,2\n" * 50)
        elif kind == "csv":
            lines = [
                "item,a,b",
                *(f"x{n},{n},1" for n in range(5)),
            ]
            (folder / "x.csv").write_text("\n".join(lines))
        elif kind == "picture":
            Image.fromarray((drawn(16, 16).abs() * 99).byte().numpy()).save(folder / "x.png")
        else:
            (folder / "x.json").write_text(json.dumps([{"name": "a.csv", "key": "AAAA"}]))
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def damaged(folder, damage):
    """Do one thing to one file of a folder."""
    how, which, share, value, word = damage
    files = sorted(folder.iterdir())
    if not files:
        return
    path = files[which % len(files)]
    if how in ("gone", "folder", "link", "loop"):
        path.unlink() if path.is_symlink() or not path.is_dir() else shutil.rmtree(path)
        if how == "folder":
            path.mkdir()
        elif how != "gone":
            path.symlink_to(path.name if how == "loop" else files[(which + 1) % len(files)].name)
        return
    if not path.is_file():
        return
    content = path.read_bytes()
    place = int(share * len(content))
    other = files[(which + 1) % len(files)]
    digit = next((at for at in range(place, len(content)) if 48 <= content[at] < 58), place)
    path.write_bytes(
        {
            "flip": lambda: (
                content[:place] + bytes([content[place] ^ (value or 1)]) + content[place + 1 :]
                if place < len(content)
                else content
            ),
            "cut": lambda: content[:place],
            "insert": lambda: content[:place] + bytes([value]) * (1 + value) + content[place:],
            "zeros": lambda: content[:place] + bytes(len(content) - place),
            "double": lambda: content + content,
            "text": lambda: word,
            "number": lambda: content[:digit] + word + content[digit + 1 :],
            "swap": lambda: other.read_bytes() if other.is_file() else content,
        }[how]()
    )


def one_line(error):
    assert str(error) and "\n" not in str(error), error


def scores(memory):
    return memory.scores(drawn(4, DIM)), memory.retrieve(drawn(4, DIM))


def same(loaded, kind, folder):
    """Whether it answers as what was saved does, of which there is a copy."""
    with tempfile.TemporaryDirectory() as name:
        for file, content in whole(kind).items():
            (Path(name) / file).write_bytes(content)
        wanted = ahop.load(name)
    sides = [side.memory if kind == "index" else side for side in (loaded, wanted)]
    assert all(torch.equal(one, other) for one, other in zip(*map(scores, sides), strict=True))


def reads_folder(folder, kind):
    try:
        if kind == "index":
            ahop.index.verify(folder)
        same(ahop.load(folder), kind, folder)
    except (ValueError, FileNotFoundError) as error:
        one_line(error)


def reads_data_set(path):
    import hashlib

    (before,) = whole("data set").values()
    file = DataFile(path.name, (hashlib.sha256(before).hexdigest(),))
    was = os.environ.get("AHOP_DATA")
    os.environ["AHOP_DATA"] = str(path.parent)
    try:
        assert fetch(file).read_bytes() == before
    except (ValueError, FileNotFoundError) as error:
        one_line(error)
    finally:
        os.environ.pop("AHOP_DATA") if was is None else os.environ.update(AHOP_DATA=was)


def reads_archive(path):
    try:
        # An archive without its checksum may be another one; what comes of it are bytes.
        assert isinstance(Given([path]).data("data.csv"), bytes)
    except (ValueError, FileNotFoundError) as error:
        one_line(error)


def reads_upload(path, kind):
    content = path.read_bytes()
    try:
        if kind == "picture":
            found = upload.pictures([File(path.name, content), File("<b>.png", whole(kind)["x.png"])])
            assert found.patterns.shape == (2, 144) and found.patterns.abs().max() <= 1
        elif kind == "page":
            assert all(isinstance(file.content, bytes) for file in sent.files(content.decode(errors="replace")))
        else:
            table = upload.table(File(path.name, content))
            # What is missing is NaN; infinite it must not be.
            assert not np.isinf(table.values).any() and table.values.shape == (len(table), len(table.columns))
    except UploadError as error:
        one_line(error)
        assert str(error).endswith(".")


def check(case):
    kind = case["kind"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "folder"
        folder.mkdir()
        for file, content in whole(kind).items():
            (folder / file).write_bytes(content)
        for damage in case["damages"]:
            damaged(folder, damage)
        (path, *_) = [folder / file for file in whole(kind)]
        if kind in ("memory", "learned", "index"):
            reads_folder(folder, kind)
        elif kind == "data set":
            reads_data_set(path)
        elif kind == "archive":
            reads_archive(path)
        elif path.is_file():
            reads_upload(path, kind)


@settings(max_examples=30)
@given(case=cases())
def test_damaged_files_are_read_as_they_were_or_refused_in_one_line(case):
    check(case)
