import pytest
import torch
from torch import nn

from ahop.nn import EnergyNorm, EnergyTransformer

BATCH, LENGTH, WIDTH, HEADS = 3, 6, 8, 2


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def block(**options):
    torch.manual_seed(0)
    made = EnergyTransformer(WIDTH, num_heads=HEADS, **options).double()
    # Not where it begins, so that scale and shift count.
    made.norm.log_gamma.data.fill_(0.3)
    made.norm.delta.data.copy_(0.2 * noise(WIDTH, seed=5))
    return made


def masks():
    """None, padding, and who may ask whom."""
    padding = torch.arange(LENGTH).expand(BATCH, -1) >= torch.tensor([[6], [4], [1]])
    causal = torch.ones(LENGTH, LENGTH).triu(1).bool()
    return [{}, {"stored_pattern_padding_mask": padding}, {"association_mask": causal}]


def test_the_norm_is_the_gradient_of_its_lagrangian():
    norm, tokens = block().norm, noise(5, WIDTH).requires_grad_()
    (slope,) = torch.autograd.grad(norm.lagrangian(tokens).sum(), tokens)
    torch.testing.assert_close(norm(tokens), slope)
    torch.testing.assert_close(EnergyNorm(4)(torch.eye(4)), nn.LayerNorm(4)(torch.eye(4)))


@pytest.mark.parametrize("mask", masks(), ids=["none", "padding", "causal"])
def test_a_step_is_the_gradient_of_the_energy_as_autograd_has_it(mask):
    layer, tokens = block(steps=1, alpha=0.25), noise(BATCH, LENGTH, WIDTH).requires_grad_()
    step = (layer(tokens, **mask) - tokens) / 0.25
    (slope,) = torch.autograd.grad(layer.energy(tokens, **mask).sum(), tokens)
    # By the tokens, it is that by what the norm gives, times the norm's own derivative.
    (expected,) = torch.autograd.grad(layer.norm(tokens), tokens, grad_outputs=-step.detach())
    torch.testing.assert_close(slope, expected)


def test_the_energy_is_the_formula():
    layer, tokens = block(quantity=5, scaling=0.7), noise(LENGTH, WIDTH)
    normal = layer.norm(tokens)
    expected = -(normal @ layer.patterns.T).relu().square().sum() / 2
    for head in range(HEADS):
        rows = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
        keys, queries = normal @ layer.key.weight[rows].T, normal @ layer.query.weight[rows].T
        for c in range(LENGTH):
            others = [0.7 * keys[b] @ queries[c] for b in range(LENGTH) if b != c]
            expected = expected - torch.stack(others).logsumexp(0) / 0.7
    torch.testing.assert_close(layer.energy(tokens), expected)


@pytest.mark.parametrize("mask", masks(), ids=["none", "padding", "causal"])
def test_the_energy_falls_at_every_step(mask):
    layer, tokens = block(steps=1, alpha=0.05), 2 * noise(BATCH, LENGTH, WIDTH)
    energy = layer.energy(tokens, **mask)
    for _ in range(20):
        tokens = layer(tokens, **mask)
        assert bool((layer.energy(tokens, **mask) < energy).all())
        energy = layer.energy(tokens, **mask)


def test_many_steps_are_one_after_another():
    tokens, one, many = noise(BATCH, LENGTH, WIDTH), block(steps=1), block(steps=3)
    torch.testing.assert_close(many(tokens), one(one(one(tokens))))


def test_padding_changes_nothing_and_stays_as_it_is():
    layer, (_, mask, _) = block(), masks()
    tokens = noise(BATCH, LENGTH, WIDTH)
    padding = mask["stored_pattern_padding_mask"]
    given = tokens.masked_fill(padding[..., None], torch.nan)
    found, energy = layer(given, **mask), layer.energy(given, **mask)
    for sample, length in enumerate([6, 4, 1]):
        torch.testing.assert_close(found[sample, :length], layer(tokens[sample, :length]))
        torch.testing.assert_close(energy[sample], layer.energy(tokens[sample, :length]))
        assert bool(found[sample, length:].isnan().all())
    single = layer(given[1], stored_pattern_padding_mask=padding[1])
    torch.testing.assert_close(single, found[1], equal_nan=True)
    found[~padding].sum().backward()
    assert all(bool(torch.isfinite(learned.grad).all()) for learned in layer.parameters())


def test_tokens_have_no_order_and_samples_are_apart():
    layer, tokens = block(), noise(BATCH, LENGTH, WIDTH)
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(layer(tokens[:, order]), layer(tokens)[:, order])
    torch.testing.assert_close(layer(tokens)[1], layer(tokens[1]))
    assert layer(tokens[:0]).shape == (0, LENGTH, WIDTH) and layer.energy(tokens[:0]).shape == (0,)


def test_blocks_stack_and_learn():
    torch.manual_seed(0)
    net = nn.Sequential(EnergyTransformer(WIDTH, steps=3), EnergyTransformer(WIDTH, num_heads=HEADS, steps=3))
    tokens, target = noise(BATCH, LENGTH, WIDTH).float(), noise(BATCH, LENGTH, WIDTH, seed=1).float()
    optimiser = torch.optim.SGD(net.parameters(), 0.05)
    before = (net(tokens) - target).square().mean()
    before.backward()
    assert all(learned.grad.abs().sum() > 0 for learned in net.parameters())
    optimiser.step()
    assert (net(tokens) - target).square().mean() < before


def test_a_block_is_kept_and_begins_anew():
    layer, other, tokens = block(), block(steps=12), noise(LENGTH, WIDTH)
    other.patterns.data.zero_()
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(tokens), layer(tokens))
    torch.manual_seed(3)
    made = EnergyTransformer(WIDTH)
    torch.manual_seed(3)
    with torch.device("meta"):
        empty = EnergyTransformer(WIDTH)
    empty.to_empty(device="cpu").reset_parameters()
    torch.testing.assert_close(empty.state_dict(), made.state_dict())


def test_half_precision_comes_back_in_half_precision():
    layer, tokens = block().bfloat16(), noise(BATCH, LENGTH, WIDTH)
    assert layer(tokens.bfloat16()).dtype == torch.bfloat16
    torch.testing.assert_close(layer(tokens.bfloat16()).double(), block()(tokens), atol=0.2, rtol=0.1)


def test_bad_input_is_refused():
    layer = block()
    with pytest.raises(ValueError, match=r"input must have shape \(B, L, 8\) or \(L, 8\); got \(2, 7\)"):
        layer(torch.ones(2, 7))
    with pytest.raises(ValueError, match=r"input must be a tensor \(B, L, 8\) or \(L, 8\); got list"):
        layer([1.0])
    with pytest.raises(ValueError, match=r"stored_pattern_padding_mask must be boolean \(True = padding\), of shape"):
        layer(noise(BATCH, LENGTH, WIDTH), torch.zeros(BATCH, LENGTH))
    with pytest.raises(ValueError, match="hidden_size must be given: 8 values are not divisible by 3 heads"):
        EnergyTransformer(8, num_heads=3)
    with pytest.raises(ValueError, match="alpha must be a positive and finite number, got 0"):
        EnergyTransformer(8, alpha=0)
    with pytest.raises(ValueError, match="scaling must be positive, one number or one for each of 1 heads; got -1"):
        EnergyTransformer(8, scaling=-1.0)
