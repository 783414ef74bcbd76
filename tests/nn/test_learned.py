import pytest
import torch

from ahop.nn import Hopfield, HopfieldLayer, HopfieldPooling

BATCH, STORED, STATES, WIDTH, HEADS = 3, 7, 5, 8, 2


def inputs():
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(BATCH, size, WIDTH, generator=generator) for size in (STORED, STATES, STORED))


def test_a_layer_looks_up_what_it_stores():
    torch.manual_seed(0)
    layer = HopfieldLayer(
        4,
        quantity=3,
        hidden_size=4,
        pattern_size=2,
        pattern_projection_size=2,
        stored_pattern_as_static=True,
        state_pattern_as_static=True,
        pattern_projection_as_static=True,
        disable_out_projection=True,
        scaling=50.0,
        trainable=False,
    )
    patterns, targets = torch.eye(4)[:3], torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    layer.store(patterns, targets)
    torch.testing.assert_close(layer(patterns), targets, atol=1e-4, rtol=1e-4)
    assert not any(p.requires_grad for p in layer.parameters())
    with pytest.raises(ValueError, match=r"patterns must have shape \(3, 4\), got \(2, 4\)"):
        layer.store(patterns[:2])
    with pytest.raises(ValueError, match=r"targets must have shape \(3, 2\), got \(3, 4\)"):
        layer.store(2 * patterns)
    with pytest.raises(ValueError, match="targets must be a tensor or an array of numbers, got str"):
        layer.store(2 * patterns, "abc")
    torch.testing.assert_close(layer.stored_patterns, patterns)
    layer.store(2 * patterns.numpy(), targets.tolist())
    torch.testing.assert_close(layer.stored_patterns, 2 * patterns)


def test_a_layer_trains_its_patterns():
    torch.manual_seed(0)
    layer = HopfieldLayer(WIDTH, quantity=11, num_heads=HEADS, similarity="adaptive")
    layer(torch.randn(BATCH, STATES, WIDTH)).square().sum().backward()
    assert layer.stored_patterns.grad.abs().sum() > 0
    assert layer.targets.grad.abs().sum() > 0


@pytest.mark.parametrize("similarity", ["dot", "adaptive", "likelihood"])
def test_pooling_does_not_mind_order_or_padding(similarity):
    torch.manual_seed(0)
    pooling = HopfieldPooling(WIDTH, quantity=3, num_heads=HEADS, similarity=similarity, output_size=5)
    stored = inputs()[0]
    pooled = pooling(stored)
    assert pooled.shape == (BATCH, 15) == (BATCH, pooling.pooled_size)
    torch.testing.assert_close(pooling(stored[:, torch.randperm(STORED)]), pooled, atol=1e-6, rtol=1e-5)
    wide = torch.cat([stored, torch.full((BATCH, 4, WIDTH), 1e3)], 1)
    mask = torch.arange(STORED + 4).expand(BATCH, -1) >= STORED
    torch.testing.assert_close(pooling(wide, stored_pattern_padding_mask=mask), pooled, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(pooling((stored, stored)), pooled)
    assert pooling.get_association_matrix(stored).shape == (BATCH, HEADS, 3, STORED)


def test_a_layer_and_its_masks():
    torch.manual_seed(0)
    layer = HopfieldLayer(WIDTH, quantity=STORED, num_heads=HEADS, similarity="adaptive")
    state, mask = inputs()[1], torch.rand(BATCH, STORED, generator=torch.Generator().manual_seed(1)) < 0.3
    whole = layer(state, stored_pattern_padding_mask=mask)
    energy = layer.energy(state, stored_pattern_padding_mask=mask)
    assert energy.shape == (BATCH, HEADS, STATES)
    for sample in range(BATCH):
        alone = {"stored_pattern_padding_mask": mask[sample : sample + 1]}
        torch.testing.assert_close(whole[sample], layer(state[sample : sample + 1], **alone)[0])
        torch.testing.assert_close(energy[sample], layer.energy(state[sample : sample + 1], **alone)[0])


def test_pooling_and_masks_of_single_states():
    torch.manual_seed(0)
    pooling = HopfieldPooling(WIDTH, quantity=2, num_heads=HEADS)
    mask = torch.zeros(2, STORED, dtype=torch.bool)
    mask[1, 3:] = True
    first, second = pooling(inputs()[0], association_mask=mask).chunk(2, -1)
    torch.testing.assert_close(first, pooling(inputs()[0]).chunk(2, -1)[0])
    torch.testing.assert_close(second, pooling(inputs()[0][:, :3]).chunk(2, -1)[1])


@pytest.mark.slow
@pytest.mark.parametrize("similarity", ["dot", "adaptive"])
def test_layers_that_learn_a_set_compile(similarity):
    torch._dynamo.reset()
    torch.manual_seed(0)
    for layer in (
        HopfieldLayer(WIDTH, quantity=4, similarity=similarity),
        HopfieldPooling(WIDTH, similarity=similarity),
    ):
        whole = torch.compile(layer, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(whole(inputs()[0]), layer(inputs()[0]), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("layer", [Hopfield(WIDTH), HopfieldLayer(WIDTH, quantity=3), HopfieldPooling(WIDTH)])
def test_a_batch_may_be_empty(layer):
    assert layer(torch.empty(0, 4, WIDTH)).shape[0] == 0
