"""Multiple-instance learning: a label for a bag (Table 4 of the paper).

Every model is a :class:`~ahop.estimators.HopfieldBagClassifier` as it ships, but for the pooling. All are selected
inside the training part alone, from the same candidates. What Hopfield pooling reads out stands beside the largest
values, as is the estimator's default; mean and attention are there with the largest values and without. The answer is
the mean of a few networks that differ in their seed. Hopfield poolings stand beside the best of the others on the same
folds.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ahop import datasets
from ahop._checks import choice
from ahop._progress import progress
from ahop._registry import Registry
from ahop.datasets.bags import FILES, Bags
from ahop_paper import lineage
from ahop_paper import report as reports
from ahop_paper.parallel import each
from ahop_paper.spread import beside, spread

if TYPE_CHECKING:
    from ahop.estimators import HopfieldBagClassifier

DATA = tuple(FILES)
# The estimator's settings that make a model. They join one by one, for one more to change no row of the others.
POOLINGS: Registry[dict[str, Any]] = Registry("pooling")
_EACH: dict[str, dict[str, Any]] = {
    "mean": {"pooling": "mean", "join_max": False},
    "mean and max": {"pooling": "mean"},
    "max": {"pooling": "max"},
    "monotone": {"monotone": True},
    "attention": {"pooling": "attention", "num_heads": 1, "join_max": False},
    "attention and max": {"pooling": "attention", "num_heads": 1},
    "m-hop": {"similarity": "dot"},
    "s-hop": {"similarity": "dot", "separation": "sparsemax"},
    "a-hop": {"similarity": "adaptive"},
    "b-hop": {"similarity": "likelihood"},
}
for _name, _settings in _EACH.items():
    POOLINGS.add(_name, _settings)
OURS = ("m-hop", "s-hop", "a-hop", "b-hop")
# Mean area under the curve in the paper's Table 4.
PAPER = {
    "tiger": {"m-hop": 0.8924, "s-hop": 0.8923, "a-hop": 0.9030},
    "fox": {"m-hop": 0.6327, "s-hop": 0.6433, "a-hop": 0.6753},
    "elephant": {"m-hop": 0.9344, "s-hop": 0.9365, "a-hop": 0.9451},
    "ucsb": {"m-hop": 0.8815, "s-hop": 0.8794, "a-hop": 0.8935},
}


class Candidate(NamedTuple):
    """What is selected inside the training part, for every model from the same list."""

    scaling: str
    width: int


CANDIDATES = tuple(Candidate(scaling, width) for scaling in ("standard", "quantile") for width in (64, 128))


@dataclass(frozen=True)
class Config:
    """What a run does; ``settings`` are those of the estimator that are not its defaults, the same for all models."""

    data: tuple[str, ...] = DATA
    models: tuple[str, ...] = tuple(name for name, own in POOLINGS.items() if not own.get("monotone"))
    runs: int = 5
    seed: int = 0
    folds: int = 5
    inner: int = 2
    refits: int = 3
    settings: dict[str, Any] = field(default_factory=dict)
    quick: bool = False

    def __post_init__(self) -> None:
        reports.require_seed(self.seed)
        for name in self.data:
            choice(name, "data", DATA)
        for model in self.models:
            choice(model, "models", tuple(POOLINGS))
        if not self.data or not self.models:
            raise ValueError("data and models must name at least one each")
        if self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs}")


def quick(config: Config) -> Config:
    """The same at a size that ends within a minute or two on two cores; the figures are those of little training."""
    small = {"runs": 1, "folds": 2, "inner": 1, "refits": 1, "settings": {"epochs": 5}}
    return Config(**{**vars(config), **small, "quick": True})


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """Every model on every data set; what ``out`` already holds is not done again, and each part is kept when ready.

    None begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    from ahop.estimators import HopfieldBagClassifier

    estimator = HopfieldBagClassifier(**config.settings).get_params()
    fixed = {"candidates": CANDIDATES, "poolings": POOLINGS, "estimator": estimator}
    head = reports.stamp("mil", {**asdict(config), **fixed}, __file__)
    # Poolings may join later.
    free = ("data", "models", "runs", "seed", "poolings")
    journal = reports.Journal(out, head, free, partial(summary, config), partial(code_of, head["config"]))
    with reports.reading(out):
        known = {(one["data"], one["model"], one["seed"]) for one in journal.done}
    seeds = range(config.seed, config.seed + config.runs)
    jobs = [(name, model, seed) for seed in seeds for name in config.data for model in config.models]
    left = [job for job in jobs if job not in known]
    for name in dict.fromkeys(name for name, *_ in left):
        # Before the work, which would be in vain where one is not to be had.
        datasets.load(name)
    with progress("bags", len(left)) as bar:
        for one in each(cross_validate, [(*job, config) for job in left], workers, until):
            journal.add([one])
            bar.advance(f"{one['data']}, {one['model']}, seed {one['seed']}: {one['auc']:.3f}")
    return journal.report()


