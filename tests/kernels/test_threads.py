"""The number of threads changes who computes, and not what."""

import importlib.util

import pytest
import torch

from ahop import kernels
from ahop.kernels.compiled import share
from ahop.kernels.regression import loss_and_gradient

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba")
COUNTS = [1, 2, 3, 40]


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("items", [0, 1, 7, 64])
def test_every_item_is_worked_on_once(count, items, threads):
    threads(count)
    done = []
    share(items, lambda first, last, part: done.extend((item, part) for item in range(first, last)))
    assert sorted(item for item, _ in done) == list(range(items))
    assert all(part < count for _, part in done)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("patterns", [1, 30, 300])
def test_scores_and_gradients_are_those_of_the_reference(count, patterns, threads):
    given = [normal(patterns, 9), normal(5, 9, seed=1), torch.linspace(1, 2, 18).reshape(2, 9)]

    def answers(*tensors):
        leaves = [tensor.clone().requires_grad_() for tensor in tensors]
        scores = kernels.scores(*leaves, ["distance", "dot"])
        return [scores, *torch.autograd.grad(scores.square().sum(), leaves)]

    expected = answers(*(tensor.double() for tensor in given))
    threads(count)
    with kernels.use("cpu"):
        for found, exact in zip(answers(*given), expected, strict=True):
            assert (found.double() - exact).norm() <= 1e-4 * exact.norm()


@pytest.mark.parametrize("count", COUNTS)
def test_a_loss_and_its_gradient_are_those_of_one_thread(count, threads):
    features, targets = normal(6, 7, 50), torch.arange(6)
    problem = features, normal(7, seed=1), normal(50, seed=2), targets, torch.full((6,), 1 / 6)
    threads(1)
    expected = loss_and_gradient(*problem)
    threads(count)
    torch.testing.assert_close(loss_and_gradient(*problem), expected, rtol=1e-5, atol=1e-6)
