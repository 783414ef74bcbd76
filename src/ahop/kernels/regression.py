"""One pass over the features of a softmax regression on the CPU: the loss and its gradient from a single reading.

The features of a fit take hundreds of megabytes, and reading them is what an evaluation costs: each sample's are
scored, and read again for the gradient while they are still in the cache.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ahop.kernels.compiled import compiled, share


@compiled
def _read(first, last, features, weights, offsets, targets, shares, gradient):
    width, patterns = features.shape[1:]
    chances, total = np.empty(patterns, np.float32), 0.0
    for sample in range(first, last):
        if shares[sample] == 0:
            continue
        rows, target, chances[:] = features[sample], targets[sample], offsets
        # Four rows at a time, so that the scores are loaded and stored a quarter as often.
        for f in range(0, width - 3, 4):
            a, b, c, d = weights[f], weights[f + 1], weights[f + 2], weights[f + 3]
            row_a, row_b, row_c, row_d = rows[f], rows[f + 1], rows[f + 2], rows[f + 3]
            for n in range(patterns):
                chances[n] += a * row_a[n] + b * row_b[n] + c * row_c[n] + d * row_d[n]
        for f in range(width - width % 4, width):
            for n in range(patterns):
                chances[n] += weights[f] * rows[f, n]
        score, top, mass = chances[target], chances.max(), np.float32(0)
        for n in range(patterns):
            chance = np.exp(chances[n] - top)
            # Numbers too small to be normal are very slow to work with, and add nothing.
            chances[n] = chance if chance > np.float32(1e-30) else np.float32(0)
            mass += chance
        total += shares[sample] * (top + np.log(mass) - score)
        for n in range(patterns):
            chances[n] *= np.float32(shares[sample]) / mass
        chances[target] -= shares[sample]
        for f in range(width):
            pull, row = np.float32(0), rows[f]
            for n in range(patterns):
                pull += chances[n] * row[n]
            gradient[f] += pull
    return total


def loss_and_gradient(
    features: Tensor, weights: Tensor, offsets: Tensor, targets: Tensor, shares: Tensor
) -> tuple[Tensor, Tensor]:
    r"""The loss of a softmax regression by shares, and its gradient.

    .. math:: \sum_i a_i \big(\mathrm{lse}_j(s_{ij}) - s_{i t_i}\big), \qquad s_{ij} = \phi_{ij}^\top u + o_j

    Args:
        features: :math:`\phi`, ``(n, F, N)``, float32 and contiguous.
        weights: u, ``(F,)``.
        offsets: o, ``(N,)``.
        targets: t, ``(n,)``.
        shares: a, ``(n,)``; samples with a share of zero are not read.
    """
    threads = torch.get_num_threads()
    losses, gradients = np.zeros(threads), np.zeros((threads, features.shape[1]), np.float32)
    given = {"features": features, "weights": weights, "offsets": offsets, "targets": targets, "shares": shares}
    arrays = {name: tensor.detach().numpy() for name, tensor in given.items()}

    def work(first: int, last: int, part: int) -> None:
        losses[part] = _read(first, last, **arrays, gradient=gradients[part])

    share(len(features), work)
    return torch.tensor(losses.sum(), dtype=weights.dtype), torch.from_numpy(gradients.sum(0))
