"""Two tables in, matches out."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ahop._checks import STRANGER, UNKNOWN
from ahop.learning.report import VERIFIED
from ahop.linkage.alternatives import Alternative, alternatives
from ahop.linkage.answers import answers
from ahop.linkage.batch import unlike
from ahop.linkage.holdout import Labels, held_out
from ahop.linkage.model import Judged, Model
from ahop.linkage.rows import in_rows
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.checking import MATCHES, Certificate
from ahop.similarity.families.order import order_of
from ahop.tables.alignment import aligned, fitted
from ahop.tables.table import Table

# Means in standard deviations beyond which float32 would round what tells rows apart.
_MAX_STANDARDISED_MEAN = 2.0**14
# Spreads of columns that differ by so much are no longer of one kind.
_MAX_SPREAD_RATIO = 10.0
KNOWN, KNOWN_STRANGER = "known pair", "known to be none of the stored rows"
CHECKED, CHECKED_STRANGER = "checked answer", "checked: none of the stored rows"
UNFAMILIAR = "stranger: less familiar than genuine rows are"
UNASSIGNED = "no stored row left that is as likely"
NOTHING = "nothing was found that is better than chance"


@dataclass(frozen=True, eq=False)
class Linkage:
    """Which stored row each incoming row is.

    Attributes:
        model: The memory that was learned or given, with the stored table.
        incoming: The table that came in, with the columns that were compared.
        origins: The stored row of each incoming one as far as it is known ``(n,)``; -1 where nobody knows,
            ``ahop.STRANGER`` where it is none of them.
        checked: Of which of these somebody has checked the match ``(n,)``; the others were known before.
        indices, probabilities: The match of each row ``(n,)``; -1 and 0 where it was refused.
        second, second_probabilities: The second best.
        strangers: Which rows come from no stored one ``(n,)``, by ``reject``.
        alone: The match that each row has by itself ``(n,)``; another only where each stored row is given away once.
        strained: The stored rows that more rows asked for by themselves than there is room, and how many.
        one_to_one: Whether each stored row was given away once.
        reject: The share of genuine rows that may be refused, or None.
        alternatives: What is plainer, and how it does.
        notes: What was left out, filled in or warned of, in sentences.
        seconds: How long learning and matching took.
        judged: How often matches are right, by known pairs of these rows that were held out, or None.
        earlier: How right the matches of the batch were that a given model learned from, or None.
        certificate: What checked answers prove, or None.
        labels: How probable matches were that labels judged, before these made them as sure as they were right, and
            whether each was right; None where only first choices were judged, while learning.
    """

    model: Model
    incoming: Table
    origins: Tensor
    checked: Tensor
    indices: Tensor
    probabilities: Tensor
    second: Tensor
    second_probabilities: Tensor
    strangers: Tensor
    alone: Tensor
    strained: dict[int, int]
    one_to_one: bool
    reject: float | None
    alternatives: tuple[Alternative, ...]
    notes: tuple[str, ...]
    seconds: float
    judged: Certificate | None = None
    earlier: Judged | None = None
    certificate: Certificate | None = None
    labels: Labels | None = None

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
        return self.certificate or self.judged

    @property
    def verified(self) -> bool:
        """Whether enough labels have judged for probabilities to be relied on."""
        return self.evidence is not None and self.evidence.labels >= VERIFIED

    @property
    def found(self) -> bool:
        """Whether anything was found that is better than chance; if not, no row has a match but those known before."""
        return self.memory.report is None or self.memory.report.found

    @property
    def repeats(self) -> int:
        """How many stored rows are the match of more than one row."""
        return int((torch.bincount(self.indices[self.indices >= 0], minlength=1) > 1).sum())

    @property
    def changed(self) -> int:
        """How many rows have another match than by themselves, since each stored row was given away once."""
        return int((self.indices != self.alone).sum())

    def stored_id(self, row: int) -> Any:
        """The id of a stored row; None for none."""
        return None if row < 0 else self.stored.ids[row]

    def table(self) -> dict[str, list[Any]]:
        """The matches as columns of a file."""
        known, strangers = self.origins != UNKNOWN, self.origins == STRANGER
        lost = ~known & (not self.found)
        reasons = np.select(
            [
                *(strangers & self.checked, self.checked, strangers, known),
                *(lost, self.strangers, self.indices < 0),
            ],
            [CHECKED_STRANGER, CHECKED, KNOWN_STRANGER, KNOWN, NOTHING, UNFAMILIAR, UNASSIGNED],
            "",
        )
        first, second = (self.indices.masked_fill(lost, -1), self.second.masked_fill(lost, -1))
        sure, less = (shares.masked_fill(lost, 0) for shares in (self.probabilities, self.second_probabilities))
        return {
            "id": self.incoming.ids.tolist(),
            "match": [self.stored_id(row) for row in first.tolist()],
            "probability": [round(share, 6) for share in sure.tolist()],
            "second": [self.stored_id(row) for row in second.tolist()],
            "second_probability": [round(share, 6) for share in less.tolist()],
            "verified": (known | ((first >= 0) & self.verified)).tolist(),
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
            learned from, and are their own answers. ``ahop.STRANGER`` where it is known to be none of them: such rows
            judge what ``reject`` refuses, and nothing learns from them.
        one_to_one: Whether each stored row is the match of one incoming row at most; all are then matched together.
        reject: The share of genuine rows that may be refused, so that rows of no stored one are; None refuses none.
        seed: For what is held out.
        verbose: Whether to show progress when it takes long.

    Example:
        >>> draw = np.random.default_rng(0)
        >>> weights, sizes = draw.random(40), draw.random(40)
        >>> stored = Table.of({"sku": [f"A{row}" for row in range(40)], "weight": weights, "size": sizes})
        >>> found = link(stored, Table.of({"size": sizes[:36] + 0.001, "weight": weights[:36]}), verbose=False)
        >>> found.table()["match"][:3], found.verified
        (['A0', 'A1', 'A2'], False)
    """
    start = time.monotonic()
    known = torch.full((len(incoming),), UNKNOWN) if origins is None else origins
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        # What other threads of a server leave open is no note on these tables.
        warnings.simplefilter("ignore", ResourceWarning)
        notes: tuple[str, ...] = ()
        judged, earlier, labels = None, None, None
        if isinstance(stored, Model):
            if origins is not None:
                raise ValueError("known pairs are learned from, and a given model learns no more: leave one out")
            model, rows = stored, fitted(incoming, stored.columns, stored.named)
            # These rows are others than those it was judged on.
            earlier = model.judged
        else:
            model, rows, notes, labels = _learned(stored, incoming, known, one_to_one, seed, verbose)
            judged = None if model.judged is None else model.judged.certificate
        queries = torch.from_numpy(rows.values).to(model.memory.patterns.dtype)
        found = answers(model.memory, queries, known, one_to_one, reject, verbose)
        if model is stored:
            notes = unlike(model.memory, queries, seed)
    report = model.memory.report
    first = found.indices if report is None or report.found else None
    tables = model.stored.values, rows.values
    beside = alternatives(*tables, known, first, shared=model.shared, one_to_one=one_to_one, seed=seed)
    notes = (*notes, *dict.fromkeys(in_rows(str(one.message)) for one in warned))
    seconds = time.monotonic() - start
    unchecked = torch.zeros_like(known, dtype=torch.bool)
    return Linkage(
        model, rows, known, unchecked, *found, one_to_one, reject, beside, notes, seconds, judged, earlier, None, labels
    )


