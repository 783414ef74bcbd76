"""Two tables of your own: matched, and every method judged on origins that it has not learned from."""

from __future__ import annotations

import base64
import shlex
import warnings
from collections.abc import Callable, Iterator
from functools import partial
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

# Stored values from which on what takes long stays out.
_MAX_SLOW_VALUES = 256_000
# Queries that a half needs, and those that are taken of a large one: to learn from, and to score.
_LEAST, _LEARNED, _SCORED = 10, 2000, 1000
_BINS = 5


class Split(NamedTuple):
    """Which rows are learned from and which are scored, as their numbers; no origin is on both sides."""

    learn: np.ndarray
    score: np.ndarray


class Method(NamedTuple):
    """Something that is compared.

    Attributes:
        name, learns: What it is, and what it learns from, in words.
        judge: How it does on the half that is scored.
        maps: Whether it finds its way between unlike columns.
        slow: Whether it stays out where many values are stored.
    """

    name: str
    learns: str
    judge: Callable[[Method, Linkage, Split], Row]
    maps: bool = False
    slow: bool = False


class Row(NamedTuple):
    """How a method did on queries of origins that it had not learned from.

    Attributes:
        method: Which it is.
        right: The share of first choices that are right.
        calibration: How far its probabilities are from that; NaN where it has none.
        confidence: The mean probability of first choices.
        curve: Mean confidence and share right in bins of confidence.
        problem: Why it could not take part; the figures mean nothing then.
        memory: What has answered, if that is a memory.
    """

    method: Method
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
    for method in METHODS:
        try:
            _require_able(method, found)
            yield method.judge(method, found, halves)
        except ValueError as error:
            yield Row(method, problem=str(error))


def _by_cosine(method: Method, found: Linkage, halves: Split) -> Row:
    choices = by_cosine(found.stored.values, found.incoming.values, halves.score)
    return _plain(method, found, halves, choices)


def _by_ridge(method: Method, found: Linkage, halves: Split) -> Row:
    choices = by_ridge(found.stored.values, found.incoming.values, found.origins, *halves)
    return _plain(method, found, halves, choices)


def _plain(method: Method, found: Linkage, halves: Split, choices: Tensor) -> Row:
    return Row(method, float((choices == found.origins[halves.score]).double().mean()))


def _memory(name: str, method: Method, found: Linkage, halves: Split, *, labels: bool = True) -> Row:
    queries, observed = _queries(found)
    memory = create(name, found.memory.patterns)
    if memory.learns:
        _fit(memory, queries[halves.learn], found.origins[halves.learn] if labels else None, observed)
    best = memory.recall(queries[halves.score], observed=observed)
    confidence, right = best.probabilities[:, 0], best.indices[:, 0] == found.origins[halves.score]
    bins = (confidence * _BINS).long().clamp(0, _BINS - 1)
    curve = tuple(
        (float(confidence[bins == bin].mean()), float(right[bins == bin].float().mean()))
        for bin in bins.unique().tolist()
    )
    gap = calibration_gap(confidence, right, _BINS)
    return Row(method, float(right.float().mean()), gap, float(confidence.mean()), curve, memory=memory)


def _of(name: str, learns: str, *, maps: bool = False, slow: bool = False) -> Method:
    return Method(name, learns, partial(_memory, name), maps, slow)


_PAIRS = "queries and origins"
B_HOP = _of("b-hop", _PAIRS, maps=True)
_M_HOP, _A_HOP = _of("m-hop", "nothing"), _of("a-hop", _PAIRS, slow=True)
# What is compared, and whose confidence is charted.
METHODS = (
    Method(NEAREST, "means of columns", _by_cosine),
    Method(RIDGE, _PAIRS, _by_ridge, maps=True),
    _M_HOP,
    _of("u-hop", "nothing"),
    _of("s-hop", "nothing"),
    _of("k2-hop", _PAIRS, slow=True),
    _A_HOP,
    Method("b-hop*", "queries alone", partial(_memory, B_HOP.name, labels=False), maps=True),
    B_HOP,
)
CHARTED = (_M_HOP, _A_HOP, B_HOP)


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


def _require_able(method: Method, found: Linkage) -> None:
    if not method.maps and not found.model.shared:
        raise ValueError("the two tables have no columns in common")
    if method.slow and found.stored.values.size > _MAX_SLOW_VALUES:
        raise ValueError(f"left out: it takes long with more than {_MAX_SLOW_VALUES:,} stored values")


def _fit(memory: AssociativeMemory, queries: Tensor, origins: Tensor | None, observed: Any) -> None:
    options: dict[str, Any] = {"verbose": False} if isinstance(memory, BayesianHopfield) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        memory.fit(queries, origins, observed=observed, **options)


def downloads(found: Linkage) -> tuple[File, File]:
    """The matches as a table, and the page on them."""
    matches = as_csv(found.table(), found.incoming.decimal)
    return File("matches.csv", matches.encode()), File("report.html", page(found).encode())


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
