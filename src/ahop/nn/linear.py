"""Linear maps of the layers: how they begin, and on which machine they multiply in which precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ahop._hardware import PROCESSOR_HAS


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``inputs weight^T + bias``, in single precision where the processor does not multiply in half.

    There PyTorch would do it more slowly, and warn. The answer has the type that it would have had.

    Args:
        inputs: ``(..., d)``.
        weight: ``(v, d)``.
        bias: ``(v,)``, or None.

    Example:
        >>> linear(torch.ones(2, 3).bfloat16(), torch.ones(4, 3).bfloat16()).dtype
        torch.bfloat16
    """
    kind = inputs.device.type
    autocast = torch.is_autocast_enabled(kind)
    dtype = torch.get_autocast_dtype(kind) if autocast else inputs.dtype
    # Types that do not match are PyTorch's to refuse.
    if kind != "cpu" or PROCESSOR_HAS.get(dtype, True) or not (autocast or weight.dtype == dtype):
        return nn.functional.linear(inputs, weight, bias)
    with torch.autocast(kind, enabled=False):
        return nn.functional.linear(inputs.float(), weight.float(), None if bias is None else bias.float()).to(dtype)


class Linear(nn.Linear):
    """PyTorch's linear layer by :func:`linear`."""

    def forward(self, inputs: Tensor) -> Tensor:
        return linear(inputs, self.weight, self.bias)


class Unbiased(Linear):
    """A linear map that begins without a bias."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class Projection(Unbiased):
    """A linear map into the heads: it begins with Xavier's uniform weights."""

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.xavier_uniform_(self.weight)
