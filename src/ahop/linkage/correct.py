"""Rows of a second instrument, as the one that measured the stored rows would have measured them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ahop.memories.bayesian import BayesianHopfield
from ahop.tables.alignment import aligned
from ahop.tables.table import Table, counted


@dataclass(frozen=True, eq=False)
class Corrected:
    """Corrected rows.

    Attributes:
        table: The incoming rows, with the columns that both tables have, in the units of the stored ones.
        lines: What was left out, what happened to the rows and how far off they are: a word and a sentence each.
    """

    table: Table
    lines: tuple[tuple[str, str], ...]


def corrected(stored: Table, incoming: Table, origins: Tensor | None = None, *, verbose: bool = True) -> Corrected:
    """Learn what the second instrument does, and undo it (calibration transfer).

    With known pairs, the transfer that errs least on held-out ones is taken
    (:class:`ahop.estimators.CalibrationTransfer`). Without, a memory learns by itself what happened
    (:meth:`ahop.BayesianHopfield.restore`), and nobody knows how far off it is.

    Args:
        stored: Rows of the first instrument.
        incoming: Rows of the second, with the same columns.
        origins: The stored row of each incoming one ``(n,)``, -1 where nobody knows it, ``ahop.STRANGER`` where it is
            none of them, so that nothing learns from it; None where nobody knows any.
        verbose: Whether to show progress when it takes long.

    Example:
        >>> first = np.random.default_rng(0).normal(size=(60, 3)).cumsum(1)
        >>> columns = dict(zip("abc", first.T, strict=True)), dict(zip("abc", 2 + 1.1 * first[:3].T, strict=True))
        >>> found = corrected(*map(Table.of, columns), torch.arange(3), verbose=False)
        >>> bool(np.abs(found.table.values - first[:3]).max() < 0.01)
        True
    """
    stored, incoming, shared, notes = aligned(stored, incoming)
    if not shared:
        raise ValueError(f"{incoming.name} and {stored.name} must have columns in common: {'; '.join(notes)}")
    if lost := int(np.isnan(incoming.values).sum()):
        raise ValueError(f"{incoming.name} has {counted(lost, 'missing value')}; whole rows alone can be corrected")
    lines = [("note", note) for note in notes]
    if origins is None or not bool((origins >= 0).any()):
        values, told = _by_themselves(stored.values, incoming.values, origins, verbose)
    else:
        values, told = _by_pairs(stored.values, incoming.values, origins.numpy(), verbose)
    return Corrected(replace(incoming, values=values), (*lines, *told))


def _by_pairs(
    stored: np.ndarray, incoming: np.ndarray, origins: np.ndarray, verbose: bool
) -> tuple[np.ndarray, list[tuple[str, str]]]:
    # Scikit-learn takes a second to import.
    from ahop.estimators.transfer import CalibrationTransfer

    known = origins >= 0
    transfer = CalibrationTransfer(verbose=verbose)
    transfer.fit(incoming[known], stored[origins[known]], library=stored)
    ordered = sorted(transfer.rmsecv_.items(), key=lambda one: one[1])
    errors = ", ".join(f"{name} {error:.3g}" for name, error in ordered)
    return transfer.transform(incoming), [
        ("corrected by", transfer.chosen_),
        ("how far off", f"RMSE of held-out pairs, in the units of the data: {errors}"),
        ("rests on", f"{counted(int(known.sum()), 'known pair')}, by cross-validation"),
    ]


def _by_themselves(
    stored: np.ndarray, incoming: np.ndarray, origins: Tensor | None, verbose: bool
) -> tuple[np.ndarray, list[tuple[str, str]]]:
    rows = torch.from_numpy(incoming)
    memory = BayesianHopfield(torch.from_numpy(stored)).fit(rows, origins, verbose=verbose)
    assert memory.report is not None
    return memory.restore(rows).numpy(), [
        ("corrected by", f"b-hop, {memory.report.chosen}"),
        ("how far off", "nobody knows: no pair is known; --pairs with a few of them would tell"),
        ("rests on", "no pairs"),
    ]
