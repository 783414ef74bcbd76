"""Two tables in, matches out."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ahop.learning.report import VERIFIED
from ahop.linkage.alternatives import Alternative, alternatives
from ahop.linkage.holdout import held_out
from ahop.linkage.model import Model
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import Certificate
from ahop.tables.alignment import aligned, fitted
from ahop.tables.table import Table

# Means in standard deviations beyond which float32 would round what tells rows apart.
_FAR = 2.0**14
KNOWN, STRANGER = "known pair", "stranger: less familiar than genuine rows are"
CROWDED = "no stored row left that is as likely"


@dataclass(frozen=True, eq=False)
class Linkage:
    """Which stored row each incoming row is.

    Attributes:
        model: The memory that was learned or given, with the stored table.
        incoming: The table that came in, with the columns that were compared.
        origins: The stored row of each incoming one as far as it was known before ``(n,)``; -1 where nobody knows.
        indices, probabilities: The match of each row ``(n,)``; -1 and 0 where it was refused.
        second, second_probabilities: The second best.
        strangers: Which rows come from no stored one ``(n,)``, by ``reject``.
        one_to_one: Whether each stored row was given away once.
        reject: The share of genuine rows that may be refused, or None.
        alternatives: What is plainer, and how it does.
        notes: What was left out, filled in or warned of, in sentences.
        seconds: How long it took.
        certificate: What checked answers prove, or None.
    """

    model: Model
    incoming: Table
    origins: Tensor
    indices: Tensor
    probabilities: Tensor
    second: Tensor
    second_probabilities: Tensor
    strangers: Tensor
    one_to_one: bool
    reject: float | None
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...]
    seconds: float
    certificate: Certificate | None = None

    @property
    def memory(self) -> BayesianHopfield:
        """The memory that has answered."""
        return self.model.memory

    @property
    def stored(self) -> Table:
        """The table that it stores."""
        return self.model.stored

    @property
    def evidence(self) -> Certificate | None:
        """How often matches are right, by labels that were checked or held out; nothing was learned from them."""
        report = self.memory.report
        if self.certificate is not None or report is None or not report.labels:
            return self.certificate
        return Certificate(round(report.accuracy * report.labels), report.labels)

    @property
    def verified(self) -> bool:
        """Whether enough labels have judged for probabilities to be relied on."""
        return self.evidence is not None and self.evidence.labels >= VERIFIED

    @property
    def repeats(self) -> int:
        """How many stored rows are the match of more than one row."""
        return int((torch.bincount(self.indices[self.indices >= 0], minlength=1) > 1).sum())

    def stored_id(self, row: int) -> Any:
        """The id of a stored row; None for none."""
        return None if row < 0 else self.stored.ids[row]

    def table(self) -> dict[str, list[Any]]:
        """The matches as columns of a file."""
        known = self.origins >= 0
        reasons = np.select([known, self.strangers, self.indices < 0], [KNOWN, STRANGER, CROWDED], "")
        return {
            "id": self.incoming.ids.tolist(),
            "match": [self.stored_id(row) for row in self.indices.tolist()],
            "probability": [round(share, 6) for share in self.probabilities.tolist()],
            "second": [self.stored_id(row) for row in self.second.tolist()],
            "second_probability": [round(share, 6) for share in self.second_probabilities.tolist()],
            "verified": [self.verified or bool(mine) for mine in known],
            "reason": reasons.tolist(),
        }


def link(
    stored: Table | Model,
    incoming: Table,
    origins: Tensor | None = None,
    *,
    one_to_one: bool = False,
    reject: float | None = None,
    seed: int = 0,
    verbose: bool = True,
) -> Linkage:
    """Learn what happened to rows on their way, and find the stored row that each incoming one is.

    Args:
        stored: A table, which is learned anew; or what was learned from an earlier batch, as it is.
        incoming: A table; columns are found by name (:func:`ahop.tables.aligned`).
        origins: The stored row of each incoming one as far as it is known ``(n,)``, -1 where it is not. Known rows are
            learned from, and are their own answers.
        one_to_one: Whether each stored row is the match of one incoming row at most; all are then matched together.
        reject: The share of genuine rows that may be refused, so that rows of no stored one are; None refuses none.
        seed: For what is held out.
        verbose: Whether to show progress when it takes long.

    Example:
        >>> draw = np.random.default_rng(0)
        >>> weights, sizes = draw.random(40), draw.random(40)
        >>> stored = Table.of({"sku": [f"A{row}" for row in range(40)], "weight": weights, "size": sizes})
        >>> found = link(stored, Table.of({"size": sizes[:9] + 0.001, "weight": weights[:9]}), verbose=False)
        >>> found.table()["match"][:3], found.verified
        (['A0', 'A1', 'A2'], False)
    """
    start = time.monotonic()
    known = torch.full((len(incoming),), -1) if origins is None else origins
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        # What other threads of a server leave open is no note on these tables.
        warnings.simplefilter("ignore", ResourceWarning)
        notes: tuple[str, ...] = ()
        if isinstance(stored, Model):
            if origins is not None:
                raise ValueError("known pairs are learned from, and a given model learns no more: leave one out")
            model, rows = stored, fitted(incoming, stored.columns, stored.named)
        else:
            model, rows, notes = _learned(stored, incoming, known, seed, verbose)
        queries = torch.from_numpy(rows.values).to(model.memory.patterns.dtype)
        answers = _answers(model.memory, queries, known, one_to_one, reject)
    beside = alternatives(model.stored.values, rows.values, known, answers[0], shared=model.shared, seed=seed)
    notes = (*notes, *dict.fromkeys(str(one.message) for one in warned))
    seconds = time.monotonic() - start
    return Linkage(model, rows, known, *answers, one_to_one, reject, beside, notes, seconds)


def _learned(
    stored: Table, incoming: Table, origins: Tensor, seed: int, verbose: bool
) -> tuple[Model, Table, tuple[str, ...]]:
    stored, incoming, shared, notes = aligned(stored, incoming)
    dtype = _precision(stored.values)
    queries = torch.from_numpy(incoming.values).to(dtype)
    given = origins if bool((origins >= 0).any()) else None
    observed: Any = "not-nan" if bool(queries.isnan().any()) else None
    memory = BayesianHopfield(torch.from_numpy(stored.values).to(dtype))
    memory.fit(queries, given, observed=observed, seed=seed, verbose=verbose)
    if memory.report is not None and memory.report.labels < VERIFIED <= int((origins >= 0).sum()):
        # Where values are missing, a fit of known and unknown rows judges none.
        judged = held_out(memory.patterns, queries, origins, observed=observed, seed=seed, verbose=verbose)
        memory.report = replace(memory.report, accuracy=judged.accuracy, labels=judged.labels)
    return Model(memory, stored, incoming.columns, incoming.named, shared), incoming, notes


def _precision(values: np.ndarray) -> torch.dtype:
    """float32, which is fast, unless it would round values that lie far from zero."""
    far = np.abs(values).max(0) > _FAR * values.std(0)
    return torch.float64 if far.any() else torch.float32


def _answers(
    memory: BayesianHopfield, queries: Tensor, origins: Tensor, one_to_one: bool, reject: float | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Best and second best of each row with their probabilities, and strangers; what is known is its own answer."""
    open = (origins < 0).nonzero().squeeze(1)
    first, second = origins.clone(), torch.full_like(origins, -1)
    sure, less = (origins >= 0).double(), torch.zeros(len(origins), dtype=torch.float64)
    strangers = torch.zeros_like(origins, dtype=torch.bool)
    if len(open):
        asked = queries[open]
        observed: Any = "not-nan" if bool(asked.isnan().any()) else None
        if one_to_one:
            # What is known is taken: the others share what is left.
            room = torch.ones(len(memory), dtype=torch.long)
            room[origins[origins >= 0]] = 0
            found = memory.match(asked, room, observed=observed, reject=reject)
            first[open], second[open] = found.indices, found.second
            sure[open], less[open] = found.probabilities.double(), found.second_probabilities.double()
            if reject is not None:
                # Where there is less room than rows, some that have no match are no strangers.
                short = len(open) > int(room.sum())
                strangers[open] = (found.indices < 0) & (found.strangers >= (0.5 if short else 0.0))
        else:
            best = memory.recall(asked, min(2, len(memory)), observed=observed, reject=reject)
            first[open], sure[open] = best.indices[:, 0], best.probabilities[:, 0].double()
            strangers[open] = best.indices[:, 0] < 0
            if best.indices.shape[1] > 1:
                second[open], less[open] = best.indices[:, 1], best.probabilities[:, 1].double()
    return first, sure, second, less, strangers
