"""The two small kernels: their texts here, and their results on a GPU."""

import shutil
import subprocess

import pytest
import torch

from ahop.index.products import Products
from ahop.index.rough import Rough
from ahop.kernels import plain
from ahop.kernels.cuda_text import parameters
from ahop.similarity import Likelihood

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
NUMBERS = {"fold": {"GROUP": 32}, "mixture": {"QUERIES_PER_THREAD": 4, "CHOSEN": 1}}


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs a CUDA compiler")
@pytest.mark.parametrize("kernel", NUMBERS)
def test_the_text_compiles(kernel, tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text(plain.text(kernel, **NUMBERS[kernel]))
    done = subprocess.run(
        ["nvcc", "-arch=sm_90", "-ptx", "-o", tmp_path / "kernel.ptx", source], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_host_hands_over_what_the_text_names(monkeypatch):
    kinds = {torch.float32: "float *", torch.int64: "long long *"}
    launched = []

    def launch(kernel, numbers, grid, arguments):
        launched.append((kernel, grid))
        taken = {name: kind.removeprefix("const ") for name, kind in parameters(kernel).items()}
        given = {name: kinds[one.dtype] if isinstance(one, torch.Tensor) else "int" for name, one in arguments.items()}
        assert given == taken

    monkeypatch.setattr(plain, "_launch", launch)
    row, kind = torch.zeros(9, 5), torch.ones(2, 5)
    for chosen, shape in ((None, (9, 300)), (torch.zeros(9, 7, dtype=torch.long), (9, 7))):
        found = plain.scores(torch.zeros(300, 5), 0.0, chosen, row, row, torch.ones(2), kind, kind, None)
        assert found.shape == shape
    best = torch.zeros(9, 200)
    assert plain.fold(torch.zeros(9, 4100), torch.ones(9), 32, best, 3).shape == (9, 2)
    assert launched == [("mixture", (3, 3)), ("mixture", (1, 9)), ("fold", (9, 2))]
    assert not plain.runs_on(row)


@on_gpu
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dim, components", [(1, 1), (64, 2), (70, 3)])
def test_scores_on_a_gpu_are_those_of_the_definition(dim, components, masked):
    similarity, generator = Likelihood(dim, components, shifted=True, centre=0.7), torch.Generator().manual_seed(0)
    for parameter in similarity.parameters():
        parameter.data += torch.randn(parameter.shape, generator=generator)
    patterns, queries = torch.randn(133, dim, generator=generator), 2 * torch.randn(9, dim, generator=generator)
    observed = torch.rand(9, dim, generator=generator) < 0.6 if masked else None
    chosen = torch.randint(133, (9, 17), generator=generator)
    with torch.no_grad():
        exact = similarity.double()(patterns.double(), queries.double(), observed)
        similarity = similarity.float().cuda()
        mask = None if observed is None else observed.cuda()
        table = similarity(patterns.cuda(), queries.cuda(), mask).cpu().double()
        some = similarity.exact(patterns.cuda(), chosen.cuda(), queries.cuda(), mask).cpu().double()
    torch.testing.assert_close(table, exact, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(some, exact.gather(1, chosen), rtol=1e-5, atol=1e-4)


@on_gpu
@pytest.mark.parametrize("width", [5, 32, 4100, 70_001])
def test_a_folded_tile_has_the_best_of_each_group_and_the_whole_sum(width):
    generator = torch.Generator("cuda").manual_seed(0)
    tile = 9 * torch.randn(7, width, device="cuda", generator=generator)
    tile[3] = -torch.inf
    scale = torch.rand(7, 1, device="cuda", generator=generator) + 0.5
    engine = Products(Rough([], 1.0), torch.device("cuda"))
    groups = -(-width // engine.group)
    best, plainly = tile.new_zeros(7, groups + 5), tile.new_zeros(7, groups + 5)
    total = engine._folded(tile, scale, best, 2).logsumexp(1)
    engine.folds = False
    expected = engine._folded(tile.clone(), scale, plainly, 2).logsumexp(1)
    torch.testing.assert_close(total, expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(best, plainly, rtol=1e-6, atol=1e-6)
