"""Attention of PyTorch, and the layer that takes its place."""

import pytest
import torch
from torch import nn

from ahop.nn import Hopfield, from_attention

WIDTH, HEADS = 8, 2


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def attention(**options):
    torch.manual_seed(0)
    made = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, **options)
    for learned in made.parameters():
        nn.init.normal_(learned, std=0.5)
    return made.eval()


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"kdim": 6, "vdim": 5}, {"dropout": 0.3}])
def test_a_layer_of_attention_answers_as_that_does(options):
    theirs = attention(**options).double()
    layer = from_attention(theirs)
    stored, state = noise(3, 7, theirs.kdim).double(), noise(3, 5, WIDTH, seed=1).double()
    values, padding = (
        noise(3, 7, theirs.vdim, seed=2).double(),
        torch.arange(7).expand(3, -1) > torch.tensor([[6], [3], [2]]),
    )
    wanted, weights = theirs(state, stored, values, key_padding_mask=padding, average_attn_weights=False)
    torch.testing.assert_close(layer((stored, state, values), padding), wanted)
    torch.testing.assert_close(layer.get_association_matrix((stored, state, values), padding), weights)
    assert layer.dropout == theirs.dropout and not layer.training


class Block(nn.Module):
    """A layer of PyTorch's encoder, but for its attention."""

    def __init__(self, layer):
        super().__init__()
        self.attention, self.before, self.between = from_attention(layer.self_attn), layer.norm1, layer.norm2
        self.mix = nn.Sequential(layer.linear1, nn.GELU(), layer.linear2)

    def forward(self, tokens, padding):
        tokens = tokens + self.attention(self.before(tokens), padding)
        return tokens + self.mix(self.between(tokens))


@pytest.mark.parametrize("training", [True, False])
def test_a_stack_of_encoder_layers_answers_alike_with_layers_in_the_place_of_attention(training):
    torch.manual_seed(0)
    layers = [
        nn.TransformerEncoderLayer(WIDTH, HEADS, 16, 0.0, "gelu", batch_first=True, norm_first=True).train(training)
        for _ in range(3)
    ]
    tokens, padding = noise(4, 6, WIDTH), torch.arange(6).expand(4, -1) > torch.tensor([[5], [2], [4], [5]])
    ours, theirs = tokens, tokens
    for layer in layers:
        ours, theirs = Block(layer)(ours, padding), layer(theirs, src_key_padding_mask=padding)
    torch.testing.assert_close(ours[~padding], theirs[~padding])


def test_it_may_begin_there_and_differ():
    theirs, tokens = attention(), noise(2, 5, WIDTH)
    learned = from_attention(theirs, similarity="adaptive")
    torch.testing.assert_close(learned(tokens), from_attention(theirs)(tokens), atol=1e-4, rtol=1e-4)
    sparse = from_attention(theirs, separation="sparsemax", dropout=0.5)
    assert bool((sparse.get_association_matrix(tokens) == 0).any()) and sparse.dropout == 0.5
    sparse.state.linear.weight.data.zero_()
    assert bool(theirs.in_proj_weight.any())


def test_what_has_no_place_is_refused():
    with pytest.raises(TypeError, match=r"attention must be a torch\.nn\.MultiheadAttention, got Hopfield"):
        from_attention(Hopfield(4))
    with pytest.raises(ValueError, match="attention must have no row of zeros"):
        from_attention(attention(add_zero_attn=True))
    with pytest.raises(ValueError, match=r"bias_k.*has no place in this Hopfield"):
        from_attention(attention(add_bias_kv=True))
