"""Retrieval of items that were measured twice, where nobody knows the corruption."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch

from ahop import datasets
from ahop._checks import choice, integer
from ahop._progress import progress
from ahop.datasets import Drawn, Measured
from ahop.memories.base import AssociativeMemory
from ahop.metrics import calibration_gap
from ahop.similarity import Density, Similarity
from ahop_paper import lineage, sets  # noqa: F401  what they hold joins
from ahop_paper import report as reports
from ahop_paper.baselines import PLAIN
from ahop_paper.parallel import each
from ahop_paper.real_models import MODELS
from ahop_paper.spread import beside, spread

Done = dict[str, Any]
# In what the sittings of one report may differ.
FREE = ("data", "models", "runs", "seed", "device")
# By how much of all queries ours may be behind the best that anyone would try first, beside chance.
NEVER_BEHIND = {"b-hop*": 0.05, "b-hop": 0.02}


@dataclass(frozen=True)
class Config:
    """What a run does, by default with every set of items measured twice and every model that is meant for it.

    The splits are ``seed``, ``seed + 1`` and so on; 0 is the published one. ``items`` bounds the size of each set.
    """

    data: tuple[str, ...] = field(default_factory=lambda: datasets.names_of(Measured))
    models: tuple[str, ...] = field(default_factory=lambda: tuple(MODELS))
    runs: int = 5
    seed: int = 0
    items: int | None = None
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        for name in self.data:
            choice(name, "data", (*datasets.names_of(Measured), *datasets.names_of(Drawn)))
        for name in self.models:
            MODELS.named(name)
        for kind, chosen in (("data sets", self.data), ("models", self.models)):
            if not chosen:
                raise ValueError(f"{kind} must be at least one, got none")
        integer(self.runs, "runs", 1)
        reports.require_seed(self.seed)

    @property
    def splits(self) -> range:
        return range(self.seed, self.seed + self.runs)


def at_hand() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sets of items measured twice that are on this machine, and those that are not; a drawn one if none is."""
    names = datasets.names_of(Measured)
    here = tuple(name for name in names if datasets.ENTRIES[name].here)
    return here or datasets.names_of(Drawn), tuple(name for name in names if name not in here)


def quick(config: Config) -> Config:
    """Two splits of a few items: to see that it works, not to be read."""
    return Config(**{**vars(config), "runs": 2, "items": 40, "quick": True})


def load(name: str, config: Config) -> Measured:
    """The set, or as much of it as is wanted."""
    data: Measured = datasets.load(name)
    return data if config.items is None else small(data, config.items, 4 * config.items)


def small(data: Measured, items: int, queries: int) -> Measured:
    """A part of a data set.

    Args:
        data: All of it.
        items: The most items to keep.
        queries: The most queries to keep.
    """
    generator = torch.Generator().manual_seed(0)
    known = data.origins.unique()
    kept = known[torch.randperm(len(known), generator=generator)[:items]].sort().values
    rows = torch.isin(data.origins, kept).nonzero().squeeze(1)
    rows = rows[torch.randperm(len(rows), generator=generator)[:queries]]
    origins = torch.searchsorted(kept, data.origins[rows])
    return Measured(data.patterns[kept], data.queries[rows], origins, data.learn[rows])


