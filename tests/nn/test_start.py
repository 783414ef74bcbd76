import pytest
import torch
from torch import nn

from ahop.modulation import Kernel
from ahop.nn import AttentionPooling, BagNetwork, Hopfield, HopfieldLayer, HopfieldPooling, MaxPooling, RowEmbedding
from ahop.nn.start import reset
from ahop.separation import Entmax, Softmax
from ahop.similarity import Adaptive, Correlated, Likelihood, Regimes

LAYERS = {
    "attention": lambda: Hopfield(8, num_heads=2),
    "without biases": lambda: Hopfield(8, input_bias=False, scaling=[3.0]),
    "normalised": lambda: Hopfield(8, normalize_stored_pattern=True, normalize_state_pattern=True),
    "plain": lambda: Hopfield(scaling=5.0),
    "adaptive": lambda: Hopfield(8, num_heads=2, similarity="adaptive", learn_scaling=True, scaling=(0.5, 1e5)),
    "likelihood": lambda: Hopfield(8, num_heads=2, similarity="likelihood"),
    "softmax": lambda: Hopfield(8, separation=Softmax(2.0, learn=True)),
    "sparsemax": lambda: Hopfield(8, separation="sparsemax"),
    "entmax": lambda: Hopfield(8, separation=Entmax(1.3, learn_alpha=True)),
    "kernel": lambda: Hopfield(8, modulation=Kernel(8, 5)),
    "matrix": lambda: Hopfield(8, similarity=Adaptive(8, learn_matrix=True, patterns=3)),
    "components": lambda: Hopfield(8, similarity=Likelihood(8, components=3)),
    "correlated": lambda: Hopfield(8, similarity=Correlated(8, rank=2)),
    "regimes": lambda: Hopfield(8, similarity=Regimes([Likelihood(8), Likelihood(8)])),
    "lookup": lambda: HopfieldLayer(8, quantity=5),
    "pooling": lambda: HopfieldPooling(8, quantity=2, similarity="adaptive"),
    "bags": lambda: BagNetwork(5, HopfieldPooling(64, num_heads=2)),
    "bags by attention": lambda: BagNetwork(5, AttentionPooling(64), join_max=True),
    "bags by the largest": lambda: BagNetwork(5, MaxPooling(64), monotone=True),
    "rows": lambda: RowEmbedding(3, [4, 2], blocks=2),
    "rows by lines": lambda: RowEmbedding(0, [4], kind="linear"),
    "rows as columns": lambda: RowEmbedding(3, [4, 2], kind="columns"),
}


def tensors(layer):
    return dict([*layer.named_parameters(), *layer.named_buffers()])


def emptied(make):
    """Built where tensors have no values, then given memory with nothing of use in it."""
    with torch.device("meta"):
        layer = make()
    assert all(tensor.is_meta for tensor in tensors(layer).values())
    assert repr(layer)
    layer.to_empty(device="cpu")
    for tensor in tensors(layer).values():
        tensor.data.fill_(77)
    return layer


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_built_on_the_meta_device_and_reset_is_the_one_built_in_place(name):
    torch.manual_seed(3)
    built = LAYERS[name]()
    layer = emptied(LAYERS[name])
    torch.manual_seed(3)
    layer.reset_parameters()
    for key, wanted in tensors(built).items():
        assert torch.equal(tensors(layer)[key], wanted), key
        assert tensors(layer)[key].requires_grad == wanted.requires_grad, key


@pytest.mark.parametrize("name", ["attention", "adaptive", "entmax", "rows as columns", "lookup"])
def test_every_part_that_has_tensors_can_be_reset_by_itself(name):
    """As wrappers for large models do it: module after module, the parts after what they are parts of."""
    layer = emptied(LAYERS[name])
    torch.manual_seed(3)
    for module in layer.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()
    first, second = LAYERS[name](), LAYERS[name]()
    for key, got in tensors(layer).items():
        wanted, other = (tensors(built)[key] for built in (first, second))
        # What is drawn at random is alike in size, all else is equal.
        if torch.equal(wanted, other):
            assert torch.equal(got, wanted), key
        else:
            assert 0.7 < got.abs().mean() / wanted.abs().mean() < 1.4, key


def test_what_cannot_begin_anew_lets_its_parts_do_so():
    stack = nn.Sequential(nn.ReLU(), nn.Sequential(nn.LayerNorm(2)))
    nn.init.zeros_(stack[1][0].weight)
    reset(stack, None)
    assert stack[1][0].weight.tolist() == [1, 1]
