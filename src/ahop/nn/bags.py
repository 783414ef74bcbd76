"""Networks for bags: each instance is embedded, the bag is pooled, and a head decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ahop._checks import as_tensor, integer, require_finite, share
from ahop.nn.linear import Linear, linear
from ahop.nn.start import reset


class MeanPooling(nn.Module):
    """The mean of a bag's instances.

    Shape:
        ``(B, N, width)`` and a padding mask ``(B, N)`` to ``(B, width)``; zero for an empty bag.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pooled_size = integer(width, "width", 1)

    def forward(self, instances: Tensor, stored_pattern_padding_mask: Tensor) -> Tensor:
        there = _blank(instances, stored_pattern_padding_mask)
        return there.sum(1) / (~stored_pattern_padding_mask).sum(1, keepdim=True).clamp_min(1)


class MaxPooling(MeanPooling):
    """The largest value of each dimension among a bag's instances; shapes as in :class:`MeanPooling`."""

    def forward(self, instances: Tensor, stored_pattern_padding_mask: Tensor) -> Tensor:
        largest = instances.masked_fill(stored_pattern_padding_mask[..., None], -torch.inf).amax(1)
        return largest.masked_fill(stored_pattern_padding_mask.all(1)[:, None], 0.0)


class AttentionPooling(nn.Module):
    r"""Gated attention (Ilse, Tomczak and Welling, 2018).

    .. math:: \sum_i a_i h_i, \qquad a = \mathrm{softmax}\big(w^\top(\tanh(V h_i) \odot \sigma(U h_i))\big)

    Args:
        width: Width of the instances.
        heads: How many such sums, side by side.

    Shape:
        ``(B, N, width)`` and a padding mask ``(B, N)`` to ``(B, heads * width)``.
    """

    def __init__(self, width: int, heads: int = 1) -> None:
        super().__init__()
        width, heads = integer(width, "width", 1), integer(heads, "heads", 1)
        self.value, self.gate, self.score = Linear(width, width), Linear(width, width), Linear(width, heads)
        self.pooled_size = heads * width

    def reset_parameters(self) -> None:
        """Begin anew."""
        reset(self.value, self.gate, self.score)

    def forward(self, instances: Tensor, stored_pattern_padding_mask: Tensor) -> Tensor:
        instances = _blank(instances, stored_pattern_padding_mask)
        scores = self.score(self.value(instances).tanh() * self.gate(instances).sigmoid())
        # Not minus infinity, so that an empty bag has a mean of its zeros instead of NaN.
        scores = scores.masked_fill(stored_pattern_padding_mask[..., None], torch.finfo(scores.dtype).min)
        return (scores.softmax(1).mT @ instances).flatten(1)


