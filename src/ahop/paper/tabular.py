"""Classification of tables (Table 3 of the paper): Hopfield networks beside forests and boosted trees.

Each model is tuned on validation rows by the same number of trials, the likeliest settings win (for two models the few
likeliest, which vote), and models with these settings are trained on the training rows with every seed; of these,
networks that do not vote hold a part out to stop by. Test rows are looked at in the end alone.
"""

from __future__ import annotations

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
from ahop._extras import require
from ahop._progress import progress
from ahop.paper import report as reports
from ahop.paper.parallel import each
from ahop.paper.table_models import CONTESTANTS, LEARNERS, MEMBERS, VOTES, chances, final, tune

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


@dataclass(frozen=True)
class Config:
    """What a run does. ``most`` bounds the rows of a table, 0 for none; ``checked`` is the part of the training rows
    that trials are judged by."""

    data: tuple[str, ...] = DATA
    models: tuple[str, ...] = tuple(CONTESTANTS)
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
            choice(model, "models", tuple(CONTESTANTS))
        if not self.data or not self.models:
            raise ValueError("data and models must name at least one each")
        for name in ("trials", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        require("pandas", *libraries(self.models))


def libraries(models: Sequence[str]) -> list[str]:
    """What has to be installed for these models."""
    return [library for model in models if (library := CONTESTANTS[model].library)]


def quick(config: Config) -> Config:
    """500 rows to learn from and 500 to test with, one trial, one seed: to see that it works, not to be read."""
    return Config(**{**vars(config), "trials": 1, "runs": 1, "most": 500, "quick": True})


def run(config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1) -> dict[str, Any]:
    """Tune, then train and test; what ``out`` already holds is not done again, and each part is kept when ready."""
    fixed = {"members": MEMBERS, "votes": VOTES}
    head = reports.stamp("tabular", {**asdict(config), **fixed}, ["sklearn", *libraries(config.models)])
    free = ("data", "models", "runs", "seed", "device")
    journal = reports.Journal(out, head, free, partial(summary, config))
    with reports.reading(out):
        known = {(one["data"], one["model"], one["seed"]) for one in journal.done}
        chosen = {(one["data"], one["model"]): one["chosen"] for one in journal.done if one["seed"] is None}
    searches = [(name, model) for name in config.data for model in config.models if (name, model, None) not in known]
    seeds = range(config.seed, config.seed + config.runs)
    finals = [
        (name, seed, left)
        for seed in seeds
        for name in config.data
        if (left := [model for model in config.models if (name, model, seed) not in known])
    ]
    for name in dict.fromkeys([name for name, _ in searches] + [name for name, *_ in finals]):
        # Before the work, which would be in vain where one is not to be had.
        parts(name, config)
    trials = [(*job, trial, config) for job in searches for trial in range(_trials(job[1], config))]
    with progress("tables", len(trials) + len(finals)) as bar:
        tried: dict[tuple[str, str], list[dict[str, Any]]] = {job: [] for job in searches}
        for found in each(attempt, trials, workers):
            job = found["data"], found["model"]
            bar.advance(", ".join(job))
            tried[job].append(found)
            if len(tried[job]) == _trials(job[1], config):
                journal.add([found := likeliest(tried[job])])
                chosen[job] = found["chosen"]
        jobs = [
            (name, seed, {model: chosen[name, model] for model in left}, _reference(chosen, name, config), config)
            for name, seed, left in finals
        ]
        for several in each(compare, jobs, workers):
            bar.advance(f"{several[0]['data']}, seed {several[0]['seed']}")
            journal.add(several)
    return journal.report()


def _reference(chosen: dict[tuple[str, str], dict[str, Any]], name: str, config: Config) -> dict[str, Any] | None:
    """The settings of the model whose time others are measured by, if it takes part."""
    return chosen[name, REFERENCE] if REFERENCE in config.models else None


def attempt(name: str, model: str, trial: int, config: Config) -> dict[str, Any]:
    """One model on one table with a trial's settings, judged by validation rows."""
    from sklearn.model_selection import train_test_split

    frame, labels, train, _ = parts(name, config)
    # The seeds of a run are for the models that are tested; all share one search.
    learn, check = train_test_split(train, test_size=config.checked, stratify=labels[train], random_state=0)
    found = tune(model, frame, labels, learn, check, trial, config.device)
    return {"data": name, "model": model, "trial": trial, **found}


def likeliest(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all trials of a model on a table, the settings under which validation rows are likeliest."""
    tried = sorted(tried, key=lambda one: one["trial"])
    best, *others = sorted(tried, key=lambda one: one["loss"])
    votes = CONTESTANTS[best["model"]].votes
    chosen = {"vote": [one["settings"] for one in (best, *others)[:votes]]} if votes > 1 else best["settings"]
    figures = [{"loss": round(one["loss"], 5), "accuracy": round(one["accuracy"], 4)} for one in tried]
    return {"data": best["data"], "model": best["model"], "seed": None, "chosen": chosen, "trials": figures}


def _trials(model: str, config: Config) -> int:
    # The one without settings has nothing to be tuned.
    return 1 if model == "default" else config.trials


def compare(
    name: str, seed: int, chosen: dict[str, dict[str, Any]], reference: dict[str, Any] | None, config: Config
) -> list[dict[str, Any]]:
    """Test figures of every model on one table with one seed, one after another so that times can be compared."""
    frame, labels, train, test = parts(name, config)
    # Reading a library takes a while, which is no part of a fit.
    from sklearn.metrics import roc_auc_score

    require(*LEARNERS, *libraries((*chosen, REFERENCE) if reference is not None else tuple(chosen)))

    def measure(model: str, settings: dict[str, Any]) -> tuple[np.ndarray, list[float]]:
        start = time.perf_counter()
        fitted = final(model, settings, frame.iloc[train], labels[train], seed, config.device)
        middle = time.perf_counter()
        likely = chances(fitted, frame.iloc[test])
        return likely, [middle - start, time.perf_counter() - middle]

    found: list[dict[str, Any]] = []
    times: dict[str, list[float]] = {}
    if reference is not None and REFERENCE not in chosen:
        times[REFERENCE] = measure(REFERENCE, reference)[1]
    for model, settings in chosen.items():
        likely, times[model] = measure(model, settings)
        accuracy = float(((likely > 0.5) == labels[test]).mean())
        area = float(roc_auc_score(labels[test], likely))
        found.append(
            {"data": name, "model": model, "seed": seed, "accuracy": round(accuracy, 4), "auc": round(area, 4)}
        )
    if reference is not None:
        for one in found:
            ratios = [own / other for own, other in zip(times[one["model"]], times[REFERENCE], strict=True)]
            one |= {"fit": round(ratios[0], 2), "predict": round(ratios[1], 2)}
    return found


def parts(name: str, config: Config) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """The table, its labels, and the places of training and test rows."""
    frame, labels, train = datasets.table(name, features=config.features)
    draw = np.random.default_rng(0)
    some = [draw.permutation(np.flatnonzero(which))[: config.most or None] for which in (train, ~train)]
    return frame, labels, np.sort(some[0]), np.sort(some[1])


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a table and model, and all that was run."""
    rows = []
    seeds = range(config.seed, config.seed + config.runs)
    for name in config.data:
        for model in config.models:
            own = [one for one in done if (one["data"], one["model"]) == (name, model) and one["seed"] in seeds]
            if not own:
                continue
            row: dict[str, Any] = {"data": name, "model": model}
            row |= {what: reports.spread([one[what] for one in own]) for what in ("accuracy", "auc")}
            timed = [one for one in own if "fit" in one]
            row |= {
                what: round(statistics.median(one[what] for one in timed), 1) for what in ("fit", "predict") if timed
            }
            paper = PAPER.get(model) if config.features == "benchmark" else None
            rows.append({**row, "paper": paper[DATA.index(name)] if paper else None})
    return {**head, "rows": rows, "done": done}
