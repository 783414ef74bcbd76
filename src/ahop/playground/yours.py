"""Two tables of your own: matched, and every method judged on origins that it has not learned from."""

from __future__ import annotations

import base64
import shlex
import warnings
from collections.abc import Iterator
from math import nan
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ahop import plot
from ahop.linkage import Linkage, page
from ahop.linkage.alternatives import NEAREST, RIDGE, by_cosine, by_ridge
from ahop.linkage.page import drawn
from ahop.memories import create
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.metrics import calibration_gap
from ahop.playground import pictures
from ahop.playground.damage import Damage, Sliders
from ahop.playground.sent import File, UploadError
from ahop.tables import as_csv

# What is compared, and what each learns from.
MODELS = {
    NEAREST: "means of columns",
    RIDGE: "queries and origins",
    "m-hop": "nothing",
    "u-hop": "nothing",
    "s-hop": "nothing",
    "k2-hop": "queries and origins",
    "a-hop": "queries and origins",
    "b-hop*": "queries alone",
    "b-hop": "queries and origins",
}
# Those that stay out where more values are stored, and those that find their way between unlike columns.
_SLOW, _MANY = ("k2-hop", "a-hop"), 256_000
_FREE = (RIDGE, "b-hop*", "b-hop")
# Queries that a half needs, and those that are taken of a large one: to learn from, and to score.
_LEAST, _LEARNED, _SCORED = 10, 2000, 1000
_BINS = 5


class Split(NamedTuple):
    """Which rows are learned from and which are scored, as their numbers; no origin is on both sides."""

    learn: np.ndarray
    score: np.ndarray


class Row(NamedTuple):
    """How a method did on queries of origins that it had not learned from.

    Attributes:
        name, learns: The method, and what it learned from.
        right: The share of first choices that are right.
        calibration: How far its probabilities are from that; NaN where it has none.
        confidence: The mean probability of first choices.
        curve: Mean confidence and share right in bins of confidence.
        problem: Why it could not take part; the figures mean nothing then.
        memory: What has answered, if that is a memory.
    """

    name: str
    learns: str
    right: float = 0.0
    calibration: float = nan
    confidence: float = nan
    curve: tuple[tuple[float, float], ...] = ()
    problem: str = ""
    memory: AssociativeMemory | None = None


