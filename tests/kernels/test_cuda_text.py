"""The CUDA kernels as text: what can be known of them without a GPU."""

import re
import shutil
import subprocess

import pytest
import torch

from ahop.kernels import cuda
from ahop.kernels.cuda_text import Recipe
from ahop.kernels.network import Compare, lane_steps
from ahop.kernels.reference import Pairs

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
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_text_compiles(kernel, tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text(recipe(kernel, 100).text(kernel))
    done = subprocess.run(
        ["nvcc", "-arch=sm_90", "-ptx", "-o", tmp_path / "kernel.ptx", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dim", [5, 64, 100, 784])
def test_the_host_hands_over_whole_vectors_and_takes_back_what_was_asked_for(dim, own, monkeypatch):
    """Everything but the kernels themselves, whose results are whatever memory held."""
    launched = []

    def launch(kernel, recipe, grid, threads, shared, arguments):
        launched.append(kernel)
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        assert all(tensor.is_contiguous() for tensor in tensors)
        assert min(grid) >= 1
        assert 0 < shared <= 227 * 1024
        # As many arguments as the kernel's head names.
        head = re.search(rf"\n{kernel.split('_')[0]}\((.*?)\)", recipe.text(kernel), re.DOTALL).group(1)
        assert len(arguments) == head.count(",") + 1

    monkeypatch.setattr(cuda, "_launch", launch)
    monkeypatch.setattr(cuda, "_slots", lambda blocks, like: 132 * blocks)
    monkeypatch.setattr(cuda, "_most_shared", lambda like: 227 * 1024)
    patterns, queries, slopes = torch.zeros(2, 300, dim), torch.zeros(2, 40, dim), torch.zeros(2, 40, 300)
    weights = torch.zeros(2, 40, 2, dim) if own else torch.zeros(1, 1, 2, dim)
    observed = torch.ones(2, 40, dim, dtype=torch.bool) if own else None
    pairs = Pairs(patterns, queries, weights, observed, ["distance", "dot"])

    assert cuda.scores(pairs).shape == (2, 40, 300)
    assert cuda.sorted_terms(patterns, queries, ["dot"]).shape == (2, 40, 300, 1, dim)
    assert [tuple(part.shape) for part in cuda.retrieve(pairs, torch.zeros(2, 300, 7), None)] == [
        (2, 40, 7),
        (2, 40),
    ]
    best = cuda.recall(pairs, 3, torch.zeros(2, 300))
    assert [tuple(part.shape) for part in best] == [(2, 40, 3), (2, 40, 3), (2, 40)]
    assert cuda.recall(pairs, 33, None) is None
    for needs in ([True, True, True], [False, True, False], [False, False, True], [True, False, False]):
        found = cuda.gradients(pairs, slopes, needs)
        wanted = [t.shape if needed else None for t, needed in zip((patterns, queries, weights), needs, strict=True)]
        assert [None if gradient is None else gradient.shape for gradient in found] == wanted
    assert set(launched) == set(KERNELS)
