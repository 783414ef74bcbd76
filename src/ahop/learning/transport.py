r"""Queries shared out among columns that have room for so many of them each.

Every query goes somewhere, and no column takes more than its room :math:`r_j`. Of all such plans, the one that is
closest to what each query says by itself (in relative entropy) is :math:`p_{ij} = e^{s_{ij} + u_i + v_j}` with

.. math:: u_i = -\log \sum_j e^{s_{ij} + v_j}, \qquad v_j = \min\Big(0, \; \log r_j - \log \sum_i e^{s_{ij} + u_i}\Big)

the fixed point of Sinkhorn's algorithm with inequalities. The price :math:`-v_j` is nought where there is room to
spare. Prices are the minimum of a convex function,

.. math:: \min_{v \le 0} \; \sum_i \log \sum_j e^{s_{ij} + v_j} - \sum_j r_j v_j

which L-BFGS-B finds in tens of steps where Sinkhorn's own take thousands. (The Python Optimal Transport library, POT,
has this plan as entropic partial transport, but scales dense tables of all queries and all columns; here each query has
a few candidates among perhaps millions.) A plan is a mean-field approximation to the marginals of the posterior over
all matchings, which nobody can sum up: that sum is the permanent of a matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

# No column is over its room by more than this share of a query.
_TOLERANCE = 1e-2
_STEPS = 1000


class Plan(NamedTuple):
    """The log of the share of each query that goes to each of its columns ``(n, k)``, and whether it converged."""

    log: Tensor
    converged: bool


def shared_out(scores: Tensor, columns: Tensor, room: Tensor) -> Plan:
    """The plan for scores of queries at some columns each.

    Args:
        scores: Log-probabilities, minus infinity where a query cannot go.
        columns: Which column each score belongs to.
        room: How many queries each column takes.

    Shape:
        scores and columns ``(n, k)``, room ``(m,)`` to a plan ``(n, k)``.

    Example:
        >>> scores = torch.tensor([[0.9, 0.1], [0.9, 0.1]], dtype=torch.float64).log()
        >>> plan = shared_out(scores, torch.tensor([[0, 1], [0, 1]]), torch.tensor([1, 2]))
        >>> plan.log.exp().round(decimals=2)
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]], dtype=torch.float64)
    """
    from scipy.optimize import minimize

    room = room.to(scores)

    def rise(price: np.ndarray) -> tuple[float, np.ndarray]:
        v = torch.from_numpy(price).to(scores)
        log, total = _rows(scores, columns, v)
        return float(total.sum() - room @ v), (_taken(log, columns, len(room)) - room).cpu().numpy()

    limits = {"gtol": _TOLERANCE, "ftol": 0.0, "maxiter": _STEPS, "maxfun": 2 * _STEPS}
    bounds = [(None, 0.0)] * len(room)
    found = minimize(rise, np.zeros(len(room)), jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
    v = torch.from_numpy(found.x).to(scores)
    log, _ = _rows(scores, columns, v)
    over = _taken(log, columns, len(room)) - room
    # What has room to spare must have no price.
    wrong = torch.where(v < 0, over.abs(), over).amax()
    return Plan(log, float(wrong) <= 2 * _TOLERANCE)


def _rows(scores: Tensor, columns: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The plan at these prices, row by row, and the log of what each row summed up to."""
    log = scores + v[columns]
    total = log.logsumexp(1)
    return log.sub_(total[:, None]), total


def _taken(log: Tensor, columns: Tensor, count: int) -> Tensor:
    """How many queries each column takes, ``(m,)``."""
    return log.new_zeros(count).index_add_(0, columns.flatten(), log.exp().flatten())
