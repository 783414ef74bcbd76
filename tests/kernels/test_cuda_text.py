"""The CUDA kernels as text: what can be known of them without a GPU."""

import re
import shutil
import subprocess
from contextlib import nullcontext

import pytest
import torch

from ahop.kernels import cuda
from ahop.kernels.backend import Needs, Pairs
from ahop.kernels.cuda import Cuda
from ahop.kernels.cuda_text import Recipe, parameters
from ahop.kernels.network import Compare, lane_steps

KERNELS = ["scores", "list", "retrieve", "recall", "pull_inputs", "pull_weights", "pull_inputs_weights"]


def recipe(kernel, dim, bases=2, masked=True):
    layout = cuda._layout({"list": "scores", "recall": "retrieve"}.get(kernel, kernel), dim)
    return Recipe(layout, tuple(range(bases)), masked)


@pytest.mark.parametrize("dim", [1, 3, 32, 33, 63, 64, 65, 100, 128, 129, 256, 257, 784, 1024])
@pytest.mark.parametrize("kernel", ["scores", "pull_inputs_weights"])
def test_every_rank_has_one_place(dim, kernel):
    layout = cuda._layout(kernel, dim)
    ranks = [layout.rank(place) for place in range(layout.stride)]
    assert sorted(rank for rank in ranks if rank < dim) == list(range(dim))
    assert layout.lanes in (1, 2, 4, 8, 16, 32)
    assert layout.values * layout.lanes >= dim


@pytest.mark.parametrize("dim", [5, 64, 100])
def test_the_network_is_written_out_step_by_step(dim):
    rendered = recipe("scores", dim)
    stages = lane_steps(rendered.layout.values, rendered.layout.lanes)
    compared = [step for stage in stages for step in stage if isinstance(step, Compare)]
    found = re.findall(r"order\(v\[(\d+)\], v\[(\d+)\]\)", rendered.text("scores"))
    assert [(int(low), int(high)) for low, high in found] == compared


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs a CUDA compiler")
@pytest.mark.parametrize(
    "kernel",
    [
        name if name in ("scores", "pull_inputs_weights") else pytest.param(name, marks=pytest.mark.slow)
        for name in KERNELS
    ],
)
def test_the_text_compiles(kernel, tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text(recipe(kernel, 100).text(kernel))
    done = subprocess.run(
        ["nvcc", "-arch=sm_90", "-ptx", "-o", tmp_path / "kernel.ptx", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


HELD = {torch.float32: "float *", torch.int32: "int *"}


def c_type(argument):
    return HELD[argument.dtype] if isinstance(argument, torch.Tensor) else type(argument).__name__


def test_a_launch_follows_the_order_of_the_text_whatever_the_order_of_its_names():
    for kernel in KERNELS:
        names = list(parameters(kernel))
        text = recipe(kernel, 5).text(kernel)
        assert re.search(r"[ *(]" + r",\s+[\w ]*[ *]".join(names) + r"\) {", text), kernel
        numbers = {name: place for place, name in enumerate(names)}
        assert cuda.in_order(kernel, dict(reversed(numbers.items()))) == list(range(len(names)))
        with pytest.raises(TypeError, match=f"{kernel} takes .*tile.*; got other"):
            cuda.in_order(kernel, {"other": 1})


def test_a_launch_asks_for_much_shared_memory_before_it_takes_it(monkeypatch):
    done = []

    class Compiled:
        def __call__(self, *, grid, block, args, shared_mem):
            done.append((grid, block, args[1:], shared_mem))

        def set_shared_memory_config(self, shared_mem_bytes):
            done.append(shared_mem_bytes)

    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(cuda, "_compile", lambda kernel, recipe, device: Compiled())
    numbers = {name: place for place, name in enumerate(parameters("list"))}
    for shared in (1024, 2**16):
        cuda._launch("list", recipe("list", 5), (7, 2), 32, shared, **numbers | {"patterns": torch.zeros(1)})
    launched = ((7, 2, 1), (32, 1, 1), list(range(1, 9)))
    assert done == [(*launched, 1024), 2**16, (*launched, 2**16)]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dim", [5, 64, 100, 784])
def test_the_host_hands_over_whole_vectors_and_takes_back_what_was_asked_for(dim, own, monkeypatch):
    """Everything but the kernels themselves, whose results are whatever memory held."""
    launched = []

    def launch(kernel, recipe, grid, threads, shared, **arguments):
        launched.append(kernel)
        tensors = [argument for argument in arguments.values() if isinstance(argument, torch.Tensor)]
        assert all(tensor.is_contiguous() for tensor in tensors)
        assert min(grid) >= 1
        assert 0 < shared <= 227 * 1024
        taken = {name: kind.removeprefix("const ") for name, kind in parameters(kernel).items()}
        assert {name: c_type(argument) for name, argument in arguments.items()} == taken

    monkeypatch.setattr(cuda, "_launch", launch)
    monkeypatch.setattr(cuda, "_slots", lambda blocks, like: 132 * blocks)
    monkeypatch.setattr(cuda, "_most_shared", lambda like: 227 * 1024)
    patterns, queries, slopes = torch.zeros(2, 300, dim), torch.zeros(2, 40, dim), torch.zeros(2, 40, 300)
    weights = torch.zeros(2, 40, 2, dim) if own else torch.zeros(1, 1, 2, dim)
    observed = torch.ones(2, 40, dim, dtype=torch.bool) if own else None
    pairs = Pairs(patterns, queries, weights, observed, ["distance", "dot"])

    gpu = Cuda()
    assert gpu.scores(pairs).shape == (2, 40, 300)
    assert gpu.sorted_terms(patterns, queries, ["dot"]).shape == (2, 40, 300, 1, dim)
    readout = gpu.retrieve(pairs, torch.zeros(2, 300, 7), None)
    assert [tuple(part.shape) for part in readout] == [(2, 40, 7), (2, 40)]
    for k in (3, 33):
        best = gpu.recall(pairs, k, torch.zeros(2, 300))
        assert [tuple(part.shape) for part in best] == [(2, 40, k), (2, 40, k), (2, 40)]
    for needs in (Needs(True, True, True), Needs(False, True, False), Needs(False, False, True)):
        found = gpu.gradients(pairs, slopes, needs)
        wanted = [t.shape if needed else None for t, needed in zip((patterns, queries, weights), needs, strict=True)]
        assert [None if gradient is None else gradient.shape for gradient in found] == wanted
    assert set(launched) == set(KERNELS)


def test_what_does_not_fit_one_pass_is_made_from_tables_of_scores(monkeypatch):
    launched = []
    monkeypatch.setattr(cuda, "_launch", lambda kernel, *where, **arguments: launched.append(kernel))
    monkeypatch.setattr(cuda, "_slots", lambda blocks, like: 132 * blocks)
    monkeypatch.setattr(cuda, "_most_shared", lambda like: 227 * 1024)
    pairs = Pairs(torch.zeros(1, 40, 8), torch.zeros(1, 9, 8), torch.zeros(1, 1, 1, 8), None, ["dot"])
    assert Cuda().recall(pairs, 33, None).indices.shape == (1, 9, 33)
    assert Cuda().retrieve(pairs, torch.zeros(1, 40, 10_000), None).blend.shape == (1, 9, 10_000)
    assert launched == ["scores", "scores"]
