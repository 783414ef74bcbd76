"""What corrects the rows of a second instrument, for the next batch of them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ahop._files import atomic_file, own_folder
from ahop.linkage.gaps import filled
from ahop.tables.alignment import fitted
from ahop.tables.table import Table

_FILE, _ABOUT = "correction.safetensors", "correction"


@dataclass(frozen=True, eq=False)
class Correction:
    """A calibration transfer, and how rows that come in are to look.

    It is kept as the pairs that taught it, and learns them again when it is loaded, which takes seconds: so its file is
    one of numbers alone.

    Attributes:
        transfer: What was learned, a :class:`ahop.estimators.CalibrationTransfer`.
        second, first: The pairs that taught it, by the second instrument and by the first, ``(m, d)``.
        library: All stored rows, by the first, ``(N, d)``.
        unit: What each column is counted in, ``(d,)``.
        columns: Those of incoming rows.
        named: Whether these go by name.
    """

    transfer: Any
    second: np.ndarray
    first: np.ndarray
    library: np.ndarray
    unit: np.ndarray
    columns: tuple[str, ...]
    named: bool

    def corrected(self, incoming: Table) -> Table:
        """The rows as the first instrument would have measured them; NaN where a value is missing.

        Args:
            incoming: Rows of the second instrument, with the columns that the correction was made with.
        """
        incoming = fitted(incoming, self.columns, self.named)
        rows = incoming.values / self.unit
        # What a row misses is told by rows of the same instrument.
        whole = filled(np.concatenate([self.second, rows]))[len(self.second) :]
        values = self.transfer.transform(whole)
        values[np.isnan(rows)] = np.nan
        return replace(incoming, values=values * self.unit)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write it into a folder, which is made if need be; the one that it lies in must be there."""
        from safetensors.numpy import save

        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in _ARRAYS}
        about = {"columns": self.columns, "named": self.named}
        with atomic_file(own_folder(folder) / _FILE) as file:
            file.write(save(arrays, {_ABOUT: json.dumps(about)}))

    @staticmethod
    def lies_in(folder: str | os.PathLike[str]) -> bool:
        """Whether one was saved in a folder."""
        return (Path(folder) / _FILE).is_file()

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Correction:
        """The correction that was saved in a folder."""
        from safetensors import SafetensorError, safe_open

        path = Path(folder) / _FILE
        try:
            with safe_open(path, "numpy") as file:
                about = json.loads(file.metadata()[_ABOUT])
                arrays = {name: file.get_tensor(name) for name in _ARRAYS}
            columns, named = tuple(map(str, about["columns"])), bool(about["named"])
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        return cls(
            learned(arrays["second"], arrays["first"], arrays["library"]), **arrays, columns=columns, named=named
        )


_ARRAYS = ("second", "first", "library", "unit")


def learned(second: np.ndarray, first: np.ndarray, library: np.ndarray, verbose: bool = False) -> Any:
    """The transfer that errs least on held-out pairs.

    Args:
        second, first: The pairs, ``(m, d)``.
        library: All stored rows, ``(N, d)``.
        verbose: Whether to show progress when it takes long.
    """
    # Scikit-learn takes a second to import.
    from ahop.estimators.transfer import CalibrationTransfer

    return CalibrationTransfer(verbose=verbose).fit(second, first, library=library)
