import hashlib

import numpy as np
import pytest

from ahop import datasets
from ahop.datasets import bags
from ahop.datasets.files import DataFile


@pytest.fixture
def known(tmp_path, monkeypatch):
    """A data folder of one's own."""
    monkeypatch.setenv("AHOP_DATA", str(tmp_path))
    return tmp_path


def test_bags_are_cut_where_their_owner_changes(known, monkeypatch):
    path = known / "mil" / "tiger.npz"
    path.parent.mkdir()
    owner, instances = np.array([0, 0, 1, 2, 2, 2]), np.arange(12, dtype=np.int16).reshape(6, 2)
    np.savez(path, X=instances, bag=owner, y=np.array([1, 0, 1]), bag_id=np.arange(3))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(bags.FILES, "tiger", DataFile("mil/tiger.npz", (digest,)))
    loaded = datasets.load("tiger")
    assert [len(bag) for bag in loaded.bags] == [2, 1, 3]
    assert loaded.bags[2].tolist() == [[6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]
    assert loaded.labels.tolist() == [1, 0, 1]


def test_bags_that_are_nowhere_say_so(known):
    with pytest.raises(
        FileNotFoundError, match=r"mil/fox.npz is not in AHOP_DATA .* cannot be downloaded in this form"
    ):
        datasets.load("fox")


@pytest.mark.parametrize("train", [True, False])
def test_the_standard_check_moves_its_mark(train):
    made = datasets.standard_check(20, train=train, seed=1)
    marked = [bool((bag.mean(1) < -9).any()) for bag in made.bags]
    assert marked == [bool(label) != train for label in made.labels]


@pytest.mark.parametrize("train", [True, False])
def test_the_frequency_check_repeats_one_concept(train):
    made = datasets.frequency_check(40, train=train, seed=1)
    kinds = set()
    for bag, label in zip(made.bags, made.labels.tolist(), strict=True):
        concepts = [int(((bag - concept).abs().mean(1) < 0.3).sum()) for concept in (2, 3)]
        kinds.add(tuple(count > 0 for count in concepts))
        if label:
            assert concepts == [1, 1]
        else:
            assert min(concepts) == 0
            assert max(concepts) == 1 if train else 35 <= max(concepts) < 45
    assert kinds == {(True, True), (True, False), (False, True)}
