"""First choices: how sure a memory is of each, and whether it is right."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ahop._checks import as_origins, as_queries
from ahop.memories.base import AssociativeMemory


def as_rows(memory: AssociativeMemory, queries: Any) -> Tensor:
    """Queries ``(n, d)``, at least one."""
    rows = as_queries(queries, memory.patterns, None, memory.query_dim).rows
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"queries must be a non-empty matrix, one row each, got shape {tuple(rows.shape)}")
    return rows


def first_choices(memory: AssociativeMemory, queries: Any) -> tuple[Tensor, Tensor, bool]:
    """The first choice for each query and its probability, ``(n,)`` each; and whether labels have verified these."""
    found = memory.recall(as_rows(memory, queries))
    return found.indices[:, 0].cpu(), found.probabilities[:, 0].double().cpu(), found.verified


def judged(memory: AssociativeMemory, queries: Any, origins: Any) -> tuple[Tensor, Tensor]:
    """The probability of each first choice and whether it is right, ``(n,)`` each, the surest first."""
    first, sure, _ = first_choices(memory, queries)
    right = first == as_origins(origins, len(first), len(memory)).cpu()
    order = sure.argsort(descending=True, stable=True)
    return sure[order], right[order]
