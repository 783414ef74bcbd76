import pytest
import torch

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
