"""Multiple-instance learning: a label for a bag (Table 4 of the paper).

Every model is selected inside the training part alone, from the same candidates, and all share embedding and optimiser.
Mean, max and attention are plain; what Hopfield pooling reads out stands beside the largest values (``join_max``), as a
bag network of this library is meant to be used. The answer is the mean of a few networks that differ in their seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import QuantileTransformer
from torch import Tensor, nn

from ahop import datasets
from ahop._checks import choice
from ahop._progress import progress
from ahop.datasets.bags import FILES, Bags
from ahop.nn import AttentionPooling, BagNetwork, HopfieldPooling, MaxPooling, MeanPooling, pad
from ahop.paper import report as reports
from ahop.paper.parallel import each

DATA = tuple(FILES)
HEADS, SCALING = 4, 0.02


def _hopfield(**options: Any) -> Callable[[int], nn.Module]:
    """Readouts of the embedded instances themselves, one a head, which begin as their mean: a sharper choice has to be
    learned. With projected readouts or a usual beta, pooling 46 bags (UCSB) learns its training bags by heart.
    """

    def make(width: int) -> nn.Module:
        plain: dict[str, Any] = {
            "pattern_size": width,
            "pattern_projection_as_static": True,
            "disable_out_projection": True,
        }
        return HopfieldPooling(width, num_heads=HEADS, scaling=SCALING, **plain, **options)

    return make


POOLINGS: dict[str, Callable[[int], nn.Module]] = {
    "mean": MeanPooling,
    "max": MaxPooling,
    "monotone": MaxPooling,
    "attention": AttentionPooling,
    "m-hop": _hopfield(),
    "s-hop": _hopfield(separation="sparsemax"),
    "a-hop": _hopfield(similarity="adaptive"),
    "b-hop": _hopfield(similarity="likelihood"),
}
HOPFIELD = ("m-hop", "s-hop", "a-hop", "b-hop")
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


SCALINGS = ("standard", "quantile")
CANDIDATES = tuple(Candidate(scaling, width) for scaling in SCALINGS for width in (64, 128))


@dataclass(frozen=True)
class Config:
    """What a run does. Of a bag with more than ``most`` instances, a step of training sees so many, drawn anew."""

    data: tuple[str, ...] = DATA
    models: tuple[str, ...] = tuple(model for model in POOLINGS if model != "monotone")
    runs: int = 5
    seed: int = 0
    folds: int = 5
    inner: int = 2
    refits: int = 3
    epochs: int = 30
    batch: int = 32
    rate: float = 2e-3
    decay: float = 0.01
    dropout: float = 0.3
    most: int = 128
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
    return Config(**{**vars(config), "runs": 1, "folds": 2, "inner": 1, "refits": 1, "epochs": 5, "quick": True})


def run(config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1) -> dict[str, Any]:
    """Every model on every data set; what ``out`` already holds is not done again, and each part is kept when ready."""
    fixed = {"candidates": CANDIDATES, "hopfield": {"heads": HEADS, "scaling": SCALING, "join_max": True}}
    head = reports.stamp("mil", {**asdict(config), **fixed})
    head, done = reports.resume(out, head, free=("data", "models", "runs", "seed"))
    with reports.reading(out):
        known = {(one["data"], one["model"], one["seed"]) for one in done}
        result = summary(config, head, done)
    seeds = range(config.seed, config.seed + config.runs)
    jobs = [(name, model, seed) for seed in seeds for name in config.data for model in config.models]
    left = [job for job in jobs if job not in known]
    for name in dict.fromkeys(name for name, *_ in left):
        # Before the work, which would be in vain where one is not to be had.
        datasets.load(name)
    with progress("bags", len(left)) as bar:
        for one in each(cross_validate, [(*job, config) for job in left], workers):
            done.append(one)
            bar.advance(f"{one['data']}, {one['model']}, seed {one['seed']}: {one['auc']:.3f}")
            result = summary(config, head, done)
            if out:
                reports.write(result, out)
    return result


def cross_validate(name: str, model: str, seed: int, config: Config) -> dict[str, Any]:
    """The mean area under the curve over the outer folds, for one data set, model and seed."""
    data: Bags = datasets.load(name)
    areas, chosen = [], []
    folds = StratifiedKFold(config.folds, shuffle=True, random_state=seed)
    for train, test in folds.split(data.labels, data.labels):
        best = select(data, train, model, seed, config)
        bags = scale(data.bags, train, best.scaling)
        scores = [
            predict(fit(bags, data.labels, train, model, best, 1000 * seed + repeat, config), bags, test)
            for repeat in range(config.refits)
        ]
        areas.append(float(roc_auc_score(data.labels[test], torch.stack(scores).mean(0))))
        chosen.append(list(best))
    folds_areas = [round(area, 4) for area in areas]
    return {
        "data": name,
        "model": model,
        "seed": seed,
        "auc": float(np.mean(areas)),
        "folds": folds_areas,
        "chosen": chosen,
    }


def select(data: Bags, train: np.ndarray, model: str, seed: int, config: Config) -> Candidate:
    """The candidate that does best on bags held out of the training part, which is all that is looked at."""
    parts = StratifiedKFold(4, shuffle=True, random_state=seed)
    splits = list(parts.split(train, data.labels[train]))[: config.inner]

    areas = dict.fromkeys(CANDIDATES, 0.0)
    for learn, check in splits:
        scaled = {scaling: scale(data.bags, train[learn], scaling) for scaling in SCALINGS}
        for candidate in CANDIDATES:
            bags = scaled[candidate.scaling]
            network = fit(bags, data.labels, train[learn], model, candidate, seed, config)
            areas[candidate] += float(roc_auc_score(data.labels[train[check]], predict(network, bags, train[check])))
    return max(CANDIDATES, key=areas.__getitem__)


def scale(bags: list[Tensor], train: np.ndarray, scaling: str) -> tuple[Tensor, Tensor]:
    """All bags, padded, by a scaling learned on the instances of the training bags."""
    learn, sizes = torch.cat([bags[index] for index in train]), [len(bag) for bag in bags]
    rows = torch.cat(bags)
    if scaling == "quantile":
        count = min(100, len(learn))
        by_rank = QuantileTransformer(n_quantiles=count, output_distribution="normal", random_state=0)
        by_rank.fit(learn.numpy())
        rows = torch.from_numpy(by_rank.transform(rows.numpy())).float().clamp(-3, 3)
    else:
        mean, std = learn.mean(0), learn.std(0)
        # A feature that never varies says nothing.
        rows = ((rows - mean) / torch.where(std > 1e-6, std, torch.inf)).clamp(-5, 5)
    return pad(rows.split(sizes))


def fit(
    bags: tuple[Tensor, Tensor],
    labels: Tensor,
    train: np.ndarray,
    model: str,
    candidate: Candidate,
    seed: int,
    config: Config,
) -> BagNetwork:
    """A network trained on some of the bags: AdamW, one cycle of the learning rate, gradients clipped at 1."""
    torch.manual_seed(seed)
    instances, padding, targets = bags[0][train], bags[1][train], labels[train].float()
    network = BagNetwork(
        instances.shape[-1],
        POOLINGS[model](candidate.width),
        width=candidate.width,
        dropout=config.dropout,
        join_max=model in HOPFIELD,
        monotone=model == "monotone",
    )
    optimizer = torch.optim.AdamW(network.parameters(), config.rate, weight_decay=config.decay)
    steps = config.epochs * -(-len(targets) // config.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, config.rate, total_steps=steps)
    for _ in range(config.epochs):
        for batch in torch.randperm(len(targets)).split(config.batch):
            logits = network(*draw(instances[batch], padding[batch], config.most)).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, targets[batch])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return network.eval()


def draw(instances: Tensor, padding: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Of each bag at most so many instances, at random, and no more padding than it takes."""
    longest = int((~padding).sum(1).max())
    if longest <= most:
        return instances[:, :longest], padding[:, :longest]
    # Padding comes last in a random order of the rest.
    chosen = torch.rand(padding.shape).masked_fill(padding, -1.0).topk(most, dim=1).indices
    rows = torch.arange(len(padding))[:, None]
    return instances[rows, chosen], padding[rows, chosen]


