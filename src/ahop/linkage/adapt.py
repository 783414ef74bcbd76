"""Queries of a changed embedding, as vectors for an index that stays as it is."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ahop.memories.bayesian import BayesianHopfield
from ahop.tables.table import Table


def adapted(
    stored: Table, incoming: Table, origins: Tensor | None, metric: str = "cosine", *, verbose: bool = True
) -> np.ndarray:
    """Vectors like the stored ones ``(n, d)``, which an index of these ranks by their nearness to the incoming rows.

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
    try:
        adapter = memory.query_adapter(metric)
    except ValueError as error:
        assert memory.report is not None
        if not memory.report.found:
            raise ValueError(
                f"nothing was found between {incoming.name} and {stored.name} that is better than chance: known pairs "
                "help, from about twenty on"
            ) from error
        raise ValueError(
            f"no moved space was found between {incoming.name} and {stored.name}, but {memory.report.chosen}: an index "
            "of the stored rows cannot take it in, and ahop match can"
        ) from error
    return adapter(queries).numpy()
