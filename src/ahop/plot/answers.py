"""First choices: how sure a memory is of each, and whether it is right."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ahop._checks import Observed, as_origins, as_queries
from ahop._queries import Queries
from ahop.memories.base import AssociativeMemory


def as_rows(memory: AssociativeMemory, queries: Any, observed: Observed = None) -> Queries:
    """Queries ``(n, d)``, at least one.

    Args:
        memory: What they are for.
        queries: ``(n, d)``.
        observed: Which of their entries to trust, as in :meth:`ahop.AssociativeMemory.recall`.
    """
    asked = as_queries(queries, memory.patterns, observed, memory.query_dim)
    if asked.rows.ndim != 2 or not len(asked):
        raise ValueError(f"queries must be a non-empty matrix, one row each, got shape {tuple(asked.rows.shape)}")
    return asked


def first_choices(memory: AssociativeMemory, queries: Any, observed: Observed = None) -> tuple[Tensor, Tensor, bool]:
    """The first choice for each query and its probability, ``(n,)`` each; and whether labels have verified these.

    Args:
        memory: What recalls.
        queries: ``(n, d)``.
        observed: Which entries of the queries to trust, as in :meth:`ahop.AssociativeMemory.recall`.
    """
    asked = as_rows(memory, queries, observed)
    found = memory.recall(asked.rows, observed=asked.observed)
    return found.indices[:, 0].cpu(), found.probabilities[:, 0].double().cpu(), found.verified


def judged(memory: AssociativeMemory, queries: Any, origins: Any, observed: Observed) -> tuple[Tensor, Tensor]:
    """The probability of each first choice and whether it is right, ``(n,)`` each, the surest first.

    Args:
        memory: What recalls.
        queries: ``(n, d)``.
        origins: The right answers, ``(n,)``.
        observed: Which entries of the queries to trust, as in :meth:`ahop.AssociativeMemory.recall`.
    """
    first, sure, _ = first_choices(memory, queries, observed)
    right = first == as_origins(origins, len(first), len(memory)).cpu()
    order = sure.argsort(descending=True, stable=True)
    return sure[order], right[order]
