"""Classification of tables (Table 3 of the paper): Hopfield networks beside forests and boosted trees.

On each split of a table, the published one first, each model is tuned on validation rows by the same number of trials,
the likeliest settings win (in a vote the few likeliest), and a model with these settings is trained on the training
rows; of these, networks that do not vote hold a part out to stop by. Test rows are looked at in the end alone. Memories
stand beside the best of the others on the same splits.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ahop import datasets
from ahop._checks import choice
from ahop._progress import progress
from ahop_paper import lineage
from ahop_paper import report as reports
from ahop_paper._libraries import require
from ahop_paper.parallel import each
from ahop_paper.spread import beside, spread
from ahop_paper.table_models import LEARNERS, MEMBERS, MODELS, VOTES, chances, final, named, tune

DATA = ("adult", "bank", "vaccine", "purchase", "heart")
# What the paper's Table 3 prints, by its features.
PAPER = {
    "m-hop": (0.8080, 0.9085, 0.7975, 0.8822, 0.6325),
    "k2-hop": (0.8172, 0.9092, 0.7971, 0.8825, 0.6473),
    "a-hop": (0.8634, 0.9139, 0.8042, 0.9007, 0.7315),
    "extra trees": (0.8595, 0.9098, 0.7932, 0.8916, 0.7175),
    "random forest": (0.8592, 0.9132, 0.7918, 0.9002, 0.7254),
    "adaboost": (0.8597, 0.9094, 0.8011, 0.8865, 0.7294),
    "xgboost": (0.8640, 0.9152, 0.8034, 0.9032, 0.7370),
}
REFERENCE = "xgboost"
# In what the sittings of one run may differ.
FREE = ("data", "models", "runs", "seed", "device")
# A table, a model and a split.
Job = tuple[str, str, int]


@dataclass(frozen=True)
class Config:
    """What a run does.

    The splits are ``seed``, ``seed + 1`` and so on; 0 is the published one. ``most`` bounds the rows of a table, 0 for
    none; ``checked`` is the part of the training rows that trials are judged by.
    """

    data: tuple[str, ...] = DATA
    models: tuple[str, ...] = tuple(MODELS)
    features: str = "sound"
    trials: int = 12
    runs: int = 5
    seed: int = 0
    checked: float = 0.2
    most: int = 0
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        choice(self.features, "features", ("sound", "benchmark"))
        for name in self.data:
            choice(name, "data", DATA)
        for model in self.models:
            choice(model, "models", tuple(MODELS))
        if not self.data or not self.models:
            raise ValueError("data and models must name at least one each")
        for name in ("trials", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        require("pandas", *libraries(self.models))

    @property
    def splits(self) -> range:
        return range(self.seed, self.seed + self.runs)


@lineage.picks
def libraries(models: Sequence[str]) -> list[str]:
    """What has to be installed for these models."""
    return [library for model in models if (library := MODELS[model].library)]


def quick(config: Config) -> Config:
    """500 rows to learn from and 500 to test with, one trial, one split: to see that it works, not to be read."""
    return Config(**{**vars(config), "trials": 1, "runs": 1, "most": 500, "quick": True})


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """Tune, then train and test; what ``out`` already holds is not done again, and each part is kept when ready.

    None begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    head = reports.stamp("tabular", _settings(config), __file__, ["sklearn", *libraries(config.models)])
    journal = reports.Journal(out, head, FREE, partial(summary, config), partial(code_of, head["config"]))
    with reports.reading(out):
        before = [(_job(one), one) for one in journal.done]
        ranked = {job: one["ranked"] for job, one in before if "ranked" in one}
        tested = {job for job, one in before if "auc" in one}
        tried = {(*job, one["trial"]) for job, one in before if "trial" in one}
    jobs = [(name, model, split) for split in config.splits for name in config.data for model in config.models]
    searches = [job for job in dict.fromkeys(map(_search, jobs)) if job not in ranked]
    finals = [job for job in jobs if job not in tested]
    for name in dict.fromkeys(name for name, *_ in searches + finals):
        # Before the work, which would be in vain where one is not to be had.
        parts(name, config.seed, config)
    trials = [(*job, trial) for job in searches for trial in range(_trials(job[1], config))]
    trials = [trial for trial in trials if trial not in tried]
    with progress("tables", len(trials) + len(finals)) as bar:
        for found in each(attempt, [(*trial, config) for trial in trials], workers, until):
            job = _job(found)
            bar.advance(f"{job[0]}, {job[1]}, split {job[2]}")
            journal.add([found])
            own = [one for one in journal.done if "trial" in one and _job(one) == job]
            if len(own) == _trials(job[1], config):
                journal.add([best := likeliest(own)], instead_of=own)
                ranked[job] = best["ranked"]
        chosen = {job: MODELS[job[1]].chosen(ranked[_search(job)]) for job in jobs}
        timed = [(*job, chosen[job], chosen.get((job[0], REFERENCE, job[2])), config) for job in finals]
        for found in each(compare, timed, workers, until):
            bar.advance(f"{found['data']}, {found['model']}, split {found['split']}: {found['accuracy']:.4f}")
            journal.add([found])
    return journal.report()


