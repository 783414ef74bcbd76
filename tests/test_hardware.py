"""What holds on every machine, asked of a machine that has something and of one that lacks it."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import ahop
from ahop import _hardware, nn
from ahop._hardware import multiplies
from ahop_paper.muon import orthogonal

CPU = torch.device("cpu")
HALVES = (torch.float16, torch.bfloat16)


class Products(TorchDispatchMode):
    """Notes in which types matrices are multiplied, and multiplies in float32: this processor may have no other."""

    def __init__(self):
        super().__init__()
        self.types = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.__name__.split(".")[0] not in ("mm", "bmm", "addmm", "baddbmm", "mv"):
            return function(*args, **(kwargs or {}))
        self.types |= {matrix.dtype for matrix in args}
        return function(*(matrix.float() for matrix in args)).to(args[0].dtype)


@pytest.fixture(params=[True, False], ids=["a processor with halves", "a processor without"])
def has_halves(request, monkeypatch):
    for dtype in HALVES:
        monkeypatch.setitem(_hardware.PROCESSOR_HAS, dtype, request.param)
    return request.param


def test_only_a_half_on_a_processor_without_it_is_not_multiplied(has_halves):
    assert multiplies(torch.float32, CPU)
    assert multiplies(torch.float64, CPU)
    assert all(multiplies(dtype, CPU) == has_halves for dtype in HALVES)
    assert all(multiplies(torch.float16, torch.device(kind)) for kind in ("cuda", "mps", "meta"))


def test_a_build_that_cannot_say_has_no_halves(monkeypatch):
    monkeypatch.setattr(torch.ops, "mkldnn", object())
    assert not any(_hardware.processor_has(dtype) for dtype in HALVES)


def test_this_processor_answers():
    assert {dtype: _hardware.processor_has(dtype) for dtype in HALVES} == _hardware.PROCESSOR_HAS


@pytest.mark.parametrize("shape", [(64, 64), (3, 40, 64), (2, 64, 40)])
def test_matrices_are_made_orthogonal_in_half_only_where_the_processor_has_it(shape, has_halves):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    with Products() as products:
        found = orthogonal(matrices)
    assert products.types == {torch.bfloat16 if has_halves else torch.float32}
    assert found.dtype == torch.float32


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", ["d-hop", "m-hop", "u-hop", "s-hop", "k-hop", "a-hop", "b-hop"])
def test_memories_in_half_are_not_multiplied_in_half(name, dtype):
    memory = ahop.create(name, torch.randn(64, 64, generator=torch.Generator().manual_seed(0)).sign().to(dtype))
    with Products() as products:
        memory.retrieve(memory.patterns)
        memory.recall(memory.patterns)
    assert not products.types & set(HALVES)


LAYERS = {
    "layer": lambda: nn.Hopfield(32),
    "pooling": lambda: nn.HopfieldPooling(32),
    "lookup": lambda: nn.HopfieldLayer(32, quantity=8),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", list(LAYERS))
def test_layers_multiply_in_half_only_where_the_processor_has_it(name, autocast, dtype, has_halves):
    layer, inputs = LAYERS[name](), torch.randn(2, 40, 32, generator=torch.Generator().manual_seed(0))
    if not autocast:
        layer, inputs = layer.to(dtype), inputs.to(dtype)
    inputs.requires_grad_()
    with Products() as products:
        with torch.autocast("cpu", dtype, enabled=autocast):
            answer = layer(inputs)
        answer.float().sum().backward()
    assert answer.dtype == dtype
    assert inputs.grad.isfinite().all()
    assert (dtype in products.types) == has_halves