@torch.no_grad()
def predict(network: BagNetwork, bags: tuple[Tensor, Tensor], chosen: np.ndarray) -> Tensor:
    """A logit for each of the chosen bags."""
    return network(bags[0][chosen], bags[1][chosen]).squeeze(1)


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a data set and model, and all that was run."""
    rows = []
    for name in config.data:
        for model in config.models:
            found = {one["seed"]: one["auc"] for one in done if (one["data"], one["model"]) == (name, model)}
            own = [(seed, found[seed]) for seed in range(config.seed, config.seed + config.runs) if seed in found]
            if own:
                spread = reports.spread([area for _, area in own])
                rows.append({"data": name, "model": model, "auc": spread, "paper": PAPER.get(name, {}).get(model)})
    return {**head, "rows": rows, "done": done}


CHECKS: dict[str, Callable[..., Bags]] = {"standard": datasets.standard_check, "frequency": datasets.frequency_check}


def run_checks(models: tuple[str, ...], runs: int, seed: int = 0) -> dict[str, Any]:
    """Areas under the curve on the training and the test bags of the checks of Raff & Holt (2023).

    In the test what speaks for a label has changed, and what makes it has not: a model that learned what makes a label
    keeps its area, one that learned what goes with it falls below one half.
    """
    head = reports.stamp("mil-checks", {"models": models, "runs": runs, "seed": seed, "bags": 400})
    config = Config(models=models, runs=runs, seed=seed, epochs=60, dropout=0.0)
    rows, everything = [], np.arange(400)
    with progress("checks", len(CHECKS) * len(models) * runs) as bar:
        for name, check in CHECKS.items():
            for model in models:
                areas = []
                for run in range(seed, seed + runs):
                    train, test = (check(400, train=part, seed=2 * run + (not part)) for part in (True, False))
                    network = fit(pad(train.bags), train.labels, everything, model, CANDIDATES[0], run, config)
                    scores = [(part.labels, predict(network, pad(part.bags), everything)) for part in (train, test)]
                    areas.append([float(roc_auc_score(*pair)) for pair in scores])
                    bar.advance(f"{name}, {model}")
                learned, held = (reports.spread(column) for column in zip(*areas, strict=True))
                rows.append({"check": name, "model": model, "train": learned, "test": held})
    return {**head, "rows": rows}
