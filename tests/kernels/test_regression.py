import torch

from ahop.kernels.regression import loss_and_gradient


def test_one_reading_gives_what_pytorch_gives():
    generator = torch.Generator().manual_seed(0)
    features, weights = torch.randn(6, 7, 50, generator=generator), torch.randn(7, generator=generator)
    offsets, targets = torch.randn(50, generator=generator), torch.randint(50, (6,), generator=generator)
    shares = torch.tensor([0.2, 0.0, 0.3, 0.1, 0.4, 0.0])
    loss, gradient = loss_and_gradient(features, weights, offsets, targets, shares)

    leaf = weights.double().requires_grad_()
    losses = torch.nn.functional.cross_entropy((leaf @ features.double()) + offsets, targets, reduction="none")
    expected = (losses * shares).sum()
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.double(), *torch.autograd.grad(expected, leaf), rtol=1e-4, atol=1e-5)


def test_hopeless_patterns_do_no_harm():
    features = torch.zeros(1, 1, 3)
    features[0, 0] = torch.tensor([0.0, -1e4, 1.0])
    loss, gradient = loss_and_gradient(features, torch.ones(1), torch.zeros(3), torch.tensor([2]), torch.ones(1))
    torch.testing.assert_close(loss, torch.tensor([0.0, -1.0]).logsumexp(0))
    torch.testing.assert_close(gradient, torch.tensor([-0.2689]), atol=1e-4, rtol=0)
