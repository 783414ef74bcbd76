"""How a comparison is made: everything learns from one half of the origins, and is judged by the other."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ahop._checks import Observed, as_matrix, as_origins, as_queries, as_tensor
from ahop._progress import progress
from ahop.comparison.plain import BASELINES, Baseline, Fold
from ahop.comparison.table import Comparison, Row
from ahop.learning.holdout import hidden_folds
from ahop.memories.base import AssociativeMemory
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.kernel import KernelHopfield
from ahop.memories.names import create, known_names
from ahop.metrics import calibration_gap, same_patterns

# Each costs a fit of every memory.
_FOLDS = 2
# First choices ``(n,)``, and how sure each is ``(n,)``, which baselines do not say.
_Answer = Callable[[Fold], tuple[Tensor, Tensor | None]]


@torch.no_grad()
def compare(
    patterns: Any, queries: Any, origins: Any, *, observed: Observed = None, seed: int = 0, verbose: bool = True
) -> Comparison:
    """Every memory and baseline, by how often it finds origins that were held out.

    Baselines are the nearest pattern by L2, by cosine, by the cosine of rows around the mean of their side and by
    correlation, and the cosine after ridge regression, as it is and corrected for hubness among the queries to answer
    (CSLS). ``b-hop, no labels`` learns from the same queries without their origins. Half of the patterns that queries
    come from teach and the other half judge, and the other way round (cross-validation); all are stored. What cannot be
    used on such data says why.

    Args:
        patterns: ``(N, d)``.
        queries: ``(n, d)``, or ``(n, q)`` of a space of their own.
        origins: The pattern that each came from, ``(n,)``.
        observed: As in :meth:`ahop.BayesianHopfield.fit`; baselines take the mean of a column for what is missing.
        seed: For the halves and for fits.
        verbose: Whether to show progress when it takes long.

    Example:
        >>> patterns = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
        >>> found = ahop.compare(patterns, patterns + 0.01, torch.arange(12))
        >>> [row.name for row in found.rows][:2], found.rows[0].accuracy
        (['nearest by L2', 'nearest by cosine'], 1.0)
    """
    stored, given = as_matrix(patterns, "patterns"), as_tensor(queries, "queries")
    if given.ndim != 2:
        raise ValueError(f"queries must be a matrix, one row each, got shape {tuple(given.shape)}")
    asked = as_queries(given, stored, observed, given.shape[1])
    labels = as_origins(origins, len(asked), len(stored)).to(stored.device)
    known = len(labels.unique())
    if known < _FOLDS:
        raise ValueError(f"origins must include at least {_FOLDS} patterns, for some to be held out; got {known}")
    judges = hidden_folds(labels, _FOLDS, seed)
    folds = [Fold(stored, asked[~judge], labels[~judge], asked[judge]) for judge in judges]
    truth = torch.cat([labels[judge] for judge in judges])
    memories = sorted(known_names(), key=lambda name: name != BayesianHopfield.name)
    answers: list[tuple[str, _Answer]] = [(one.name, partial(_baseline, one)) for one in BASELINES]
    answers += [(name, partial(_memory, name, seed)) for name in memories]
    # Beside the same memory with labels.
    unlabelled = partial(_memory, BayesianHopfield.name, seed, labelled=False)
    answers.insert(len(BASELINES) + 1, (f"{BayesianHopfield.name}, no labels", unlabelled))
    # What is timed is work, not the imports of whoever comes first.
    import_module("sklearn.linear_model")
    rows = []
    with progress("compare", len(answers), show=verbose) as bar:
        for name, answer in answers:
            bar.advance(name, by=0)
            rows.append(_judged(name, answer, folds, truth))
            bar.advance(name)
    return Comparison(tuple(rows), len(stored))


def _baseline(one: Baseline, fold: Fold) -> tuple[Tensor, None]:
    if not fold.same_width and not one.maps:
        raise ValueError("queries have another width than patterns")
    return one.answer(fold), None


def _memory(name: str, seed: int, fold: Fold, labelled: bool = True) -> tuple[Tensor, Tensor]:
    """The first choices of a memory that has learned, where it can."""
    memory = create(name, fold.patterns)
    if not isinstance(memory, AssociativeMemory):
        raise ValueError("it keeps no patterns to choose from")
    if isinstance(memory, KernelHopfield) and memory.learns_from_patterns:
        memory.fit()
    elif memory.learns:
        options = {"seed": seed, "verbose": False} if isinstance(memory, BayesianHopfield) else {}
        origins = fold.origins if labelled else None
        memory.fit(fold.queries.rows, origins, observed=fold.queries.observed, **options)
    found = memory.recall(fold.asked.rows, observed=fold.asked.observed)
    return found.indices[:, 0], found.probabilities[:, 0]


def _judged(name: str, answer: _Answer, folds: list[Fold], truth: Tensor) -> Row:
    start = time.monotonic()
    try:
        with warnings.catch_warnings():
            # How well it does is what is asked here, whether it has converged or not.
            warnings.simplefilter("ignore")
            found = [answer(fold) for fold in folds]
    except ValueError as error:
        return Row(name, note=str(error))
    seconds, patterns = time.monotonic() - start, folds[0].patterns
    right = same_patterns(patterns, torch.cat([first for first, _ in found]), truth).cpu()
    sure = [part for _, part in found if part is not None]
    if not sure:
        return Row(name, right, seconds=seconds)
    confidence = torch.cat(sure).double().cpu()
    return Row(name, right, float(confidence.mean()), calibration_gap(confidence, right), seconds)
