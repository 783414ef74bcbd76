"""Queries of a changed embedding, as vectors for an index that stays as it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import Certificate
from ahop.memories.continuous import UniversalHopfield
from ahop.tables.table import Table

# What each kind of index ranks by, and enough rows to compare its first choices by.
_SIMILARITIES = {"cosine": "cosine", "inner": "dot", "l2": "euclidean"}
_JUDGED = 2000


class Adapted(NamedTuple):
    """Vectors like the stored ones ``(n, d)``; and what happened to the rows and how right first choices are, a word
    and a sentence each."""

    vectors: np.ndarray
    lines: tuple[tuple[str, str], ...]


def adapted(
    stored: Table, incoming: Table, origins: Tensor | None, metric: str = "cosine", *, verbose: bool = True
) -> Adapted:
    """Vectors that an index of the stored rows ranks by their nearness to the incoming ones.

    Args:
        stored: What the index holds, all columns of it.
        incoming: Rows of another space, with a width of their own.
        origins: The stored row of each incoming one ``(n,)``, -1 where nobody knows it, ``ahop.STRANGER`` where it is
            none of them, so that nothing learns from it; None where nobody knows any.
        metric: What the index ranks by: "cosine", "inner" or "l2".
        verbose: Whether to show progress when it takes long.
    """
    for table in (stored, incoming):
        if lost := int(np.isnan(table.values).sum()):
            raise ValueError(f"{table.name} has {lost:,} missing values; vectors of an index have none")
    patterns, queries = (torch.from_numpy(table.values).float() for table in (stored, incoming))
    memory = BayesianHopfield(patterns).fit(queries, origins, verbose=verbose)
    report = memory.report
    assert report is not None
    try:
        adapter = memory.query_adapter(metric)
    except ValueError as error:
        if not report.found:
            raise ValueError(
                f"nothing was found between {incoming.name} and {stored.name} that is better than chance: known pairs "
                "help, from about twenty on"
            ) from error
        raise ValueError(
            f"no moved space was found between {incoming.name} and {stored.name}, but {report.chosen}: an index "
            "of the stored rows cannot take it in, and ahop match can"
        ) from error
    right = report.unchecked
    if count := report.witnesses or report.labels:
        right = f"{Certificate(round(report.accuracy * count), count).outcome}, of known pairs that were held out"
    vectors = adapter(queries)
    lines = (
        ("what happened", report.chosen),
        ("how right", right),
        ("in the index", f"{100 * _agreement(memory, queries, vectors, metric):.0f} % of first choices are the same"),
    )
    return Adapted(vectors.numpy(), lines)


def _agreement(memory: BayesianHopfield, queries: Tensor, vectors: Tensor, metric: str) -> float:
    """How often an index, which knows no covariances, has the first choice of the memory: that is what was judged."""
    index = UniversalHopfield(memory.patterns, similarity=_SIMILARITIES[metric])
    first, found = (one.recall(rows[:_JUDGED]).indices[:, 0] for one, rows in ((memory, queries), (index, vectors)))
    return float((first == found).double().mean())
