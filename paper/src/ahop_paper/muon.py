"""Muon: momentum whose updates of matrices are made orthogonal (Jordan et al., 2024)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ahop._hardware import multiplies


class Muon:
    r"""Steps of equal size in every direction of a matrix.

    .. math:: M \leftarrow \mu M + G, \qquad W \leftarrow (1 - \eta\lambda) W
        - 0.2 \, \eta \sqrt{\max(m, n)} \; \mathrm{orthogonal}(G + \mu M)

    The factor makes its steps as large as AdamW's, whose learning rate it can share. ``torch.optim.Muon`` takes the
    same steps, but hands the learning rate to the device as a number, not as a tensor: a CUDA graph cannot record that,
    or would replay one rate for ever. It also goes through the matrices one by one; a small transformer has dozens
    alike, and here those of one shape are worked on together.

    Args:
        parameters: Matrices.
        rate: The learning rate :math:`\eta`, a tensor that a schedule may fill.
        decay: Weight decay :math:`\lambda`.
        momentum: :math:`\mu`.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rate: Tensor, decay: float, momentum: float = 0.95) -> None:
        self.rate, self.decay, self.momentum = rate, decay, momentum
        shapes: dict[torch.Size, list[nn.Parameter]] = {}
        for parameter in parameters:
            shapes.setdefault(parameter.shape, []).append(parameter)
        self.groups = list(shapes.values())
        self.averages = [torch.zeros(len(group), *group[0].shape, device=group[0].device) for group in self.groups]

    @torch.no_grad()
    def step(self) -> None:
        for group, average in zip(self.groups, self.averages, strict=True):
            slopes = torch.stack([parameter.grad for parameter in group if parameter.grad is not None])
            average.mul_(self.momentum).add_(slopes)
            size = 0.2 * max(group[0].shape) ** 0.5
            updates = size * self.rate * orthogonal(slopes + self.momentum * average)
            for parameter, update in zip(group, updates, strict=True):
                parameter.mul_(1 - self.rate * self.decay).sub_(update)


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest matrices with singular values near 1, by a polynomial in the matrix (Newton and Schulz).

    The polynomial forgives the rounding of bfloat16, which is used where the device multiplies in it itself.

    Example:
        >>> matrix = orthogonal(torch.diag(torch.tensor([1.0, 0.5])))
        >>> bool((matrix.diag() - 1).abs().max() < 0.35)
        True
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    half = multiplies(torch.bfloat16, matrices.device)
    x = (matrices.mT if tall else matrices).to(torch.bfloat16 if half else torch.float32)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)
