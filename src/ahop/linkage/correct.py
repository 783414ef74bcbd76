"""Rows of a second instrument, as the one that measured the stored rows would have measured them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ahop._checks import UNKNOWN
from ahop.linkage.correction import Correction, learned
from ahop.linkage.gaps import filled
from ahop.linkage.linking import has_units
from ahop.memories.bayesian import BayesianHopfield
from ahop.tables.alignment import aligned
from ahop.tables.table import Table, counted


@dataclass(frozen=True, eq=False)
class Corrected:
    """Corrected rows.

    Attributes:
        table: The incoming rows, with the columns that both tables have, in the units of the stored ones; NaN where a
            value is missing.
        lines: What was left out, what happened to the rows and how far off they are: a word and a sentence each.
        correction: What corrects the next batch; None where no pairs have taught it.
    """

    table: Table
    lines: tuple[tuple[str, str], ...]
    correction: Correction | None = None


def corrected(stored: Table, incoming: Table, origins: Tensor | None = None, *, verbose: bool = True) -> Corrected:
    """Learn what the second instrument does, and undo it (calibration transfer).

    With known pairs, the transfer that errs least on held-out ones is taken
    (:class:`ahop.estimators.CalibrationTransfer`), in the spread of each column where columns have units of their own.
    Values that rows miss are filled in for it, by what the other columns say of them; pairs that miss some are learned
    from where that lessens the error. Without pairs, a memory learns what happened
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
    # Errors of grams and of degrees can be compared in the spread of each alone.
    own = has_units(stored)
    unit = stored.values.std(0) if own else np.ones(len(stored.columns))
    patterns, rows = stored.values / unit, incoming.values / unit
    origins, correction = torch.full((len(rows),), UNKNOWN) if origins is None else origins, None
    lines = [("note", note) for note in notes]
    pairs, gaps = np.flatnonzero(origins >= 0), np.isnan(rows)
    complete = pairs[~gaps[pairs].any(1)]
    # A pair that misses values may help or mislead: held-out pairs tell.
    several = [complete, pairs] if len(complete) < len(pairs) else [pairs]
    learnable = [some for some in several if len(np.unique(patterns[origins[some]], axis=0)) > 1]
    if learnable:
        whole = filled(rows)
        tried = [(learned(whole[some], patterns[origins[some]], patterns, verbose), some) for some in learnable]
        transfer, pairs = min(tried, key=lambda one: min(one[0].rmsecv_.values()))
        values = transfer.transform(whole)
        taught = whole[pairs], patterns[origins[pairs]]
        correction = Correction(transfer, *taught, patterns, unit, incoming.columns, incoming.named)
        ordered = sorted(transfer.rmsecv_.items(), key=lambda one: one[1])
        errors = ", ".join(f"{name} {error:.3g}" for name, error in ordered)
        units = "in standard deviations of each column" if own else "in the units of the data"
        lines += [
            ("corrected by", transfer.chosen_),
            ("how far off", f"RMSE of held-out pairs, {units}: {errors}"),
            ("rests on", f"{counted(len(pairs), 'known pair')}, by cross-validation"),
        ]
        if gaps.any():
            told = f"{counted(int(gaps.any(1).sum()), 'row')} with {counted(int(gaps.sum()), 'missing value')}"
            lines.append(("incomplete", f"{told}: estimated from the others to correct a row, and left empty again"))
    else:
        values, chosen = _restored(patterns, rows, origins, verbose)
        lines += [
            ("corrected by", f"b-hop, {chosen}"),
            ("how far off", "unknown: too few pairs are known; --pairs with a few of them would tell"),
            ("rests on", counted(len(pairs), "known pair") if len(pairs) else "no pairs"),
        ]
    # What was not measured is not made up.
    values[gaps] = np.nan
    return Corrected(replace(incoming, values=values * unit), tuple(lines), correction)


def _restored(patterns: np.ndarray, rows: np.ndarray, origins: Tensor, verbose: bool) -> tuple[np.ndarray, str]:
    """The rows by what a memory learns from them, and what that is."""
    asked = torch.from_numpy(rows)
    observed: Any = "not-nan" if bool(asked.isnan().any()) else None
    memory = BayesianHopfield(torch.from_numpy(patterns)).fit(asked, origins, observed=observed, verbose=verbose)
    assert memory.report is not None
    if not memory.report.found:
        raise ValueError("nothing was found that is better than chance: a few known pairs would help")
    return memory.restore(asked, observed=observed).numpy(), memory.report.chosen
