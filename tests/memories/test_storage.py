import json
import os

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ahop
from ahop._component import from_plain, to_plain
from ahop._files import digest
from ahop.memories.storage import FILE
from ahop.variants import Compose, Masked, Mixed, Noisy


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


PATTERNS, SIGNS = noise(20, 6), noise(20, 6).sign()
SEEN = Mixed(0.2, 0.2, 0.2, seed=3).sample(PATTERNS, 40)
MADE = {
    "classical": lambda: ahop.ClassicalHopfield(SIGNS, update="asynchronous", seed=4),
    "dense": lambda: ahop.DenseHopfield(SIGNS, k=4),
    "exponential": lambda: ahop.ExponentialHopfield(SIGNS),
    "sequences": lambda: ahop.SequenceHopfield(SIGNS, separation="power"),
    "modern": lambda: ahop.ModernHopfield(
        PATTERNS.double(), beta=0.3, values=noise(20, 2).double(), prior=torch.rand(20)
    ),
    "universal": lambda: ahop.UniversalHopfield(
        PATTERNS, similarity="cosine", separation=ahop.separation.Entmax(1.3, learn_alpha=True)
    ),
    "sparse": lambda: ahop.SparseHopfield(PATTERNS),
    "gaussian": lambda: ahop.GaussianHopfield(PATTERNS, spread=torch.rand(20, 6)).fit(*SEEN).remove([3]),
    "kernel": lambda: ahop.create("k2-hop", PATTERNS, features=4).fit(*SEEN, rate=0.03),
    "adaptive": lambda: (
        ahop.AdaptiveHopfield(PATTERNS, bases=["manhattan", "dot"], isolated=True).fit(*SEEN).remove([3])
    ),
    "adaptive with a matrix": lambda: ahop.AdaptiveHopfield(
        PATTERNS, matrix=noise(6, 6), learn_matrix=True, sort=False
    ),
    "oracle": lambda: ahop.Oracle(PATTERNS, Compose([Noisy(torch.rand(6)), Masked(0.3, fill=(0.0, 2.0))], seed=2)),
    "of parts": lambda: ahop.AssociativeMemory(PATTERNS, "distance", "softmax"),
}


@pytest.mark.parametrize("kind", MADE)
def test_what_is_loaded_scores_like_what_was_saved(kind, tmp_path):
    memory = MADE[kind]()
    memory.save(tmp_path / "folder")
    loaded = ahop.load(tmp_path / "folder")
    assert type(loaded) is type(memory)
    queries = noise(5, 6, seed=1).sign().to(memory.patterns)
    assert torch.equal(loaded.scores(queries), memory.scores(queries))
    assert torch.equal(loaded.retrieve(queries, steps=2), memory.retrieve(queries, steps=2))
    assert [path.name for path in (tmp_path / "folder").iterdir()] == [FILE]


def test_saving_again_replaces_the_file(tmp_path):
    for seed in (0, 1):
        ahop.ModernHopfield(noise(3, 4, seed=seed)).save(tmp_path)
    assert torch.equal(ahop.load(tmp_path).patterns, noise(3, 4, seed=1))


def test_saving_makes_a_folder_but_not_the_one_that_it_should_lie_in(tmp_path):
    memory = ahop.BayesianHopfield(noise(3, 4))
    for saved in (memory, memory.index()):
        with pytest.raises(FileNotFoundError, match=r"the folder '.*mistyped' does not exist"):
            saved.save(tmp_path / "mistyped" / "folder")
    assert not list(tmp_path.iterdir())


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
    safetensors.torch.save_file({"patterns": torch.eye(2)}, tmp_path / FILE)
    with pytest.raises(ValueError, match=r"memory\.safetensors is not an ahop memory"):
        ahop.load(tmp_path)


def test_a_link_that_leads_nowhere_is_refused_in_one_line(tmp_path):
    (tmp_path / FILE).symlink_to(FILE)
    with pytest.raises(ValueError, match=r"memory\.safetensors cannot be read: "):
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


SCALARS = [
    np.float32(2.1),
    np.float64(0.1),
    np.float16(0.5),
    np.int64(3),
    np.uint8(7),
    np.bool_(True),
    np.str_("dot"),
    torch.tensor(2.5),
]


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: type(value).__name__)
def test_numbers_and_words_of_other_libraries_come_back_equal(value):
    back = from_plain(json.loads(json.dumps(to_plain(value))))
    assert type(back) in (bool, int, float, str) and back == value


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int64, torch.int8, torch.bool])
def test_tensors_among_the_settings_come_back_with_their_type(dtype):
    value = (3 * noise(2, 3, seed=1).double()).to(dtype)
    back = from_plain(json.loads(json.dumps(to_plain(value))))
    assert back.dtype == dtype and torch.equal(back, value)


def test_a_memory_with_numpy_scalars_for_settings_can_be_saved(tmp_path):
    signs = noise(5, 4).sign()
    for memory in (
        ahop.ModernHopfield(noise(5, 4), beta=np.float32(2.1)),
        ahop.DenseHopfield(signs, k=np.int64(3)),
        ahop.AdaptiveHopfield(noise(5, 4), sort=np.bool_(True), bases=[np.str_("dot")]),
        ahop.Oracle(noise(5, 4), Noisy(np.float64(0.1))),
    ):
        memory.save(tmp_path)
        assert torch.equal(ahop.load(tmp_path).scores(signs), memory.scores(signs))


