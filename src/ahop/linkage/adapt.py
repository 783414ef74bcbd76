"""Queries of a changed embedding, as vectors for an index that stays as it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop.linkage.batch import unlike
from ahop.linkage.model import Judged, Model
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import Certificate
from ahop.memories.continuous import UniversalHopfield
from ahop.tables.alignment import fitted
from ahop.tables.table import Table

# What each kind of index ranks by, and enough rows to compare its first choices by.
_SIMILARITIES = {"cosine": "cosine", "inner": "dot", "l2": "euclidean"}
_JUDGED = 2000


class Adapted(NamedTuple):
    """Vectors like the stored ones ``(n, d)``; the model that made them, for the next batch; and what happened to the
    rows and how right first choices are, a word and a sentence each."""

    vectors: np.ndarray
    model: Model
    lines: tuple[tuple[str, str], ...]


def adapted(
    stored: Table | Model,
    incoming: Table,
    origins: Tensor | None = None,
    metric: str = "cosine",
    *,
    verbose: bool = True,
) -> Adapted:
    """Vectors that an index of the stored rows ranks by their nearness to the incoming ones.

    Args:
        stored: What the index holds, all columns of it; or what was learned from an earlier batch, as it is.
        incoming: Rows of another space, with a width of their own.
        origins: The stored row of each incoming one ``(n,)``, -1 where nobody knows it, ``ahop.STRANGER`` where it is
            none of them, so that nothing learns from it; None where nobody knows any.
        metric: What the index ranks by: "cosine", "inner" or "l2".
        verbose: Whether to show progress when it takes long.
    """
    if isinstance(stored, Model):
        if origins is not None:
            raise ValueError("known pairs are learned from, and a given model learns no more: leave one out")
        model, rows = stored, _complete(fitted(incoming, stored.columns, stored.named))
    else:
        model, rows = _learned(_complete(stored), _complete(incoming), origins, verbose), incoming
    memory, report = model.memory, model.memory.report
    try:
        adapter = memory.query_adapter(metric)
    except ValueError as error:
        if report is None or not report.found:
            raise ValueError(
                f"nothing was found between {incoming.name} and {model.stored.name} that is better than chance: known "
                "pairs help, from eight on, or half as many as a stored row has columns"
            ) from error
        raise ValueError(
            f"no moved space was found between {incoming.name} and {model.stored.name}, but {report.chosen}: an index "
            "of the stored rows cannot take it in, and ahop match can"
        ) from error
    assert report is not None
    queries = torch.from_numpy(rows.values).to(memory.patterns.dtype)
    vectors = adapter(queries)
    lines = (
        *(("note", note) for note in (unlike(memory, queries) if model is stored else ())),
        ("what happened", report.chosen),
        ("how right", _how_right(model, model is stored, report.unchecked)),
        ("in the index", f"{100 * _agreement(memory, queries, vectors, metric):.0f} % of first choices are the same"),
    )
    return Adapted(vectors.numpy(), model, lines)


def _complete(table: Table) -> Table:
    if lost := int(np.isnan(table.values).sum()):
        raise ValueError(f"{table.name} has {lost:,} missing values; vectors of an index have none")
    return table


def _learned(stored: Table, incoming: Table, origins: Tensor | None, verbose: bool) -> Model:
    patterns, queries = (torch.from_numpy(table.values).float() for table in (stored, incoming))
    memory = BayesianHopfield(patterns).fit(queries, origins, verbose=verbose)
    report = memory.report
    assert report is not None
    count = report.witnesses or report.labels
    judged = Judged(Certificate(round(report.accuracy * count), count)) if count else None
    return Model(memory, stored, incoming.columns, incoming.named, shared=False, judged=judged)


def _how_right(model: Model, given: bool, unchecked: str) -> str:
    """What labels say of first choices, of those rows or of others that a ``given`` model learned from; or what is said
    ``unchecked``."""
    told = None if model.judged is None else model.judged.certificate.outcome
    if given:
        before = "" if told is None else f"; of the batch learned from, {told}"
        return f"unknown: none of these rows has been checked{before}"
    return unchecked if told is None else f"{told}, of known pairs that were held out"


def _agreement(memory: BayesianHopfield, queries: Tensor, vectors: Tensor, metric: str) -> float:
    """How often an index, which knows no covariances, has the first choice of the memory: that is what was judged."""
    index = UniversalHopfield(memory.patterns, similarity=_SIMILARITIES[metric])
    first, found = (one.recall(rows[:_JUDGED]).indices[:, 0] for one, rows in ((memory, queries), (index, vectors)))
    return float((first == found).double().mean())
