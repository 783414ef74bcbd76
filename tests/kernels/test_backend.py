"""The contract: what holds for every backend."""

import ast
import inspect
from graphlib import TopologicalSorter
from itertools import product
from pathlib import Path

import pytest
import torch

from ahop import kernels
from ahop.kernels import backend as contract
from ahop.kernels.backend import Backend, Pairs
from ahop.kernels.cpu import Cpu
from ahop.kernels.cuda import Cuda
from ahop.kernels.dispatch import backend_for
from ahop.kernels.reference import Reference

BASES = ["distance", "dot"]
PARTS = [slice(0, 3), slice(3, 6), slice(6, 7)]


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("backend", [Reference, Cpu, Cuda])
def test_a_backend_has_every_method_of_the_contract_with_its_signature(backend):
    assert isinstance(backend(), Backend)
    for name, method in inspect.getmembers(Backend, inspect.isfunction):
        assert inspect.signature(getattr(backend, name)) == inspect.signature(method)


@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_dispatch_hands_out_the_backend_that_was_asked_for(name):
    pairs = Pairs(normal(1, 4, 6), normal(1, 3, 6), normal(1, 1, 2, 6), None, BASES)
    with kernels.use(name):
        backend = backend_for(pairs)
    assert (type(backend).__module__, kernels.last_used()) == (f"ahop.kernels.{name}", name)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("masked", [False, True])
def test_a_gradient_is_the_same_whatever_else_needs_one(backend, masked):
    inputs = [normal(6, 4), normal(3, 4, seed=1), torch.linspace(2, 1, 8).reshape(2, 4), normal(6, 2), normal(6)]
    observed = normal(3, 4, seed=2) < 0.5 if masked else None

    def slopes(needs):
        leaves = [tensor.clone().requires_grad_(needed) for tensor, needed in zip(inputs, needs, strict=True)]
        patterns, queries, weights, values, bias = leaves
        blend = kernels.retrieve(patterns, queries, weights, BASES, values, bias=bias, observed=observed)
        scores = kernels.scores(patterns, queries, weights, BASES, observed=observed)
        (blend.sum() + scores.square().sum()).backward()
        return [leaf.grad for leaf in leaves]

    with kernels.use(backend):
        every = slopes([True] * 5)
        for place, alone in product(range(5), [True, False]):
            needs = [(other == place) == alone for other in range(5)]
            for found, expected, needed in zip(slopes(needs), every, needs, strict=True):
                torch.testing.assert_close(found, expected if needed else None, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("masked", [False, True])
def test_readouts_and_rankings_are_the_same_in_one_part_and_in_many(backend, masked, monkeypatch):
    inputs = [normal(30, 4), normal(7, 4, seed=1), torch.linspace(2, 1, 8).reshape(2, 4), normal(30, 2), normal(30)]
    observed = normal(7, 4, seed=2) < 0.5 if masked else None

    def answers():
        patterns, queries, weights, values, bias = leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        blend = kernels.retrieve(patterns, queries, weights, BASES, values, bias=bias, observed=observed)
        ranking = kernels.recall(patterns, queries, weights, BASES, 3, bias=bias, observed=observed)
        return [blend, *ranking, *torch.autograd.grad(blend.square().sum(), leaves)]

    with kernels.use(backend):
        whole = answers()
        monkeypatch.setattr(contract, "split", lambda count, bytes_each: PARTS)
        torch.testing.assert_close(answers(), whole)


def test_no_module_of_the_kernels_needs_itself():
    folder = Path(kernels.__file__).parent
    modules = {path.stem: ast.walk(ast.parse(path.read_text())) for path in folder.glob("[!_]*.py")}
    needs = {
        module: [
            name
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module.startswith("ahop.kernels")
            for name in [node.module.rpartition(".")[2], *(alias.name for alias in node.names)]
            if name in modules
        ]
        for module, nodes in modules.items()
    }
    assert set(TopologicalSorter(needs).static_order()) == set(modules)


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_weights_of_large_scores_sum_to_one(backend):
    # Two of the patterns are the same: the log of two is lost beside scores of 1e9.
    patterns, queries = normal(2, 4).repeat(2, 1), normal(3, 4, seed=1)
    values = torch.ones(4, 1, requires_grad=True)
    with kernels.use(backend):
        blend = kernels.retrieve(patterns, queries, 1e9 * torch.ones(1, 4), ["dot"], values)
    torch.testing.assert_close(blend, torch.ones(3, 1))
    torch.testing.assert_close(torch.autograd.grad(blend.sum(), values)[0].sum(), torch.tensor(3.0))