def code_of(config: dict[str, Any], one: dict[str, Any]) -> str:
    """The fingerprint of what makes a row: measure, bags and pooling."""
    if "check" in one:
        return lineage.fingerprint(check, CHECKS[one["check"]], POOLINGS[one["model"]])
    return lineage.fingerprint(cross_validate, datasets.ENTRIES[one["data"]].load, POOLINGS[one["model"]])


def cross_validate(name: str, model: str, seed: int, config: Config) -> dict[str, Any]:
    """The mean area under the curve over the outer folds, for one data set, model and seed."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    bags, labels = _arrays(datasets.load(name))
    areas, chosen = [], []
    folds = StratifiedKFold(config.folds, shuffle=True, random_state=seed)
    for train, test in folds.split(labels, labels):
        best = select(bags, labels, train, model, seed, config)
        networks = [classifier(model, best, 1000 * seed + repeat, config) for repeat in range(config.refits)]
        odds = [log_odds(network, bags, labels, train, test) for network in networks]
        areas.append(float(roc_auc_score(labels[test], np.mean(odds, 0))))
        chosen.append(list(best))
    return {
        "data": name,
        "model": model,
        "seed": seed,
        "auc": float(np.mean(areas)),
        "folds": [round(area, 4) for area in areas],
        "chosen": chosen,
    }


def select(
    bags: Sequence[np.ndarray], labels: np.ndarray, train: np.ndarray, model: str, seed: int, config: Config
) -> Candidate:
    """The candidate that does best on bags held out of the training part, which is all that is looked at.

    Args:
        bags: Arrays ``(n_i, d)``.
        labels: One a bag.
        train: Indices of the training bags.
        model: The pooling's name.
        seed: Seed of the folds and of training.
        config: What to run.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    parts = StratifiedKFold(4, shuffle=True, random_state=seed)
    areas = dict.fromkeys(CANDIDATES, 0.0)
    for learn, check in list(parts.split(train, labels[train]))[: config.inner]:
        for candidate in CANDIDATES:
            network = classifier(model, candidate, seed, config)
            odds = log_odds(network, bags, labels, train[learn], train[check])
            areas[candidate] += float(roc_auc_score(labels[train[check]], odds))
    return max(CANDIDATES, key=areas.__getitem__)


def classifier(model: str, candidate: Candidate, seed: int, config: Config) -> HopfieldBagClassifier:
    """The estimator for a model; on the processor, since networks this small gain nothing by a GPU."""
    from ahop.estimators import HopfieldBagClassifier

    return HopfieldBagClassifier(
        **{**POOLINGS[model], **candidate._asdict(), **config.settings}, random_state=seed, device="cpu"
    )


def log_odds(
    network: HopfieldBagClassifier,
    bags: Sequence[np.ndarray],
    labels: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
) -> np.ndarray:
    """What a network that learns from some bags says of others: the log odds that they are positive."""
    network.fit([bags[index] for index in train], labels[train])
    return network.decision_function([bags[index] for index in test])


