"""Memories on data of your own: learned on some origins, scored on others."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ahop.memories import create
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.metrics import calibration_gap
from ahop.playground import pictures
from ahop.playground.damage import Damage, Sliders
from ahop.playground.upload import Data, File, UploadError

# The memories of the table, and what each learns from.
MODELS = {
    "m-hop": "nothing",
    "u-hop": "nothing",
    "s-hop": "nothing",
    "k2-hop": "queries and origins",
    "a-hop": "queries and origins",
    "b-hop*": "queries alone",
    "b-hop": "queries and origins",
}
_LEAST = 10
_BINS = 5


class Split(NamedTuple):
    """Which queries are learned from and which are scored, ``(n,)`` each; no origin is on both sides."""

    learn: Tensor
    score: Tensor


class Row(NamedTuple):
    """How a memory did on queries of origins that it had not learned from.

    Attributes:
        name, learns: The memory, and what it learned from.
        right: The share of first choices that are right.
        calibration: How far its probabilities are from that.
        confidence: The mean probability of first choices.
        curve: Mean confidence and share right in bins of confidence.
        problem: Why it could not take part; the figures mean nothing then.
    """

    name: str
    learns: str
    right: float = 0.0
    calibration: float = 0.0
    confidence: float = 0.0
    curve: tuple[tuple[float, float], ...] = ()
    problem: str = ""


def split(data: Data, seed: int = 0) -> Split:
    """Half of the origins to learn from and half to score."""
    if data.origins is None:
        raise UploadError("No origin is known, so nothing can be scored.")
    known = data.origins >= 0
    some = data.origins[known].unique()
    drawn = some[torch.randperm(len(some), generator=torch.Generator().manual_seed(seed))]
    first = torch.isin(data.origins, drawn[: len(drawn) // 2])
    halves = Split(first, known & ~first)
    if min(int(half.sum()) for half in halves) < _LEAST or len(some) < 4:
        raise UploadError(
            f"To hold origins out, at least four must be known and each half must have {_LEAST} queries or more; "
            f"here {len(some)} are known, of {int(known.sum())} queries."
        )
    return halves


def rows(data: Data, halves: Split) -> Iterator[Row]:
    """How each memory does, one after the other."""
    for name, learns in MODELS.items():
        try:
            yield _row(name, learns, _learned(name, data, halves), data, halves)
        except ValueError as error:
            yield Row(name, learns, problem=str(error))


def _learned(name: str, data: Data, halves: Split) -> AssociativeMemory:
    assert data.origins is not None
    memory = create(name.rstrip("*"), data.patterns)
    if not memory.learns:
        return memory
    origins = None if name.endswith("*") else data.origins[halves.learn]
    return _fitted(memory, data.queries[halves.learn], origins)


def _fitted(memory: AssociativeMemory, queries: Tensor, origins: Tensor | None) -> AssociativeMemory:
    options: dict[str, Any] = {"verbose": False} if isinstance(memory, BayesianHopfield) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return memory.fit(queries, origins, **options)


def _row(name: str, learns: str, memory: AssociativeMemory, data: Data, halves: Split) -> Row:
    assert data.origins is not None
    found = memory.recall(data.queries[halves.score])
    confidence, right = found.probabilities[:, 0], found.indices[:, 0] == data.origins[halves.score]
    bins = (confidence * _BINS).long().clamp(0, _BINS - 1)
    curve = tuple(
        (float(confidence[bins == bin].mean()), float(right[bins == bin].float().mean()))
        for bin in bins.unique().tolist()
    )
    gap = calibration_gap(confidence, right)
    return Row(name, learns, float(right.float().mean()), gap, float(confidence.mean()), curve)


def told(data: Data) -> tuple[str, str]:
    """What b-hop learns from all there is, in words, and what it tried and expects of itself."""
    memory = _fitted(create("b-hop", data.patterns), data.queries, data.origins)
    assert isinstance(memory, BayesianHopfield)
    return memory.similarity.describe(), str(memory.report)


def code(name: str, labelled: bool) -> str:
    """Five lines that do the same with a file of this name, in single precision as here."""
    if name.lower().endswith(".npz"):
        origins = ', data["origins"]' if labelled else ""
        return f"""import ahop, numpy as np
data = np.load({name!r}, allow_pickle=False)
memory = ahop.BayesianHopfield(data["patterns"].astype("f4")).fit(data["queries"].astype("f4"){origins})
found = memory.recall(data["queries"].astype("f4"), k=5, reject=0.05)  # indices and probabilities; -1: none of these
print(memory.similarity.describe(), memory.report, sep="\\n\\n")
"""
    numbers = (
        'set_index("item").drop(columns="kind")' if labelled else 'drop(columns=["kind", "item"], errors="ignore")'
    )
    origins = ", stored.index.get_indexer(asked.index)" if labelled else ""
    return f"""import ahop, pandas as pd
table = pd.read_csv({name!r}, sep=None, engine="python")
stored, asked = (table[table.kind == kind].{numbers} for kind in ("pattern", "query"))
memory = ahop.BayesianHopfield(stored.to_numpy("f4")).fit(asked.to_numpy("f4"){origins})
print(memory.similarity.describe(), memory.report, sep="\\n\\n")
"""


def example() -> File:
    """A CSV file to try: digits, and damaged ones that are dim, noisy and cut off at the top."""
    digits = pictures.digits()
    seen = Damage(digits.shape, Sliders(top=0.25, noise=0.5, light=-0.4), seed=3).sample(digits.patterns, 240)
    lines = ["kind,item," + ",".join(f"x{place}" for place in range(digits.patterns.shape[1]))]
    for kind, values, items in (
        ("pattern", digits.patterns, range(len(digits))),
        ("query", seen.queries, seen.origins.tolist()),
    ):
        lines += [
            f"{kind},{item}," + ",".join(f"{value:.3g}" for value in row)
            for item, row in zip(items, values.tolist(), strict=True)
        ]
    return File("example.csv", "\n".join(lines).encode())


def link(file: File) -> str:
    """The address of a file that holds the file itself."""
    return f"data:text/csv;base64,{base64.b64encode(file.content).decode()}"