def split(origins: Tensor, seed: int = 0) -> Split:
    """Half of the known origins to learn from and half to score."""
    draw = np.random.default_rng(seed)
    known = draw.permutation(np.flatnonzero((origins >= 0).numpy()))
    some = draw.permutation(np.unique(origins.numpy()[known]))
    first = np.isin(origins.numpy()[known], some[: len(some) // 2])
    halves = Split(known[first][:_LEARNED], known[~first][:_SCORED])
    if min(map(len, halves)) < _LEAST or len(some) < 4:
        raise UploadError(
            f"To hold origins out, at least four must be known and each half must have {_LEAST} queries or more; "
            f"here {len(some)} are known, of {len(known)} queries."
        )
    return halves


def rows(found: Linkage, halves: Split) -> Iterator[Row]:
    """How each method does, one after the other."""
    for name, learns in MODELS.items():
        try:
            yield _plain(name, learns, found, halves) if name in (NEAREST, RIDGE) else _row(name, learns, found, halves)
        except ValueError as error:
            yield Row(name, learns, problem=str(error))


def _plain(name: str, learns: str, found: Linkage, halves: Split) -> Row:
    stored, incoming = found.stored.values, found.incoming.values
    if name == RIDGE:
        choices = by_ridge(stored, incoming, found.origins, *halves)
    else:
        _require_able(name, found)
        choices = by_cosine(stored, incoming, halves.score)
    return Row(name, learns, float((choices == found.origins[halves.score]).double().mean()))


def _row(name: str, learns: str, found: Linkage, halves: Split) -> Row:
    _require_able(name, found)
    patterns = found.memory.patterns
    queries, observed = _queries(found)
    memory = create(name.rstrip("*"), patterns)
    if memory.learns:
        origins = None if name.endswith("*") else found.origins[halves.learn]
        _fit(memory, queries[halves.learn], origins, observed)
    best = memory.recall(queries[halves.score], observed=observed)
    confidence, right = best.probabilities[:, 0], best.indices[:, 0] == found.origins[halves.score]
    bins = (confidence * _BINS).long().clamp(0, _BINS - 1)
    curve = tuple(
        (float(confidence[bins == bin].mean()), float(right[bins == bin].float().mean()))
        for bin in bins.unique().tolist()
    )
    gap = calibration_gap(confidence, right, _BINS)
    return Row(name, learns, float(right.float().mean()), gap, float(confidence.mean()), curve, memory=memory)


def curves(memory: AssociativeMemory, found: Linkage, halves: Split) -> list[str]:
    """A reliability diagram and a risk-coverage curve of a memory, on the queries that are scored.

    Args:
        memory: The fitted memory.
        found: The linkage whose queries it answers.
        halves: Which queries were learned from, and which are scored.
    """
    queries, observed = _queries(found)
    asked = memory, queries[halves.score], found.origins[halves.score]
    return [
        drawn(lambda ax: plot.reliability(*asked, _BINS, observed=observed, ax=ax), 4.2, 3.6),
        drawn(lambda ax: plot.risk_coverage(*asked, observed=observed, ax=ax), 4.2, 3.6),
    ]


def _queries(found: Linkage) -> tuple[Tensor, Any]:
    """The incoming rows, and whether values are missing."""
    queries = torch.from_numpy(found.incoming.values).to(found.memory.patterns.dtype)
    return queries, "not-nan" if bool(queries.isnan().any()) else None


def _require_able(name: str, found: Linkage) -> None:
    if name not in _FREE and not found.model.shared:
        raise ValueError("the two tables have no columns in common")
    if name in _SLOW and found.stored.values.size > _MANY:
        raise ValueError(f"left out: it takes long with more than {_MANY:,} stored values")


def _fit(memory: AssociativeMemory, queries: Tensor, origins: Tensor | None, observed: Any) -> None:
    options: dict[str, Any] = {"verbose": False} if isinstance(memory, BayesianHopfield) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        memory.fit(queries, origins, observed=observed, **options)


def downloads(found: Linkage) -> tuple[File, File]:
    """The matches as a table, and the page on them."""
    return File("matches.csv", as_csv(found.table()).encode()), File("report.html", page(found).encode())


def command(stored: str, incoming: str, pairs: str | None = None, *, once: bool = False) -> str:
    """The command that does the same in a terminal.

    Args:
        stored, incoming: The names of the files.
        pairs: The name of the file of known pairs, if any.
        once: Match each stored row at most once.

    Example:
        >>> command("stored.csv", "my rows.csv", once=True)
        "ahop match stored.csv 'my rows.csv' --one-to-one --out matches.csv --report report.html"
    """
    options = [*(() if pairs is None else ("--pairs", pairs)), *(("--one-to-one",) if once else ())]
    return shlex.join(["ahop", "match", stored, incoming, *options, "--out", "matches.csv", "--report", "report.html"])


def example() -> tuple[File, File, File]:
    """Three files to try: digits; damaged ones, dim, noisy, cut off at the top and with gaps; and half of the pairs."""
    digits = pictures.digits()
    damaged = Damage(digits.shape, Sliders(top=0.25, noise=0.5, light=-0.4), seed=3).sample(digits.patterns, 240)
    draw = np.random.default_rng(0)
    lost = draw.random(damaged.queries.shape) < 0.02
    pixels = [f"x{place}" for place in range(digits.patterns.shape[1])]
    stored = ["digit," + ",".join(pixels)]
    stored += [
        f"d{row}," + ",".join(f"{value:.3g}" for value in one) for row, one in enumerate(digits.patterns.tolist())
    ]
    # As spreadsheets of half of Europe write it.
    asked = ["query;" + ";".join(pixels)]
    for row, one in enumerate(damaged.queries.tolist()):
        cells = ["" if gone else f"{value:.3g}" for value, gone in zip(one, lost[row], strict=True)]
        asked.append(f"q{row};" + ";".join(cells).replace(".", ","))
    pairs = ["query,digit", *(f"q{row},d{origin}" for row, origin in enumerate(damaged.origins.tolist()[:120]))]
    names = ("digits.csv", "damaged.csv", "known.csv")
    first, second, third = (
        File(name, "\n".join(lines).encode()) for name, lines in zip(names, (stored, asked, pairs), strict=True)
    )
    return first, second, third


def link(file: File) -> str:
    """The address of a file that holds the file itself."""
    kind = "text/html" if file.name.endswith(".html") else "text/csv"
    return f"data:{kind};base64,{base64.b64encode(file.content).decode()}"
