"""Image classification: the paper's protocol (Table 4), and a small transformer whose attention is a Hopfield layer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ahop import datasets
from ahop._checks import choice
from ahop._cycle import cycle
from ahop._hardware import multiplies
from ahop._progress import progress
from ahop.datasets import Photos
from ahop_paper import lineage, vision
from ahop_paper import report as reports
from ahop_paper.muon import Muon
from ahop_paper.parallel import each
from ahop_paper.spread import spread

PROTOCOLS = ("transformer", "published")
DATA = ("cifar10", "cifar100", "tiny-imagenet")
# How many training images there are to have; a compact copy may hold fewer.
PUBLISHED = {"cifar10": 50_000, "cifar100": 50_000, "tiny-imagenet": 100_000}
# Accuracy in the paper's Table 4.
PAPER = {
    "cifar10": {"m-hop": 0.5123, "k-hop": 0.5489, "a-hop": 0.5637},
    "cifar100": {"m-hop": 0.2464, "k-hop": 0.2877, "a-hop": 0.2904},
    "tiny-imagenet": {"m-hop": 0.1095, "k-hop": 0.1164, "a-hop": 0.1213},
}


@dataclass(frozen=True)
class Config:
    """What a run does. ``epochs`` of 0 stands for the protocol's own: 100, or 25 (50 for Tiny ImageNet)."""

    protocol: str = "transformer"
    data: str = "cifar10"
    models: tuple[str, ...] = ("m-hop", "s-hop", "k-hop", "a-hop")
    epochs: int = 0
    runs: int = 3
    seed: int = 0
    holdout: int = 0
    subset: int = 0
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        choice(self.protocol, "protocol", PROTOCOLS)
        choice(self.data, "data", DATA)
        for model in self.models:
            choice(model, "models", vision.MODELS)
        for name in ("epochs", "seed", "holdout", "subset"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not self.models:
            raise ValueError("models must name at least one")
        if self.runs < 1:
            raise ValueError(f"runs must be at least 1, got {self.runs}")

    @property
    def passes(self) -> int:
        """How often each training image is seen."""
        usual = 100 if self.protocol == "transformer" else 50 if self.data == "tiny-imagenet" else 25
        return self.epochs or usual


def quick(config: Config) -> Config:
    """A few images, a few times: to see that it runs. Nothing is to be read from the figures."""
    return Config(**{**vars(config), "subset": 64, "epochs": 2, "runs": 1, "quick": True})


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, the same for every model of a protocol."""

    batch: int
    rate: float
    decay: float
    warmup: float
    smoothing: float
    varied: bool


RECIPES = {
    "transformer": Recipe(batch=512, rate=2e-3, decay=0.05, warmup=0.05, smoothing=0.1, varied=True),
    "published": Recipe(batch=128, rate=1e-3, decay=0.0, warmup=0.0, smoothing=0.0, varied=False),
}


def run(config: Config, out: Path | None = None, workers: int = 1, until: float = math.inf) -> dict[str, Any]:
    """Train and test every model with every seed; what ``out`` already holds is not done again.

    Processes may share a GPU, which a small network does not fill. No training begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    head = reports.stamp("images", {**asdict(config), **asdict(RECIPES[config.protocol])}, __file__)
    code = partial(code_of, head["config"])
    journal = reports.Journal(out, head, ("models", "runs", "seed"), partial(summary, config), code)
    with reports.reading(out):
        known = {(one["model"], one["seed"]) for one in journal.done}
    train_images = len(part(datasets.load(config.data), config).train)
    journal.head["images"] = {"train": train_images, "published": PUBLISHED[config.data]}
    jobs = [(model, seed) for seed in range(config.seed, config.seed + config.runs) for model in config.models]
    left = [job for job in jobs if job not in known]
    # One process shows each epoch itself; of several, only what they finish can be seen.
    alone = workers == 1
    with progress("images", len(left), show=not alone) as bar:
        for one in each(train, [(*job, config, alone) for job in left], workers, until):
            bar.advance(f"{one['model']}, seed {one['seed']}: {one['accuracy']:.4f}")
            journal.add([one])
    return journal.report()


def code_of(config: dict[str, Any], one: dict[str, Any]) -> str:
    """The fingerprint of what makes a row: training, images and network."""
    return lineage.fingerprint(train, datasets.ENTRIES[config["data"]].load, one["model"])


def part(photos: Photos, config: Config) -> Photos:
    """The images that a configuration works with: some of them, and of the training images some to test with."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(photos.train), generator=generator)
    if config.subset:
        order = order[: config.subset + config.holdout]
    train, held = order[config.holdout :], order[: config.holdout]
    if not len(train):
        raise ValueError(
            f"holdout must be less than {len(photos.train)}, the number of training images; got {config.holdout}"
        )
    test, labels = photos.test, photos.test_labels
    if config.holdout:
        test, labels = photos.train[held], photos.train_labels[held]
    elif config.subset:
        test, labels = test[: config.subset], labels[: config.subset]
    return Photos(photos.train[train], photos.train_labels[train], test, labels, photos.names)


def train(model: str, seed: int, config: Config, show: bool = True) -> dict[str, Any]:
    """One network, trained and tested.

    Args:
        model: The layer's name.
        seed: Seed of initial weights and batches.
        config: What to run.
        show: Whether to show each epoch.
    """
    photos = part(datasets.load(config.data), config)
    torch.manual_seed(seed)
    recipe, device = RECIPES[config.protocol], torch.device(config.device)
    network = build(model, config, photos).to(device)
    images, labels = photos.train.to(device), photos.train_labels.to(device)
    pixels = images.float() / 255
    spread = (pixels.mean((0, 1, 2)), pixels.std((0, 1, 2)))
    del pixels
    if kernels := network.kernels():
        part_patterns(network, vision.prepare(images[: recipe.batch], *spread))
        # As published, kernels rest after their own stage. With one token they would learn from rounding errors alone.
        for kernel in kernels:
            kernel.requires_grad_(config.protocol != "published")
    step = Step(network, recipe, images, labels, spread, len(photos.names))
    with progress(f"images: {model}, seed {seed}", config.passes, show=show) as bar:
        for epoch in range(config.passes):
            order = torch.randperm(len(images), device=device)
            # Whole batches, so that one recording serves all steps; the few left over come in other epochs.
            batches = order.split(recipe.batch)[: max(1, len(images) // recipe.batch)]
            for place, batch in enumerate(batches):
                step(batch, schedule((epoch + place / len(batches)) / config.passes, recipe))
            bar.advance(f"loss {float(step.loss):.2f}")
    accuracy = test(network, photos, spread, device)
    count = sum(p.numel() for p in network.parameters() if p.requires_grad)
    figures = {"accuracy": round(accuracy, 4), "loss": round(float(step.loss), 4), "parameters": count}
    return {"model": model, "seed": seed, **figures}


def build(model: str, config: Config, photos: Photos) -> vision.Network:
    """The network of a protocol for images of this size.

    Args:
        model: The layer's name.
        config: What to run.
        photos: The images.
    """
    size, classes = photos.train.shape[1], len(photos.names)
    if config.protocol == "transformer":
        return vision.ImageTransformer(model, size, classes)
    return vision.PublishedNetwork(model, size, classes)


def part_patterns(network: vision.Network, images: Tensor, steps: int = 50) -> None:
    """The first stage of a k-hop: its kernels learn to move stored patterns apart, and nothing else learns."""
    kernels = network.kernels()
    optimizer = torch.optim.SGD(kernels, lr=0.1)
    for _ in range(steps):
        loss = network.separation_loss(images)
        optimizer.zero_grad()
        loss.backward(inputs=kernels)
        optimizer.step()


def schedule(done: float, recipe: Recipe) -> float:
    """The learning rate after a part of the training: a rise, then half a cosine."""
    return recipe.rate * cycle(done, 1, recipe.warmup, first=1e-3)


class Step:
    """One step of training. On a GPU it is recorded once and replayed, since a small network waits for its processor.

    The transformer's matrices are trained by Muon and all else by AdamW; the published network by Adam, as published.
    """

    def __init__(
        self,
        network: vision.Network,
        recipe: Recipe,
        images: Tensor,
        labels: Tensor,
        spread: tuple[Tensor, Tensor],
        classes: int,
    ) -> None:
        self.network, self.recipe, self.images, self.spread = network, recipe, images, spread
        self.targets = functional.one_hot(labels, classes).float()
        self.graphic = images.is_cuda
        self.half = _in_half(images.device)
        self.rate = torch.tensor(0.0, device=images.device)
        matrices = [value for value in network.inner_matrices() if value.requires_grad]
        known = {id(value) for value in matrices}
        others = [value for value in network.parameters() if value.requires_grad and id(value) not in known]
        self.muon = Muon(matrices, self.rate, recipe.decay)
        self.adam = torch.optim.AdamW(
            others, lr=self.rate, weight_decay=recipe.decay, capturable=self.graphic, fused=self.graphic or None
        )
        self.parameters = [*matrices, *others]
        self.model = torch.compile(network) if self.graphic else network
        self.batch: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None
        self.loss = torch.tensor(0.0)

    def __call__(self, batch: Tensor, rate: float) -> None:
        self.network.train()
        self.rate.fill_(rate)
        if not self.graphic:
            self.batch = batch
            self._work()
            return
        if self.batch is None or self.graph is None:
            self._record(batch)
        assert self.batch is not None and self.graph is not None
        self.batch.copy_(batch)
        self.graph.replay()

    def _record(self, batch: Tensor) -> None:
        self.batch = batch.clone()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        # A few steps to compile all that must be, at a rate that moves no weight; momentum sees one batch more often.
        rate = self.rate.clone()
        self.rate.zero_()
        with torch.cuda.stream(aside):
            for _ in range(3):
                self._work()
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._work()
        self.rate.copy_(rate)

    def _work(self) -> None:
        images = vision.prepare(self.images[self.batch], *self.spread)
        targets = self.targets[self.batch]
        if self.recipe.varied:
            images, targets = vision.blend(vision.vary(images), targets)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.half):
            logits = self.model(images)
        loss = functional.cross_entropy(logits.float(), targets, label_smoothing=self.recipe.smoothing)
        for parameter in self.parameters:
            parameter.grad = None
        loss.backward()
        self.loss = loss.detach()
        self.muon.step()
        self.adam.step()


@torch.no_grad()
def test(network: nn.Module, photos: Photos, spread: tuple[Tensor, Tensor], device: torch.device) -> float:
    """The share of test images whose class is found.

    Args:
        network: What classifies.
        photos: The images.
        spread: Mean and standard deviation of each channel.
        device: Where the network is.
    """
    network.eval()
    right = 0
    for images, labels in zip(photos.test.split(1000), photos.test_labels.split(1000), strict=True):
        with torch.autocast(device.type, torch.bfloat16, enabled=_in_half(device)):
            logits = network(vision.prepare(images.to(device), *spread))
        right += int((logits.argmax(-1).cpu() == labels).sum())
    return right / len(photos.test)


def _in_half(device: torch.device) -> bool:
    # Networks this small gain nothing by it on a processor.
    return device.type == "cuda" and multiplies(torch.bfloat16, device)


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row a model, and all that was run.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    rows = []
    for model in config.models:
        seeds = range(config.seed, config.seed + config.runs)
        own = [one for one in done if one["model"] == model and one["seed"] in seeds]
        # Of several processes, the first to end need not have the first seed; figures are compared seed by seed.
        own.sort(key=lambda one: one["seed"])
        if own:
            paper = PAPER[config.data].get(model) if config.protocol == "published" else None
            figures = spread([one["accuracy"] for one in own])
            rows.append({"model": model, "accuracy": figures, "parameters": own[0]["parameters"], "paper": paper})
    return {**head, "rows": rows, "done": done}