def code_of(config: dict[str, Any], one: dict[str, Any]) -> str:
    """The fingerprint of what makes a row: a trial, the best of all, or a test, of a table and a model."""
    model, reference = named(one["model"]), named(REFERENCE)
    made_by = [model.settings, model.fit, model.grown, model.votes, parts, datasets.ENTRIES[one["data"]].load]
    if "auc" in one:
        # Times are ratios to those of the reference.
        return lineage.fingerprint(compare, *made_by, reference.fit)
    return lineage.fingerprint(attempt, *made_by, *([likeliest] if "ranked" in one else []))


def join(config: Config, paths: Sequence[str | os.PathLike[str]]) -> dict[str, Any]:
    """One report of what several machines did, each into a file of its own; nothing is run."""
    head, done = reports.join(paths, "tabular", _settings(config), FREE)
    ranked = {_job(one) for one in done if "ranked" in one}
    return summary(config, head, [one for one in done if "trial" not in one or _job(one) not in ranked])


def _settings(config: Config) -> dict[str, Any]:
    return {**asdict(config), "members": MEMBERS, "votes": VOTES}


def _job(done: dict[str, Any]) -> Job:
    return done["data"], done["model"], done["split"]


def _search(job: Job) -> Job:
    """Whose trials a model takes its settings from."""
    name, model, split = job
    return name, MODELS[model].search or model, split


def attempt(name: str, model: str, split: int, trial: int, config: Config) -> dict[str, Any]:
    """One model on one split of a table with a trial's settings, judged by validation rows."""
    from sklearn.model_selection import train_test_split

    frame, labels, train, _ = parts(name, split, config)
    learn, check = train_test_split(train, test_size=config.checked, stratify=labels[train], random_state=0)
    found = tune(model, frame, labels, learn, check, trial, config.device)
    return {"data": name, "model": model, "split": split, "trial": trial, **found}