def _arrays(data: Bags) -> tuple[list[np.ndarray], np.ndarray]:
    return [bag.numpy() for bag in data.bags], data.labels.numpy()


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a data set and model, Hopfield poolings beside the best other, and all that was run.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    rows = []
    seeds = range(config.seed, config.seed + config.runs)
    for name in config.data:
        found = {
            model: {one["seed"]: one for one in done if (one["data"], one["model"]) == (name, model)}
            for model in config.models
        }
        own = {model: [runs[seed] for seed in seeds if seed in runs] for model, runs in found.items()}
        for model in filter(own.get, own):
            row = {"data": name, "model": model, "auc": spread([one["auc"] for one in own[model]])}
            if model in OURS:
                others = {other: _folds(runs) for other, runs in own.items() if other not in OURS}
                # So many bags are scored for one that is learned from.
                row |= beside("auc", _folds(own[model]), others, 1 / (config.folds - 1))
            rows.append({**row, "paper": PAPER.get(name, {}).get(model)})
    return {**head, "rows": rows, "done": done}


def _folds(runs: list[dict[str, Any]]) -> dict[tuple[int, int], float]:
    """The area on each fold of each seed, which all models share."""
    return {(one["seed"], place): area for one in runs for place, area in enumerate(one["folds"])}


CHECKS: dict[str, Callable[..., Bags]] = {"standard": datasets.standard_check, "frequency": datasets.frequency_check}
CHECK_SETTINGS: dict[str, Any] = {"epochs": 60, "dropout": 0.0, "scaling": None}


def run_checks(
    models: tuple[str, ...],
    runs: int,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    workers: int = 1,
    until: float = math.inf,
) -> dict[str, Any]:
    """Areas under the curve on the training and the test bags of the checks of Raff & Holt (2023).

    In the test what speaks for a label has changed, and what makes it has not: a model that learned what makes a label
    keeps its area, one that learned what goes with it falls below one half. Resumed like :func:`run`.

    Args:
        models: Names of poolings.
        runs: The number of seeds.
        seed: The first of them.
        out, workers, until: As in :func:`run`.
    """
    fixed = {"bags": 400, "poolings": POOLINGS, "settings": CHECK_SETTINGS}
    head = reports.stamp("mil-checks", {"models": models, "runs": runs, "seed": seed, **fixed}, __file__)
    seeds = range(seed, seed + runs)
    whole = partial(_summary_of_checks, models, seeds)
    journal = reports.Journal(out, head, ("models", "runs", "seed"), whole, partial(code_of, head["config"]))
    with reports.reading(out):
        known = {(one["check"], one["model"], one["seed"]) for one in journal.done}
    jobs = [(name, model, number) for name in CHECKS for model in models for number in seeds]
    left = [job for job in jobs if job not in known]
    with progress("checks", len(left)) as bar:
        for one in each(check, left, workers, until):
            journal.add([one])
            bar.advance(f"{one['check']}, {one['model']}")
    return journal.report()


@lineage.picks
def made_for(name: str) -> Callable[..., Bags]:
    """What makes the bags of a check."""
    return CHECKS[name]


def check(name: str, model: str, seed: int) -> dict[str, Any]:
    """The areas of one model in one check.

    Args:
        name: The check.
        model: The pooling's name.
        seed: Seed of bags and of training.
    """
    train, test = (made_for(name)(400, train=part, seed=2 * seed + (not part)) for part in (True, False))
    network = classifier(model, CANDIDATES[0], seed, Config(settings=CHECK_SETTINGS)).fit(*_arrays(train))
    learned, held = (_area(network, *_arrays(part)) for part in (train, test))
    return {"check": name, "model": model, "seed": seed, "train": learned, "test": held}


def _summary_of_checks(
    models: tuple[str, ...], seeds: range, head: dict[str, Any], done: list[dict[str, Any]]
) -> dict[str, Any]:
    rows = []
    for name in CHECKS:
        for model in models:
            own = [one for one in done if (one["check"], one["model"]) == (name, model) and one["seed"] in seeds]
            if own:
                own.sort(key=lambda one: one["seed"])
                spreads = {part: spread([one[part] for one in own]) for part in ("train", "test")}
                rows.append({"check": name, "model": model, **spreads})
    return {**head, "rows": rows, "done": done}


def _area(network: HopfieldBagClassifier, bags: list[np.ndarray], labels: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, network.decision_function(bags)))
