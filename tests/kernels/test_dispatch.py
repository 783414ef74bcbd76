"""Which kernels run, and what none of them takes."""

import importlib.util
import sys

import pytest
import torch
from torch import ones

from ahop import kernels
from ahop.kernels import dispatch


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
def test_small_problems_run_the_reference_and_large_or_repeated_ones_do_not(monkeypatch):
    monkeypatch.setattr(dispatch, "_sorted_so_far", type(dispatch._sorted_so_far)())
    monkeypatch.setitem(dispatch._PATIENCE, "cpu", 1000)
    patterns, weights = normal(4, 10), ones(1, 10)
    kernels.scores(patterns, patterns, weights, ["dot"])
    assert kernels.last_used() == "reference"
    for _ in range(10):
        kernels.scores(patterns, patterns, weights, ["dot"])
    assert kernels.last_used() == "cpu"
    kernels.scores(patterns.double(), patterns.double(), weights.double(), ["dot"])
    assert kernels.last_used() == "reference"


def test_without_its_compiler_the_reference_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "ahop.kernels.cpu", None)
    monkeypatch.setitem(dispatch._PATIENCE, "cpu", 0)
    patterns, weights = normal(4, 10), ones(1, 10)
    kernels.scores(patterns, patterns, weights, ["dot"])
    assert kernels.last_used() == "reference"
    with kernels.use("cpu"), pytest.raises(ValueError, match="cpu kernels cannot run this"):
        kernels.scores(patterns, patterns, weights, ["dot"])


def test_what_a_backend_cannot_do_is_an_error():
    patterns, weights = normal(4, 10), ones(1, 10)
    with kernels.use("cuda"), pytest.raises(ValueError, match="cuda kernels cannot run this: the patterns are on cpu"):
        kernels.scores(patterns, patterns, weights, ["dot"])
    with kernels.use("cpu"), pytest.raises(ValueError, match=r"float32, and the patterns are torch\.float64"):
        kernels.scores(patterns.double(), patterns.double(), weights.double(), ["dot"])
    with kernels.use("cpu"), pytest.raises(ValueError, match="up to 4096 dimensions, got 5000"):
        kernels.scores(normal(2, 5000), normal(1, 5000), ones(1, 5000), ["dot"])
    with pytest.raises(ValueError, match="backend must be one of"), kernels.use("gpu"):
        pass
    assert dispatch._forced.value is None


def test_bad_input_is_refused():
    patterns, queries, weights = normal(4, 10), normal(3, 10), ones(1, 10)
    with pytest.raises(ValueError, match="bases must be a list"):
        kernels.scores(patterns, queries, weights, ["cosine"])
    with pytest.raises(ValueError, match="bases must be a list"):
        kernels.scores(patterns, queries, weights, "dot")
    with pytest.raises(ValueError, match=r"same number of dimensions.*\(3, 9\)"):
        kernels.scores(patterns, queries[:, :9], weights, ["dot"])
    with pytest.raises(ValueError, match="same leading sizes"):
        kernels.scores(patterns[None], queries, weights, ["dot"])
    with pytest.raises(ValueError, match="not be empty"):
        kernels.scores(patterns[:0], queries, weights, ["dot"])
    with pytest.raises(ValueError, match=r"weights must be \(2, 10\)"):
        kernels.scores(patterns, queries, weights, ["dot", "dot"])
    with pytest.raises(ValueError, match="observed must be boolean"):
        kernels.scores(patterns, queries, weights, ["dot"], observed=queries)
    with pytest.raises(ValueError, match="k must be between 1 and 4"):
        kernels.recall(patterns, queries, weights, ["dot"], 5)
    with pytest.raises(ValueError, match="values must have one row"):
        kernels.retrieve(patterns, queries, weights, ["dot"], normal(3, 2))
    with pytest.raises(
        ValueError, match=r"weights must be like the patterns, torch\.float32 on cpu; got torch\.float64"
    ):
        kernels.scores(patterns, queries, weights.double(), ["dot"])
    with pytest.raises(ValueError, match="values must be like the patterns"):
        kernels.retrieve(patterns, queries, weights, ["dot"], patterns.double())
    with pytest.raises(ValueError, match="bias must have one number"):
        kernels.retrieve(patterns, queries, weights, ["dot"], patterns, bias=normal(3))