def rewrite(folder, change):
    """Alter what stands in the file, and make its checksum right."""
    data = (folder / FILE).read_bytes()
    metadata = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    tensors = safetensors.torch.load(data)
    metadata["recipe"] = json.loads(metadata["recipe"])
    change(metadata, tensors)
    if not isinstance(metadata["recipe"], str):
        metadata["recipe"] = json.dumps(metadata["recipe"])
    metadata["sha256"] = digest(metadata["recipe"], tensors)
    (folder / FILE).write_bytes(safetensors.torch.save(tensors, metadata))


def test_a_file_of_version_0_1_0_can_be_read(tmp_path):
    memory = ahop.Oracle(noise(5, 4), Noisy(torch.rand(4)))
    memory.save(tmp_path)

    def as_it_was(metadata, tensors):
        del metadata["ahop"]
        del metadata["recipe"]["arguments"]["variant"]["arguments"]["sigma"]["dtype"]

    rewrite(tmp_path, as_it_was)
    assert torch.equal(ahop.load(tmp_path).scores(noise(3, 4)), memory.scores(noise(3, 4)))


def test_a_file_of_a_newer_version_is_refused_with_its_name_and_both_versions(tmp_path):
    ours = rf"{FILE}.* written by ahop 99\.1; this is ahop {ahop.__version__}"
    for change, what in (
        (lambda metadata, tensors: metadata.update(ahop="99.1", format="2"), "format '2'.*" + ours.split(".*")[1]),
        (lambda metadata, tensors: (metadata.update(ahop="99.1"), metadata["recipe"].update(name="z-hop")), ours),
        (
            lambda metadata, tensors: (
                metadata.update(ahop="99.1"),
                metadata["recipe"]["arguments"].update(colour="red"),
            ),
            ours,
        ),
    ):
        ahop.ModernHopfield(noise(3, 4)).save(tmp_path)
        rewrite(tmp_path, change)
        with pytest.raises(ValueError, match=what):
            ahop.load(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder to write into, and the file of a memory with parts and learned numbers."""
    folder = tmp_path_factory.mktemp("fuzz")
    ahop.AdaptiveHopfield(noise(5, 3), bases=["manhattan", "dot"], matrix=noise(3, 3)).save(folder)
    return folder, (folder / FILE).read_bytes()


def load_or_one_line(folder):
    """What can be loaded is a memory; all else is one line that names the file."""
    try:
        memory = ahop.load(folder)
    except ValueError as error:
        assert str(folder / FILE) in str(error) and "\n" not in str(error)
    else:
        assert isinstance(memory, ahop.AssociativeMemory)


@given(st.data())
def test_a_file_with_any_bytes_changed_is_refused_in_one_line(whole, data):
    folder, before = whole
    places = data.draw(st.lists(st.integers(0, len(before) - 1), min_size=1, max_size=4, unique=True))
    changed = bytearray(before)
    for place in places:
        changed[place] ^= data.draw(st.integers(1, 255))
    (folder / FILE).write_bytes(
        changed[: data.draw(st.integers(0, len(before)))] if data.draw(st.booleans()) else changed
    )
    load_or_one_line(folder)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats(allow_nan=False, width=32)
    | st.sampled_from(["dot", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tensor", "dtype", "family", "name", "arguments"]), inner, max_size=5)
    ),
    max_leaves=6,
)


@given(st.data())
def test_a_recipe_of_any_kind_makes_a_memory_or_is_refused_in_one_line(whole, data):
    folder, before = whole
    (folder / FILE).write_bytes(before)

    def change(metadata, tensors):
        recipe = metadata["recipe"]
        where = data.draw(st.sampled_from(["all", "text", "name", "arguments", *recipe["arguments"], "another"]))
        if where == "all":
            metadata["recipe"] = data.draw(PLAIN.filter(lambda value: not isinstance(value, str)))
        elif where == "text":
            metadata["recipe"] = data.draw(st.text(max_size=5))
        elif where in recipe:
            recipe[where] = data.draw(PLAIN | st.sampled_from(["m-hop", "k-hop", "hop"]))
        else:
            recipe["arguments"][where] = data.draw(PLAIN)

    rewrite(folder, change)
    load_or_one_line(folder)


@settings(max_examples=40)
@given(st.data())
def test_tensors_of_any_shape_make_a_memory_or_are_refused_in_one_line(whole, data):
    folder, before = whole
    (folder / FILE).write_bytes(before)

    def change(metadata, tensors):
        name = data.draw(st.sampled_from(sorted(tensors)))
        what = data.draw(st.sampled_from(["missing", "renamed", "shape", "type"]))
        if what == "missing":
            del tensors[name]
        elif what == "renamed":
            tensors["other"] = tensors.pop(name)
        elif what == "shape":
            tensors[name] = torch.ones(data.draw(st.lists(st.integers(0, 3), max_size=3)))
        else:
            tensors[name] = torch.ones_like(tensors[name], dtype=data.draw(st.sampled_from([torch.int64, torch.bool])))

    rewrite(folder, change)
    load_or_one_line(folder)


def test_a_device_that_is_not_there_is_refused(tmp_path):
    ahop.ModernHopfield(noise(3, 4)).save(tmp_path)
    with pytest.raises(ValueError, match="device must be one that PyTorch can use here, got 'abacus'"):
        ahop.load(tmp_path, "abacus")