def _learned(
    stored: Table, incoming: Table, origins: Tensor, one_to_one: bool, seed: int, verbose: bool
) -> tuple[Model, Table, tuple[str, ...], Labels | None]:
    """A model, the rows it is asked with, notes, and what pairs say that were hidden while matching."""
    stored, incoming, shared, notes = aligned(stored, incoming)
    dtype = _precision(stored.values)
    queries = torch.from_numpy(incoming.values).to(dtype)
    observed: Any = "not-nan" if bool(queries.isnan().any()) else None
    memory = BayesianHopfield(torch.from_numpy(stored.values).to(dtype))
    room, units = 1 if one_to_one else None, shared and has_units(stored)
    memory.fit(queries, origins, observed=observed, room=room, standardise=units, seed=seed, verbose=verbose)
    report = memory.report
    assert report is not None
    judged, labels = None, None
    if count := report.witnesses or report.labels:
        # Labels that are right or wrong together count as what they are worth.
        judged = Certificate(round(report.accuracy * count), count)
        # A fit judges first choices, not what is matched together.
        if one_to_one:
            labels = _hidden(memory, units, queries, origins, one_to_one, seed, verbose)
            judged = Certificate(int(labels.right.sum()), len(labels.right), of=MATCHES)
    known = None if judged is None else Judged(judged)
    return Model(memory, stored, incoming.columns, incoming.named, shared, known), incoming, notes, labels


def with_reliability(linkage: Linkage, *, seed: int = 0, verbose: bool = True) -> Linkage:
    """The same with ``labels``, where known pairs have judged first choices while learning: each half of them is found
    again by what the other half teaches, so that a page can show whether probabilities hold.

    Args:
        linkage: What was learned from known pairs.
        seed: For halves and fits.
        verbose: Whether to show progress when it takes long.
    """
    if linkage.labels is not None or linkage.judged is None or linkage.judged.labels < VERIFIED or not linkage.found:
        return linkage
    queries = torch.from_numpy(linkage.incoming.values).to(linkage.memory.patterns.dtype)
    units = linkage.model.shared and has_units(linkage.stored)
    labels = _hidden(linkage.memory, units, queries, linkage.origins, linkage.one_to_one, seed, verbose)
    return replace(linkage, labels=labels)


def _hidden(
    memory: BayesianHopfield,
    units: bool,
    queries: Tensor,
    origins: Tensor,
    one_to_one: bool,
    seed: int,
    verbose: bool,
) -> Labels:
    """What pairs say that were hidden while matching."""
    observed: Any = "not-nan" if bool(queries.isnan().any()) else None
    how = {"observed": observed, "standardise": units, "seed": seed, "verbose": verbose}
    return held_out(memory.patterns, queries, origins, one_to_one=one_to_one, **how)


def has_units(table: Table) -> bool:
    """Whether columns are quantities of their own, as grams beside degrees: they have words for names, no order, and
    spreads that differ widely. Wavelengths and dimensions of an embedding are not."""
    spread = table.values.std(0)
    spread = spread[spread > 0]
    if not table.named or all(map(_is_number, table.columns)) or len(spread) < 2:
        return False
    return bool(spread.max() > _MAX_SPREAD_RATIO * spread.min()) and not order_of(torch.from_numpy(table.values))


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _precision(values: np.ndarray) -> torch.dtype:
    """float32, which is fast, unless it would round values that lie far from zero."""
    far = np.abs(values).max(0) > _MAX_STANDARDISED_MEAN * values.std(0)
    return torch.float64 if far.any() else torch.float32
