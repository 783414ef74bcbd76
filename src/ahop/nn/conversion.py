"""Weights of hflayers and of PyTorch for the layers of this library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn

from ahop.nn.hopfield import Hopfield
from ahop.nn.learned import HopfieldLayer, HopfieldPooling

_CORE = "association_core."
_NORMS = {"stored": "norm_stored_pattern", "state": "norm_state_pattern", "projection": "norm_pattern_projection"}
_SEPARATE = {"state": "q_proj_weight", "stored": "k_proj_weight", "projection": "v_proj_weight"}


class _Place(NamedTuple):
    """Where a tensor of ours is found: some rows of a tensor of theirs, which has this shape as a whole."""

    ours: str
    theirs: str
    shape: tuple[int, ...]
    rows: slice = slice(None)


def from_hflayers(state_dict: Mapping[str, Tensor], layer: Hopfield) -> dict[str, Tensor]:
    """The ``state_dict`` of a layer of ``hflayers``, as one that ``layer`` can load.

    Their scaling is no part of it: give it to ``layer`` when you make it. What only ``layer`` has (its scaling,
    a similarity that learns) is kept as it is. Every tensor of theirs must have a place, and every place a tensor.

    Args:
        state_dict: Of their ``Hopfield``, ``HopfieldLayer`` or ``HopfieldPooling``. Nothing in it shows
            ``pattern_projection_as_connected``, which has no place here.
        layer: The layer of the same name, made with the same sizes; it is not changed.

    Example:
        >>> theirs = {"association_core.in_proj_weight": torch.randn(12, 4)}
        >>> theirs["association_core.out_proj.weight"] = torch.randn(4, 4)
        >>> layer = ahop.nn.Hopfield(4, input_bias=False)
        >>> layer.load_state_dict(ahop.nn.from_hflayers(theirs, layer))
        <All keys matched successfully>
    """
    if not isinstance(layer, Hopfield):
        raise TypeError(f"layer must be a Hopfield layer, got {type(layer).__name__}")
    places = [*_projections(state_dict, layer), *_norms(layer), *_tables(state_dict, layer)]
    for key in state_dict:
        if key not in {place.theirs for place in places}:
            raise ValueError(f"state_dict has {key!r}, which has no place in this {type(layer).__name__}")
    converted = dict(layer.state_dict())
    for place in places:
        if place.theirs not in state_dict:
            raise ValueError(f"state_dict must have {place.theirs!r}, which becomes {place.ours!r}; it is not there")
        tensor = state_dict[place.theirs].detach()
        # Their tables have a batch of one, in the first place or, without batch_first, in the second.
        tensor = tensor.flatten(0, 1) if tensor.ndim == 3 else tensor
        if tensor.shape != place.shape:
            raise ValueError(f"{place.theirs} must have shape {place.shape} for this layer, got {tuple(tensor.shape)}")
        converted[place.ours] = tensor[place.rows].clone()
    return converted


def from_attention(attention: nn.MultiheadAttention, **options: Any) -> Hopfield:
    """A layer with the weights, the sizes and the dropout of PyTorch's attention, which answers as that does.

    Its call differs: ``layer((key, query, value), key_padding_mask, attn_mask)`` in place of ``attention(query, key,
    value, ...)[0]``, with the batch first whatever ``batch_first`` says.

    Args:
        attention: Of ``torch.nn``, trained or not; it is not changed.
        options: Of :class:`~ahop.nn.Hopfield`, for a layer that begins there and then differs: a ``separation``, a
            ``similarity`` that learns, ...

    Example:
        >>> attention = torch.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
        >>> layer = ahop.nn.from_attention(attention)
        >>> tokens = torch.randn(3, 5, 8)
        >>> torch.allclose(layer(tokens), attention(tokens, tokens, tokens)[0], atol=1e-6)
        True
    """
    if not isinstance(attention, nn.MultiheadAttention):
        raise TypeError(f"attention must be a torch.nn.MultiheadAttention, got {type(attention).__name__}")
    if attention.add_zero_attn:
        raise ValueError("attention must have no row of zeros (add_zero_attn): let a hook append it to the layer")
    layer = Hopfield(
        attention.embed_dim,
        num_heads=attention.num_heads,
        stored_pattern_size=attention.kdim,
        pattern_projection_size=attention.vdim,
        input_bias=attention.in_proj_bias is not None,
        **{"dropout": attention.dropout, **options},
    )
    # Names and order of its tensors are those of the attention in hflayers, which began as a copy of it.
    theirs = {_CORE + name: tensor for name, tensor in attention.state_dict().items()}
    layer.to(attention.out_proj.weight).load_state_dict(from_hflayers(theirs, layer))
    return layer.train(attention.training)


def _prefix(layer: Hopfield) -> str:
    return "hopfield." if isinstance(layer, (HopfieldLayer, HopfieldPooling)) else ""


def _projections(state_dict: Mapping[str, Tensor], layer: Hopfield) -> Iterator[_Place]:
    """Into the heads, packed or not, in the order state, stored, projection; and out of them."""
    core = _prefix(layer) + _CORE
    sides = {"state": layer.state, "stored": layer.stored, "projection": layer.projection}
    linears = {name: side.linear for name, side in sides.items() if side.linear is not None}
    total = sum(linear.out_features for linear in linears.values())
    # Theirs keeps a bias for projections even where these are static, and does not use it.
    unused = 0 if layer.projection.linear is not None else layer.num_heads * (layer.pattern_size or 0)
    start = 0
    for name, linear in linears.items():
        rows = slice(start, start + linear.out_features)
        start = rows.stop
        if core + "in_proj_weight" in state_dict:
            yield _Place(f"{name}.linear.weight", core + "in_proj_weight", (total, linear.in_features), rows)
        else:
            yield _Place(f"{name}.linear.weight", core + _SEPARATE[name], tuple(linear.weight.shape))
        if linear.bias is not None:
            yield _Place(f"{name}.linear.bias", core + "in_proj_bias", (total + unused,), rows)
    if layer.out_projection is not None:
        for name, tensor in layer.out_projection.named_parameters():
            yield _Place(f"out_projection.{name}", f"{core}out_proj.{name}", tuple(tensor.shape))


def _norms(layer: Hopfield) -> Iterator[_Place]:
    for name, norm in _NORMS.items():
        for kind, tensor in getattr(layer, name).named_parameters():
            if kind.startswith("norm."):
                theirs = f"{_prefix(layer)}{norm}.{kind.removeprefix('norm.')}"
                yield _Place(f"{name}.{kind}", theirs, tuple(tensor.shape))


def _tables(state_dict: Mapping[str, Tensor], layer: Hopfield) -> Iterator[_Place]:
    """What a layer has learned in the place of an input."""
    if isinstance(layer, HopfieldPooling):
        yield _Place("states", "pooling_weights", tuple(layer.states.shape))
    if isinstance(layer, HopfieldLayer):
        yield _Place("stored_patterns", "lookup_weights", tuple(layer.stored_patterns.shape))
        # By default theirs has one table for both.
        targets = "target_weights" if "target_weights" in state_dict else "lookup_weights"
        yield _Place("targets", targets, tuple(layer.targets.shape))