class BagNetwork(nn.Module):
    r"""Decides about a bag of instances.

    .. math:: f(\{x_i\}) = W \,\mathrm{pool}\big(\{\mathrm{ReLU}(\mathrm{LayerNorm}(E x_i))\}\big) + b

    Args:
        input_size: Width of an instance.
        pooling: A pooling layer of ``(B, N, width)`` with a ``stored_pattern_padding_mask``, such as
            :class:`~ahop.nn.HopfieldPooling`, whose ``pooled_size`` says how much it gives.
        width: Width of the embedding.
        outputs: How many numbers to decide with; 1 for two classes.
        dropout: Probability that a value of the embedding, or of what was pooled, is dropped in training.
        join_max: Put the largest value of each dimension beside what was pooled.
        monotone: Promise that one more instance never lowers an output, which is the assumption of standard
            multiple-instance learning: a bag is positive because of something in it, never for want of something. Only
            for :class:`MaxPooling`; the head's weights are then their absolute values.

    Shape:
        instances ``(B, N, input_size)``, padding ``(B, N)`` (True = padding) to ``(B, outputs)``. :func:`pad` makes
        both of a list.

    Example:
        >>> network = ahop.nn.BagNetwork(5, ahop.nn.HopfieldPooling(64, num_heads=4))
        >>> network(*ahop.nn.pad([torch.randn(3, 5), torch.randn(7, 5)])).shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        input_size: int,
        pooling: nn.Module,
        *,
        width: int = 64,
        outputs: int = 1,
        dropout: float = 0.0,
        join_max: bool = False,
        monotone: bool = False,
    ) -> None:
        super().__init__()
        if not hasattr(pooling, "pooled_size"):
            raise TypeError(f"pooling must be a pooling layer with a pooled_size, got {type(pooling).__name__}")
        if monotone and type(pooling) is not MaxPooling:
            raise ValueError(f"monotone needs MaxPooling, got {type(pooling).__name__}")
        input_size, width = integer(input_size, "input_size", 1), integer(width, "width", 1)
        outputs, dropout = integer(outputs, "outputs", 1), share(dropout, "dropout")
        self.embedding = nn.Sequential(Linear(input_size, width), nn.LayerNorm(width), nn.ReLU(), nn.Dropout(dropout))
        self.pooling, self.input_size, self.width, self.monotone = pooling, input_size, width, monotone
        self.largest = MaxPooling(width) if join_max else None
        self.dropout = nn.Dropout(dropout)
        self.head = Linear(int(pooling.pooled_size) + (width if join_max else 0), outputs)  # type: ignore[arg-type]

    def reset_parameters(self) -> None:
        """Begin anew, the pooling first: it was there first."""
        reset(self.pooling, self.embedding, self.head)

    def forward(self, instances: Tensor, padding: Tensor) -> Tensor:
        if instances.ndim != 3 or instances.shape[-1] != self.input_size or padding.shape != instances.shape[:2]:
            got = f"{tuple(instances.shape)} with padding {tuple(padding.shape)}"
            raise ValueError(f"instances must be (B, N, {self.input_size}) and padding (B, N), got {got}")
        # Bags differ in size, sometimes a thousandfold: what is padding is not worth the work.
        rows = self.embedding(instances[~padding])
        embedded = rows.new_zeros(*padding.shape, self.width).masked_scatter(~padding[..., None], rows)
        pooled = self.pooling(embedded, stored_pattern_padding_mask=padding)
        if self.largest is not None:
            pooled = torch.cat([pooled, self.largest(embedded, padding)], -1)
        pooled = self.dropout(pooled)
        if self.monotone:
            return linear(pooled, self.head.weight.abs(), self.head.bias)
        return self.head(pooled)


def _blank(instances: Tensor, padding: Tensor) -> Tensor:
    """Zeros for what is padding: a NaN there could not be weighed away later."""
    return instances.masked_fill(padding[..., None], 0.0)


def pad(bags: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Bags ``(n_i, d)`` of different sizes as one tensor ``(B, N, d)``, and its padding ``(B, N)`` (True = padding).

    Example:
        >>> instances, padding = pad([torch.ones(1, 2), torch.ones(3, 2)])
        >>> instances.shape, padding[0].tolist()
        (torch.Size([2, 3, 2]), [False, True, True])
    """
    if not len(bags):
        raise ValueError("bags must be at least one, got none")
    tensors = [as_tensor(bag, f"bag {index}") for index, bag in enumerate(bags)]
    width = tensors[0].shape[-1] if tensors[0].ndim else 0
    for index, bag in enumerate(tensors):
        if bag.ndim != 2 or bag.shape[1] != width or not len(bag):
            raise ValueError(f"bag {index} must have one row or more of {width} values, got shape {tuple(bag.shape)}")
        require_finite(bag, f"bag {index}")
    sizes = torch.tensor([len(bag) for bag in tensors])
    padding = torch.arange(int(sizes.max())) >= sizes[:, None]
    return nn.utils.rnn.pad_sequence(tensors, batch_first=True), padding.to(tensors[0].device)
