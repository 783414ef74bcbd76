"""What was learned from one batch, for the next: a memory, and the ids and columns that it was made with."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ahop._files import own_folder, write_atomically
from ahop.learning.report import FitReport, Trial
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import Certificate
from ahop.memories.storage import FILE, load
from ahop.tables.table import Table

_PAGE = "linkage.json"


@dataclass(frozen=True)
class Judged:
    """How right the matches of a batch were.

    Attributes:
        certificate: What labels say of them; nothing was learned from these.
        checked: Whether they are answers that somebody has checked, or else known pairs that were held out.
    """

    certificate: Certificate
    checked: bool = False


@dataclass(frozen=True, eq=False)
class Model:
    """A memory of a table, and how rows that come in are to look.

    Attributes:
        memory: What was learned.
        stored: The table that it stores.
        columns: Those of incoming rows.
        named: Whether these go by name.
        shared: Whether they are those of the stored table.
        judged: How right the matches of the batch were that it learned from; None where no label has judged.
    """

    memory: BayesianHopfield
    stored: Table
    columns: tuple[str, ...]
    named: bool
    shared: bool
    judged: Judged | None = None

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write it into a folder, which is made if need be; the one that it lies in must be there."""
        folder = own_folder(folder)
        self.memory.save(folder)
        page = {
            "memory": _checksum(folder),
            "report": None if self.memory.report is None else asdict(self.memory.report),
            "ids": self.stored.ids.tolist(),
            "stored": {key: getattr(self.stored, key) for key in ("columns", "name", "named", "id")},
            "columns": self.columns,
            "named": self.named,
            "shared": self.shared,
            "judged": None if self.judged is None else asdict(self.judged),
        }
        write_atomically(json.dumps(page, default=str), folder / _PAGE)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Model:
        """The model that was saved in a folder."""
        folder = Path(folder)
        try:
            page = json.loads((folder / _PAGE).read_text())
        except FileNotFoundError as error:
            raise FileNotFoundError(f"folder {str(folder)!r} holds no model of ahop match ({_PAGE})") from error
        except ValueError as error:
            raise ValueError(f"{folder / _PAGE} is damaged: {error}") from error
        memory = load(folder)
        if page["memory"] != _checksum(folder):
            raise ValueError(f"{folder / _PAGE} does not belong to the memory beside it: save the model again")
        if page["report"] is not None:
            tried = tuple(Trial(**trial) for trial in page["report"].pop("tried"))
            memory.report = FitReport(**page["report"], tried=tried)
        about = page["stored"]
        values = memory.patterns.double().numpy()
        columns = tuple(about.pop("columns"))
        stored = Table(np.array(page["ids"], dtype=object), columns, values, **about)
        judged = page.get("judged")
        if judged is not None:
            judged = Judged(Certificate(**judged["certificate"]), judged["checked"])
        return cls(memory, stored, tuple(page["columns"]), page["named"], page["shared"], judged)


def _checksum(folder: Path) -> str:
    return hashlib.sha256((folder / FILE).read_bytes()).hexdigest()
