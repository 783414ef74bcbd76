import math
import os

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from ahop._files import atomic_file, own_folder, require_folder, require_writable, write_atomically, write_tensors


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_name_when_it_is_complete(tmp_path):
    path = tmp_path / "x.txt"
    write_atomically("before", path)
    with atomic_file(str(path)) as file:
        file.write(b"after")
        assert path.read_text() == "before"
    assert path.read_text() == "after" and names(path.parent) == ["x.txt"]


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_after_an_error_everything_is_as_it_was(tmp_path, error):
    path = tmp_path / "x.txt"
    write_atomically("before", path)
    with pytest.raises(error), atomic_file(path) as file:
        file.write(b"half")
        raise error
    assert path.read_text() == "before" and names(tmp_path) == ["x.txt"]


def test_of_two_writers_in_one_process_the_last_one_wins(tmp_path):
    path = tmp_path / "x.txt"
    with atomic_file(path) as first:
        first.write(b"first")
        with atomic_file(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
    assert path.read_text() == "first" and names(tmp_path) == ["x.txt"]


def test_a_write_removes_what_killed_writers_of_its_name_left_long_ago(tmp_path):
    old = [".x.txt-12", ".x.txt-0123456789abcdef.part", ".x.txt.part"]
    kept = [".x.txt", ".y.txt-12", ".x.txt-b-0123456789abcdef.part", "x.txt-12", ".x.txt-12.json", ".xatxt-12"]
    for name in [*old, *kept]:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".x.txt-fedcba9876543210.part").touch()
    write_atomically("new", tmp_path / "x.txt")
    assert names(tmp_path) == sorted([*kept, ".x.txt-fedcba9876543210.part", "x.txt"])


def test_a_writer_that_still_writes_is_left_alone_however_long_ago_it_began(tmp_path):
    path = tmp_path / "x.txt"
    with atomic_file(path) as slow:
        os.utime(slow.name, (0, 0))
        slow.write(b"slow")
        slow.flush()
        write_atomically("fast", path)
    assert path.read_text() == "slow" and names(tmp_path) == ["x.txt"]


@given(st.data())
def test_tensors_are_read_back_as_they_were_written(tmp_path_factory, data):
    whole, broken = [torch.int64, torch.int8, torch.uint8, torch.bool], [torch.float64, torch.float32, torch.bfloat16]
    names = st.text(max_size=5).filter(lambda name: name != "__metadata__")
    shapes = data.draw(st.dictionaries(names, st.lists(st.integers(0, 3), max_size=3)))
    tensors = {
        name: torch.arange(math.prod(shape)).reshape(shape).to(data.draw(st.sampled_from(whole + broken)))
        for name, shape in shapes.items()
    }
    path = tmp_path_factory.getbasetemp() / "tensors"
    with atomic_file(path) as file:
        write_tensors(tensors, file)
        opened = os.fstat(file.fileno()).st_ino
    assert path.stat().st_ino == opened
    found = safetensors.torch.load_file(path)
    assert found.keys() == tensors.keys()
    assert all(found[name].dtype == tensors[name].dtype and torch.equal(found[name], tensors[name]) for name in tensors)


def test_a_file_has_the_rights_that_any_new_file_has(tmp_path):
    (tmp_path / "plain").touch()
    write_atomically("", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_path_that_cannot_be_written_is_refused_in_one_line_and_nothing_is_left(tmp_path):
    (tmp_path / "file").touch()
    for path in (
        tmp_path,
        ".",
        tmp_path / "file" / "x.json",
        tmp_path / "file" / "deep" / "x.json",
        tmp_path / ("x" * 250 + ".json"),
        "/proc/nowhere/x.json",
    ):
        with pytest.raises(ValueError, match=r"cannot be written: [^\n]+$"):
            require_writable(path)
    require_writable(str(tmp_path / "x.json"))
    assert names(tmp_path) == ["file"]


def test_a_folder_that_nobody_made_is_not_made(tmp_path):
    path = tmp_path / "new" / "x.json"
    with pytest.raises(ValueError, match=r"x\.json cannot be written: the folder '.*new' does not exist"):
        require_writable(path)
    with pytest.raises(FileNotFoundError, match=r"the folder '.*new' does not exist"):
        write_atomically("", path)
    assert not names(tmp_path)


def test_a_file_where_a_folder_is_to_be_is_refused_in_one_sentence_and_kept(tmp_path):
    (tmp_path / "file").write_text("mine")
    for refuse in (require_folder, own_folder):
        with pytest.raises(NotADirectoryError, match=r"^[^\n]*file is a file, and must be a folder or a new name$"):
            refuse(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_could_be_made_or_is_there_is_left_as_it_is(tmp_path):
    require_folder(tmp_path)
    require_folder(tmp_path / "new")
    assert not names(tmp_path)
    with pytest.raises(ValueError, match=r"deep cannot be written: the folder '.*new' does not exist"):
        require_folder(tmp_path / "new" / "deep")
