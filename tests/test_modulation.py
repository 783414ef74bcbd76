import pytest
import torch

import ahop
from ahop.modulation import Kernel


def test_the_separation_loss_is_its_definition():
    patterns = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    kernel = Kernel(4, 3).double()
    torch.nn.init.normal_(kernel.phi, generator=torch.Generator().manual_seed(1))
    unit = torch.nn.functional.normalize(patterns @ kernel.phi.T, dim=1)
    terms = [torch.exp(-2 * (unit[i] - unit[j]).square().sum()) for i in range(6) for j in range(i + 1, 6)]
    torch.testing.assert_close(kernel.separation_loss(patterns), torch.stack(terms).mean().log())


def test_drawing_patterns_estimates_the_whole_loss():
    patterns = torch.randn(400, 8, generator=torch.Generator().manual_seed(0))
    kernel, generator = Kernel(8), torch.Generator().manual_seed(1)
    parts = torch.stack([kernel.separation_loss(patterns, most=100, generator=generator) for _ in range(30)])
    assert parts.mean().item() == pytest.approx(kernel.separation_loss(patterns).item(), abs=0.02)


def test_gradients_are_right():
    patterns = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    kernel = Kernel(3).double()
    torch.autograd.gradcheck(lambda p, phi: kernel.separation_loss(p), (patterns, kernel.phi))


def test_one_pattern_has_no_pair_to_part():
    with pytest.raises(ValueError, match="patterns must be at least two for the separation loss, got 1"):
        Kernel(3).separation_loss(torch.ones(1, 3))


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_a_kernel_of_few_queries_is_the_identity_unless_it_is_clearly_better(seed):
    """Four queries held out would choose a kernel by luck."""
    draw = torch.Generator().manual_seed(seed)
    patterns, origins = torch.randn(50, 12, generator=draw), torch.randint(50, (520,), generator=draw)
    width = 0.3 + torch.rand(12, generator=draw) * 0.9
    queries = patterns[origins] + width * torch.randn(520, 12, generator=draw)
    memory = ahop.create("k2-hop", patterns)
    before = memory.recall(queries[20:]).indices[:, 0] == origins[20:]
    memory.fit(queries[:20], origins[:20])
    after = memory.recall(queries[20:]).indices[:, 0] == origins[20:]
    assert after.double().mean() > before.double().mean() - 0.02
