"""The loss of a separation, by which scores learn to give the weights that are wanted."""

from __future__ import annotations

import torch
from torch import Tensor

from ahop.separation.base import Separation


def fenchel_young_loss(separation: Separation, scores: Tensor, target: Tensor) -> Tensor:
    r"""How far the weights of scores are from those that are wanted, with a gradient that is their difference.

    .. math:: L(s, y) = \Omega^\star(s) + \Omega(y) - s^\top y \;\ge\; 0, \qquad \nabla_s L = \mathrm{sep}(s) - y

    with the regulariser :math:`\Omega` of the separation and its conjugate (Blondel, Martins and Niculae, Learning with
    Fenchel-Young losses, 2020). It is zero where the weights are the target, and nowhere else if :math:`\Omega` is
    strictly convex. For softmax it is the cross-entropy divided by ``beta``; a sparse separation has nothing left to
    learn once the target leads by its :attr:`~ahop.separation.Separation.margin`.

    Args:
        separation: One that maximises a regularised score: softmax, exponential, argmax, sparsemax, entmax, normmax or
            ksubsets.
        scores: ``(..., N)``.
        target: The weights that are wanted, ``(..., N)``: from 0 to 1, and they sum to what those of the separation do.

    Shape:
        ``(...)``.

    Example:
        >>> scores, target = torch.tensor([2.0, 0.5, 0.0]), torch.tensor([1.0, 0.0, 0.0])
        >>> fenchel_young_loss(Softmax(), scores, target)
        tensor(0.3064)
        >>> fenchel_young_loss(Sparsemax(), scores, target)
        tensor(0.)
    """
    _require_weights(target, scores, separation.total)
    regulariser = separation.regulariser(target)
    # From the best on, which changes nothing as weights and target have one sum, and keeps digits of large scores.
    leads = scores - scores.detach().amax(-1, keepdim=True)
    return separation.conjugate(leads) + regulariser - (target * leads).sum(-1)


def _require_weights(target: Tensor, scores: Tensor, total: int) -> None:
    if target.shape != scores.shape:
        raise ValueError(f"target must have the shape of the scores, {tuple(scores.shape)}; got {tuple(target.shape)}")
    inside = bool(((target >= 0) & (target <= 1)).all())
    if not inside or not torch.allclose(target.sum(-1), target.new_tensor(float(total)), atol=1e-4):
        got = f"{float(target.min()):g} to {float(target.max()):g} with sums as {float(target.sum(-1).flatten()[0]):g}"
        raise ValueError(f"target must be weights from 0 to 1 that sum to {total}, got {got}")