def likeliest(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all trials of a model on a split, the settings in the order of how likely validation rows are under them."""
    tried = sorted(tried, key=lambda one: one["trial"])
    figures = [{"loss": round(one["loss"], 5), "accuracy": round(one["accuracy"], 4)} for one in tried]
    ranked = [one["settings"] for one in sorted(tried, key=lambda one: one["loss"])]
    where = {key: tried[0][key] for key in ("data", "model", "split")}
    return {**where, "ranked": ranked, "trials": figures}


def _trials(model: str, config: Config) -> int:
    return config.trials if MODELS[model].tuned else 1


def compare(
    name: str, model: str, split: int, chosen: dict[str, Any], reference: dict[str, Any] | None, config: Config
) -> dict[str, Any]:
    """Test figures of a model on one split, and its time beside the reference's, which is trained just before it.

    Args:
        name: The table.
        model: Its name.
        split: The split.
        chosen: The model's settings.
        reference: Those of the reference; None takes no times.
        config: What to run.
    """
    frame, labels, train, test = parts(name, split, config)
    # Reading a library takes a while, which is no part of a fit.
    from sklearn.metrics import roc_auc_score

    require(*LEARNERS, *libraries((model,) if reference is None else (model, REFERENCE)))

    def measure(model: str, settings: dict[str, Any]) -> tuple[np.ndarray, list[float]]:
        start = time.perf_counter()
        fitted = final(model, settings, frame.iloc[train], labels[train], split, config.device)
        middle = time.perf_counter()
        likely = chances(fitted, frame.iloc[test])
        return likely, [middle - start, time.perf_counter() - middle]

    before = measure(REFERENCE, reference)[1] if reference is not None and model != REFERENCE else None
    likely, own = measure(model, chosen)
    accuracy = float(((likely > 0.5) == labels[test]).mean())
    area = float(roc_auc_score(labels[test], likely))
    found = {"data": name, "model": model, "split": split, "rows": [len(train), len(test)]}
    found |= {"accuracy": round(accuracy, 4), "auc": round(area, 4)}
    if reference is not None:
        ratios = [one / other for one, other in zip(own, before or own, strict=True)]
        found |= {"fit": round(ratios[0], 2), "predict": round(ratios[1], 2)}
    return found


def parts(name: str, split: int, config: Config) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """The table, its labels, and the places of training and test rows: those published for split 0, else drawn anew.

    Args:
        name: The table.
        split: The split.
        config: What to run.
    """
    frame, labels, train = datasets.table(name, features=config.features)
    if split:
        from sklearn.model_selection import train_test_split

        drawn, _ = train_test_split(
            np.arange(len(labels)), train_size=int(train.sum()), stratify=labels, random_state=split
        )
        train = np.isin(np.arange(len(labels)), drawn)
    draw = np.random.default_rng(0)
    some = [draw.permutation(np.flatnonzero(which))[: config.most or None] for which in (train, ~train)]
    return frame, labels, np.sort(some[0]), np.sort(some[1])


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a table and model, memories beside the best of the others, and all that was run.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    rows = []
    for name in config.data:
        found: dict[str, dict[int, dict[str, Any]]] = {model: {} for model in config.models}
        for one in done:
            if one["data"] == name and one["model"] in found and one["split"] in config.splits and "auc" in one:
                found[one["model"]][one["split"]] = one
        for model, runs in found.items():
            if not runs:
                continue
            own = [runs[split] for split in sorted(runs)]
            row: dict[str, Any] = {"data": name, "model": model}
            row |= {what: spread([one[what] for one in own]) for what in ("accuracy", "auc")}
            timed = [one for one in own if "fit" in one]
            row |= {
                what: round(statistics.median(one[what] for one in timed), 1) for what in ("fit", "predict") if timed
            }
            if MODELS[model].ours:
                row["beside"] = {what: _beside(what, runs, found) for what in ("accuracy", "auc")}
            paper = PAPER.get(model) if config.features == "benchmark" else None
            rows.append({**row, "paper": paper[DATA.index(name)] if paper else None})
    return {**head, "rows": rows, "done": done}


def _beside(what: str, runs: dict[int, dict[str, Any]], found: dict[str, dict[int, dict[str, Any]]]) -> dict[str, Any]:
    """The best of the trees on the same splits, and the difference to it."""
    own = {split: runs[split][what] for split in sorted(runs)}
    others = {
        other: {split: one[what] for split, one in several.items()}
        for other, several in found.items()
        if not MODELS[other].ours
    }
    learned, tested = next(iter(runs.values()))["rows"]
    return beside(what, own, others, tested / learned)
