"""Why a memory prefers its first choice to the runner-up: what each column of a query says."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ahop._checks import Observed, as_queries
from ahop.memories.base import AssociativeMemory
from ahop.separation import Exponential, Softmax

_LEAVES_OUT = "must be able to leave a column out for evidence by column"


# Tensors have no one answer to whether they are equal.
@dataclass(frozen=True, eq=False)
class Evidence:
    """How much speaks for the first choice against the runner-up, in nats (natural logarithms of a ratio).

    Attributes:
        first, second: The first choice and the runner-up, by their rows among the patterns.
        columns: What each column of the query says beside all others, ``(q,)``; above zero for the first choice.
        prior: How much more often the first choice is asked for.
        together: What the columns say only together, and none of them beside all others.
        total: The log odds of the first choice, the sum of the three.
    """

    first: int
    second: int
    columns: Tensor
    prior: float
    together: float
    total: float


@torch.no_grad()
def evidence_by_column(memory: AssociativeMemory, query: Any, *, observed: Observed = None) -> Evidence:
    r"""What each column of a query says for the first choice :math:`\xi_1` against the runner-up :math:`\xi_2`.

    .. math:: e_i = \log \frac{p(x \mid \xi_1)}{p(x \mid \xi_2)}
        - \log \frac{p(x_{-i} \mid \xi_1)}{p(x_{-i} \mid \xi_2)}

    the log odds that are lost where column i is left out. Where a likelihood is a product over columns, that is the
    column's own term, and nothing is left to be said together. Where columns are correlated, it is what the column
    says once all others are known: two that say the same add nothing to each other, and what they say is in
    ``together``.

    Args:
        memory: One whose probabilities are a softmax of its scores.
        query: ``(q,)``, as wide as the memory's queries are.
        observed: As in :meth:`~ahop.memories.base.AssociativeMemory.scores`; an unobserved column says nothing.

    Example:
        >>> memory = ahop.BayesianHopfield(torch.eye(4))
        >>> found = evidence_by_column(memory, torch.tensor([0.9, 0.1, 0.0, 0.0]))
        >>> found.first, found.second, bool(found.columns[0] > found.columns[2])
        (0, 1, True)
    """
    if type(memory.separation) not in (Softmax, Exponential):
        raise ValueError(f"memory must separate by a softmax to have log odds, got {memory.separation.name!r}")
    if len(memory) < 2:
        raise ValueError("memory must hold at least two patterns, got one: there is no runner-up")
    if memory.similarity.needs_complete_queries:
        raise ValueError(f"memory {_LEAVES_OUT}; this one compares complete queries")
    asked = as_queries(query, memory.patterns, observed, memory.query_dim)
    if asked.rows.ndim != 1:
        raise ValueError(f"query must be one row of {memory.query_dim} values, got shape {tuple(asked.rows.shape)}")
    # As it is at this moment, whatever others add and remove.
    memory = copy.copy(memory)
    first, second = memory.scores(asked.rows, observed=asked.observed).topk(2).indices.tolist()
    pair = _alone(memory, first, second)
    ahead = 1 if first < second else -1

    def log_odds(rows: Tensor, observed: Tensor | None) -> Tensor:
        scores = pair.scores(rows.double(), observed=observed)
        return ahead * float(pair.separation.inverse_temperature) * (scores[..., 0] - scores[..., 1])

    total = float(log_odds(asked.rows, asked.observed))
    columns = asked.rows.new_zeros(len(asked.rows), dtype=torch.float64)
    seen = asked.boolean_mask
    places = seen.nonzero().squeeze(1)
    # Each of these rows lacks one column.
    without = seen & ~torch.eye(len(seen), dtype=torch.bool, device=seen.device)[places]
    try:
        columns[places] = total - log_odds(asked.rows.expand(len(places), -1), without)
    except ValueError as error:
        raise ValueError(f"memory {_LEAVES_OUT}: {error}") from error
    log_prior = memory._log_prior()
    prior = 0.0 if log_prior is None else float(log_prior[first] - log_prior[second])
    return Evidence(first, second, columns, prior, total - prior - float(columns.sum()), total)


def _alone(memory: AssociativeMemory, first: int, second: int) -> AssociativeMemory:
    """A memory of two of the patterns alone, in float64: what a column says is a small part of the scores."""
    others = torch.arange(len(memory))
    both = copy.copy(memory).remove(others[(others != first) & (others != second)])
    # A copy of its parts, which are the memory's own.
    return copy.deepcopy(both).double()
