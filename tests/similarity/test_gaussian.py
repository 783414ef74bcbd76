import torch

from ahop.similarity import Correlated, Gaussian


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def learned():
    similarity = Gaussian(5).double()
    similarity.bias.data.copy_(noise(5, seed=1))
    similarity.log_noise.data.copy_(noise(5, seed=2))
    return similarity


def test_patterns_without_scatter_have_one_normal_noise():
    similarity = learned()
    other = Correlated(5, tails=float("inf")).double()
    other.bias.data.copy_(similarity.bias)
    other.log_psi.data.copy_(2 * similarity.log_noise)
    patterns, queries = noise(7, 5, seed=3).double(), noise(4, 5, seed=4).double()
    torch.testing.assert_close(similarity(patterns, queries), other(patterns, queries))


def test_scatter_and_noise_add_up_to_what_a_query_varies_by():
    similarity, wider = learned(), learned()
    patterns, queries = noise(7, 5, seed=3).double(), noise(4, 5, seed=4).double()
    spread = torch.full_like(patterns, 0.7)
    wider.log_noise.data.copy_((similarity.noise.square() + 0.49).log() / 2)
    scattered = torch.cat([patterns, spread], 1)
    torch.testing.assert_close(similarity(scattered, queries), wider(patterns, queries))
    torch.testing.assert_close(similarity.stranger(scattered, queries), wider.stranger(patterns, queries))


def test_another_unit_moves_all_scores_alike():
    similarity, patterns, queries = learned(), noise(7, 10, seed=3).abs().double(), noise(4, 5, seed=4).double()
    there = torch.cat([3 * patterns[:, :5] + 2, 3 * patterns[:, 5:]], 1)
    moved = similarity.rescaled(3.0, 2.0)(there, 3 * queries + 2) - similarity(patterns, queries)
    torch.testing.assert_close(moved, torch.full_like(moved, -5 * torch.tensor(3.0).log().item()))


def test_gradients_are_those_of_the_scores():
    similarity, patterns = learned(), noise(3, 10, seed=3).abs().double().requires_grad_()
    queries = noise(2, 5, seed=4).double().requires_grad_()
    assert torch.autograd.gradcheck(similarity, (patterns, queries))
