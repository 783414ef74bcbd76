"""The CUDA kernels as text: what can be known of them without a GPU."""

import re
import shutil
import subprocess

import pytest

from ahop.kernels import cuda
from ahop.kernels.cuda_text import Recipe
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
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_text_compiles(kernel, tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text(recipe(kernel, 100).text(kernel))
    done = subprocess.run(
        ["nvcc", "-arch=sm_90", "-ptx", "-o", tmp_path / "kernel.ptx", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
