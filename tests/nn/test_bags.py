import numpy as np
import pytest
import torch
from torch import nn

from ahop.nn import AttentionPooling, BagNetwork, HopfieldPooling, MaxPooling, MeanPooling, pad

WIDTH = 16
POOLINGS = {
    "mean": lambda: MeanPooling(WIDTH),
    "max": lambda: MaxPooling(WIDTH),
    "attention": lambda: AttentionPooling(WIDTH, heads=2),
    "m-hop": lambda: HopfieldPooling(WIDTH, num_heads=4),
    "a-hop": lambda: HopfieldPooling(WIDTH, num_heads=4, similarity="adaptive", quantity=2),
    "b-hop": lambda: HopfieldPooling(WIDTH, num_heads=4, similarity="likelihood"),
}


def bags(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(size, 5, generator=generator) for size in (1, 4, 9)]


def network(name, **options):
    torch.manual_seed(0)
    return BagNetwork(5, POOLINGS[name](), width=WIDTH, **options)


@pytest.mark.parametrize("name", POOLINGS)
@pytest.mark.parametrize("join_max", [False, True])
def test_a_bag_is_a_set(name, join_max):
    decide = network(name, join_max=join_max, outputs=3)
    instances, padding = pad(bags())
    logits = decide(instances, padding)
    assert logits.shape == (3, 3)
    shuffled = pad([bag[torch.randperm(len(bag))] for bag in bags()])
    torch.testing.assert_close(decide(*shuffled), logits, atol=1e-5, rtol=1e-4)
    alone = torch.cat([decide(*pad([bag])) for bag in bags()])
    torch.testing.assert_close(alone, logits, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", POOLINGS)
def test_gradients_reach_everything_and_stay_finite(name):
    decide = network(name, join_max=True, dropout=0.1)
    instances, padding = pad(bags())
    empty = torch.cat([padding, torch.ones_like(padding[:1])])
    logits = decide(torch.cat([instances, torch.zeros_like(instances[:1])]), empty)
    logits.square().sum().backward()
    assert logits.isfinite().all()
    for key, parameter in decide.named_parameters():
        assert not parameter.requires_grad or parameter.grad is None or parameter.grad.isfinite().all(), key
    assert decide.embedding[0].weight.grad.abs().sum() > 0


def test_poolings_by_hand():
    instances, padding = pad([torch.tensor([[1.0, -5.0], [3.0, -7.0]]), torch.tensor([[2.0, 2.0]])])
    torch.testing.assert_close(MeanPooling(2)(instances, padding), torch.tensor([[2.0, -6.0], [2.0, 2.0]]))
    torch.testing.assert_close(MaxPooling(2)(instances, padding), torch.tensor([[3.0, -5.0], [2.0, 2.0]]))
    attention = AttentionPooling(2)
    nn.init.zeros_(attention.score.weight)
    torch.testing.assert_close(attention(instances, padding), torch.tensor([[2.0, -6.0], [2.0, 2.0]]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "bags must be at least one, got none"),
        ([np.ones((2, 3)), np.ones((2, 4))], r"bag 1 must have one row or more of 3 values, got shape \(2, 4\)"),
        ([np.ones((2, 3)), np.ones((0, 3))], r"bag 1 must have one row or more of 3 values, got shape \(0, 3\)"),
        ([np.ones((2, 3)), np.full((2, 3), np.nan)], "bag 1 must be finite, got 6 NaN or infinite values"),
        ([["a"]], "bag 0 must be a tensor or an array of numbers, got list"),
    ],
)
def test_bags_that_cannot_be(given, message):
    with pytest.raises(ValueError, match=message):
        pad(given)


def test_networks_that_cannot_be():
    with pytest.raises(TypeError, match="pooling must be a pooling layer with a pooled_size, got Linear"):
        BagNetwork(5, nn.Linear(3, 3))
    with pytest.raises(ValueError, match="monotone needs MaxPooling, got MeanPooling"):
        BagNetwork(5, MeanPooling(64), monotone=True)
    with pytest.raises(ValueError, match=r"instances must be \(B, N, 5\) and padding \(B, N\), got \(2, 3, 4\) with"):
        network("max")(torch.ones(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool))


def test_a_monotone_network_never_holds_an_instance_against_a_bag():
    decide = network("max", monotone=True)
    some = torch.randn(50, 4, 5, generator=torch.Generator().manual_seed(1))
    whole, fewer = (decide(part, torch.zeros(part.shape[:2], dtype=torch.bool)) for part in (some, some[:, :3]))
    assert bool((whole >= fewer).all())
    assert bool((whole > fewer).any())
