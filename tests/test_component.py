"""A name belongs to one class."""

import ast
import importlib
import sys
from pathlib import Path

import pytest
import torch

import ahop
from ahop import similarity
from ahop.similarity import Decomposable, Distance, Similarity

MODULE = """
from ahop.similarity import Decomposable

class Own(Decomposable):
    def terms(self, patterns, queries):
        return {factor} * patterns * queries
"""


@pytest.fixture
def members(monkeypatch):
    monkeypatch.setattr(Similarity, "members", dict(Similarity.members))
    return Similarity.members


def test_a_name_that_is_taken_is_refused(members):
    wanted = r"similarity 'distance' is known already, as ahop.similarity.fixed.Distance; choose another name for .*"
    with pytest.raises(ValueError, match=wanted + r"<locals>\.Distance, of the class or as its attribute `name`"):
        type("Distance", (Decomposable,), {"__module__": __name__, "__qualname__": "f.<locals>.Distance"})
    with pytest.raises(ValueError, match="separation 'softmax' is known already"):
        type("Other", (ahop.separation.Separation,), {"name": "softmax"})
    assert members["distance"] is Distance
    # Families do not share their names.
    assert ahop.variants.Correlated.name == similarity.Correlated.name


def test_a_class_below_another_has_a_name_of_its_own(members):
    class Further(Distance):
        pass

    assert members["further"] is Further and members["distance"] is Distance


def test_a_module_that_is_read_again_brings_its_classes_again(members, tmp_path, monkeypatch):
    (tmp_path / "owner.py").write_text(MODULE.format(factor=1))
    monkeypatch.syspath_prepend(tmp_path)
    # What was written within a second would be read from the cache.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    owner = importlib.import_module("owner")
    monkeypatch.setitem(sys.modules, "owner", owner)
    first = owner.Own
    (tmp_path / "owner.py").write_text(MODULE.format(factor=2))
    importlib.reload(owner)
    assert members["own"] is owner.Own is not first
    memory = ahop.UniversalHopfield(torch.eye(2), similarity="own")
    assert memory.scores(torch.eye(2)).tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_a_cell_of_a_notebook_can_be_run_twice(members):
    cell = {"__name__": "__main__"}
    exec(MODULE.format(factor=1), cell)
    exec(MODULE.format(factor=2), cell)
    assert members["own"] is cell["Own"]


def test_type_checkers_know_every_public_name():
    tree = ast.parse(Path(similarity.__file__).read_text())
    written = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert set(similarity.__all__) <= written