def split(data: Measured, number: int) -> Measured:
    """The published split for 0; for others as many items to learn from, drawn anew."""
    if number == 0:
        return data
    items, count = data.origins.unique(), len(data.origins[data.learn].unique())
    order = torch.randperm(len(items), generator=torch.Generator().manual_seed(number))
    return data._replace(learn=torch.isin(data.origins, items[order[:count]]))


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """How often the first choice is right on items that were not learned from, by data set, model and split.

    What ``out`` already holds is not done again, and each part is kept when ready; none begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    head = reports.stamp("real", asdict(config), __file__)
    journal = reports.Journal(out, head, FREE, partial(summary, config), partial(code_of, asdict(config)))
    with reports.reading(out):
        known = {(one["data"], one["model"], one["split"]) for one in journal.done}
    # All before the work, which would be in vain where one is not to be had.
    meant = {name: _suited(load(name, config), name, config) for name in config.data}
    jobs = [(name, model, number) for number in config.splits for name in config.data for model in meant[name]]
    left = [job for job in jobs if job not in known]
    with progress("real variants", len(left)) as bar:
        for one in each(score, [(*job, config) for job in left], workers, until):
            journal.add([one])
            bar.advance(f"{one['data']}, {one['model']}, split {one['split']}: {one['accuracy']:.3f}")
    return journal.report()


def code_of(config: dict[str, Any], one: Done) -> str:
    """The fingerprint of what makes a row: measure, data set and model."""
    return lineage.fingerprint(score, datasets.ENTRIES[one["data"]].load, MODELS[one["model"]].build)


def join(config: Config, paths: Sequence[str | os.PathLike[str]]) -> dict[str, Any]:
    """One report of what several machines did, each into a file of its own; nothing is run."""
    return summary(config, *reports.join(paths, "real", asdict(config), FREE))


def _suited(data: Measured, name: str, config: Config) -> list[str]:
    return [model for model in config.models if MODELS[model].suits(name, data)]


def score(name: str, model: str, number: int, config: Config) -> Done:
    """What one model finds on one split of one data set, and how sure it is where it learned to be.

    Args:
        name: The data set.
        model: The memory's or baseline's name.
        number: The split.
        config: What to run.
    """
    data = Measured(*(part.to(config.device) for part in split(load(name, config), number)))
    learned, scored = (len(data.origins[rows].unique()) for rows in (data.learn, ~data.learn))
    queries, origins = data.queries[~data.learn], data.origins[~data.learn]
    made = MODELS[model].build(data, number)
    found: Done = {"data": name, "model": model, "split": number, "items": [learned, scored]}
    if not isinstance(made, AssociativeMemory):
        return {**found, "accuracy": float((made.first(queries) == origins).double().mean())}
    indices, sure = (part.squeeze(-1) for part in made.recall(queries.to(made.patterns.dtype)))
    right = (indices == origins).to(sure.dtype)
    found["accuracy"] = float(right.double().mean())
    if made.learns:
        found["confidence"] = float(sure.double().mean())
        found["calibration_error"] = calibration_gap(sure, right)
    return {**found, "learned": _description(made.similarity)}


def _description(similarity: Similarity) -> str:
    return similarity.describe() if isinstance(similarity, Density) else ""


def summary(config: Config, head: dict[str, Any], done: list[Done]) -> dict[str, Any]:
    """The report: one row for a data set and model, ours beside the best other that is given no more labels.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    rows = []
    for name in config.data:
        found: dict[str, dict[int, Done]] = {model: {} for model in config.models}
        for one in done:
            if one["data"] == name and one["model"] in found and one["split"] in config.splits:
                found[one["model"]][one["split"]] = one
        for model, runs in found.items():
            if runs:
                row = {"data": name, "model": model, **_figures(runs), **_beside(model, found)}
                rows.append({**row, **_beside_plain(model, found)})
    return {**head, "rows": rows, "done": done}


def _figures(runs: dict[int, Done]) -> dict[str, Any]:
    each_split = [runs[number] for number in sorted(runs)]
    figures: dict[str, Any] = {
        key: spread([one[key] for one in each_split])
        for key in ("accuracy", "confidence", "calibration_error")
        if key in each_split[0]
    }
    return {**figures, "learned": each_split[0].get("learned", "")}


def _beside(model: str, found: dict[str, dict[int, Done]]) -> dict[str, Any]:
    """For a model of ours: the best of the others on the same splits, and the difference to it."""
    if not MODELS[model].ours:
        return {}
    labels = MODELS[model].labels
    return _compared(model, found, [other for other, one in MODELS.items() if not one.ours and one.labels <= labels])


def _beside_plain(model: str, found: dict[str, dict[int, Done]]) -> dict[str, Any]:
    """A law: ours is not behind the best of what anyone would try first by more than it may be, and chance."""
    if model not in NEVER_BEHIND:
        return {}
    labels, slack = MODELS[model].labels, NEVER_BEHIND[model]
    plain = _compared(model, found, [other for other in PLAIN if MODELS[other].labels <= labels])
    if not plain:
        return {}
    difference = plain["difference"]
    return {"plain": {**plain["best_other"], "difference": difference, "slack": slack, **law(difference, slack)}}


def law(difference: dict[str, float | None], slack: float) -> dict[str, bool]:
    """Whether a difference to a baseline may be as high as it must be, and whether splits can tell.

    They cannot where the law may hold and may not, and the interval reaches further than the slack from its middle.

    Example:
        >>> law({"mean": 0.01, "low": -0.01, "high": 0.03}, slack=0.02)
        {'holds': True, 'told': True}
        >>> law({"mean": 0.01, "low": -0.30, "high": 0.32}, slack=0.02)
        {'holds': True, 'told': False}
    """
    mean, low, high = (difference[end] for end in ("mean", "low", "high"))
    assert mean is not None
    # One split has no interval.
    if low is None or high is None:
        return {"holds": mean >= -slack, "told": True}
    return {"holds": high >= -slack, "told": not low < -slack <= high or high - mean <= slack}


def _compared(model: str, found: dict[str, dict[int, Done]], others: list[str]) -> dict[str, Any]:
    figures = {
        other: {number: runs[number]["accuracy"] for number in sorted(runs)}
        for other, runs in found.items()
        if other == model or other in others
    }
    learned, scored = next(iter(found[model].values()))["items"]
    return beside("accuracy", figures.pop(model), figures, scored / learned)
