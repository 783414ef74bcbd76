"""Memory retrieval under mixed corruption: Figure 3 and Table 2 of the paper."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from ahop import datasets
from ahop._checks import choice
from ahop._progress import progress
from ahop._registry import Registry
from ahop.memories import AdaptiveHopfield, Oracle, UniversalHopfield, create
from ahop.memories.base import AssociativeMemory
from ahop.metrics import evaluate
from ahop.paper import plots
from ahop.paper import report as reports
from ahop.similarity.perceptron import Perceptron
from ahop.variants import Mixed, Samples, Variant
from ahop.variants.mixed import Preset


class Setting(NamedTuple):
    """Intensities of the mixed corruption."""

    mask: float
    noise: float
    bias: float

    def __str__(self) -> str:
        if self.mask == self.noise == self.bias:
            return f"difficulty {self.mask:g}"
        parts = [f"{name} {value:g}" for name, value in self._asdict().items() if value]
        return " + ".join(parts) or "clean"


@dataclass(frozen=True)
class Config:
    """What a run of the benchmark does; the defaults are the paper's."""

    models: tuple[str, ...] = field(default_factory=lambda: tuple(name for name in MODELS if name != "oracle"))
    data: str = "synthetic"
    patterns: int = 2048
    dim: int = 64
    preset: Preset = "published"
    settings: tuple[Setting, ...] = (Setting(0.4, 0.4, 0.4), Setting(0.5, 0.5, 0.5))
    samples: int = 512
    queries: int = 1000
    runs: int = 5
    seed: int = 0
    device: str = "cpu"
    quick: bool = False

    def __post_init__(self) -> None:
        require_models(self.models)
        reports.require_seed(self.seed)
        choice(self.data, "data", ("synthetic", *datasets.names_of(datasets.Dataset)))
        for name in ("patterns", "dim", "samples", "queries", "runs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not self.settings:
            raise ValueError("settings must be at least one, got none")
        for setting in self.settings:
            # It says what it cannot be.
            Mixed(*setting, preset=self.preset)


def quick(config: Config) -> Config:
    """The same benchmark at a size that ends within a minute or two on two cores."""
    return Config(
        **{**vars(config), "patterns": min(config.patterns, 512), "samples": min(config.samples, 256)}
        | {"queries": min(config.queries, 200), "runs": min(config.runs, 2), "quick": True}
    )


# Accuracy and error in the paper's Table 2, for N = 2048 (and d = 64 for synthetic patterns), difficulty alike in all.
PAPER: dict[tuple[str, float], dict[str, tuple[float, float]]] = {
    ("synthetic", 0.4): {
        "m-hop": (0.520, 0.176),
        "u-hop": (0.260, 0.417),
        "k-hop": (0.487, 0.295),
        "k2-hop": (0.521, 0.176),
        "a-hop": (0.724, 0.106),
    },
    ("synthetic", 0.5): {
        "m-hop": (0.195, 0.300),
        "u-hop": (0.059, 0.554),
        "k-hop": (0.177, 0.764),
        "k2-hop": (0.195, 0.298),
        "a-hop": (0.360, 0.227),
    },
    ("mnist", 0.6): {
        "m-hop": (0.875, 0.013),
        "u-hop": (0.540, 0.143),
        "k-hop": (0.764, 0.064),
        "k2-hop": (0.878, 0.013),
        "a-hop": (0.939, 0.005),
    },
    ("mnist", 0.7): {
        "m-hop": (0.661, 0.068),
        "u-hop": (0.176, 0.347),
        "k-hop": (0.526, 0.164),
        "k2-hop": (0.660, 0.068),
        "a-hop": (0.849, 0.015),
    },
}


def paper_figure(config: Config, setting: Setting, model: str) -> tuple[float, float] | None:
    """The paper's accuracy and error for this cell, where it has one."""
    alike = setting.mask == setting.noise == setting.bias
    sized = config.patterns == 2048 and (config.data != "synthetic" or config.dim == 64)
    if not (alike and sized):
        return None
    return PAPER.get((config.data, setting.mask), {}).get(model.removesuffix("-adam"))


Builder = Callable[[Tensor, Samples, Variant, int], AssociativeMemory]


class Model(NamedTuple):
    """A memory of the benchmark: how it is made and taught, what tables call it, and whether it is ours."""

    prepare: Builder
    title: str
    ours: bool


MODELS: Registry[Model] = Registry("model")


def model(name: str, title: str | None = None, *, ours: bool = False) -> Callable[[Builder], Builder]:
    """Let a memory take part under this name: it is made of patterns, samples, the world they come from and a seed."""

    def join(build: Builder) -> Builder:
        MODELS.add(name, Model(build, title or name, ours))
        return build

    return join


def _usual(name: str) -> Builder:
    return lambda patterns, seen, world, seed: fitted(create(name, patterns), seen)


for _name in ("m-hop", "u-hop", "k-hop", "k2-hop"):
    model(_name)(_usual(_name))


@model("mlp", "4-layer perceptron")
def _perceptron(patterns: Tensor, seen: Samples, world: Variant, seed: int) -> AssociativeMemory:
    count, dim = patterns.shape
    similarity = Perceptron(dim, count, seed=seed)
    return fitted(UniversalHopfield(patterns, similarity=similarity, separation="softmax"), seen)


@model("a-hop-adam", "a-hop, Adam as in the paper")
def _by_adam(patterns: Tensor, seen: Samples, world: Variant, seed: int) -> AssociativeMemory:
    return fitted(AdaptiveHopfield(patterns), seen, solver="adam")


model("a-hop")(_usual("a-hop"))


@model("b-hop*", "b-hop, no labels", ours=True)
def _unlabelled(patterns: Tensor, seen: Samples, world: Variant, seed: int) -> AssociativeMemory:
    return create("b-hop", patterns).fit(seen.queries)


model("b-hop", ours=True)(_usual("b-hop"))


@model("oracle", "Oracle (Bayes ceiling)")
def _oracle(patterns: Tensor, seen: Samples, world: Variant, seed: int) -> AssociativeMemory:
    return Oracle(patterns, world)


def require_models(models: Sequence[str]) -> None:
    """Refuse names that :func:`prepare` does not know."""
    if not models:
        raise ValueError("models must name at least one, got none")
    for model in models:
        if model not in MODELS:
            # Any name that create() knows; it says which ones when it does not.
            create(model, torch.ones(2, 2))


def prepare(model: str, patterns: Tensor, seen: Samples, world: Variant, seed: int = 0) -> AssociativeMemory:
    """A fitted memory by the benchmark's name for it."""
    build = MODELS[model].prepare if model in MODELS else _usual(model)
    return build(patterns, seen, world, seed)


def fitted(memory: AssociativeMemory, seen: Samples, **options: Any) -> AssociativeMemory:
    """A memory after its fit, if it learns; by the paper's number of steps, whether or not these are enough."""
    if not memory.learns:
        return memory
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return memory.fit(*seen, **options)


def draw_patterns(config: Config, seed: int) -> Tensor:
    """The patterns of one run: uniform on [-1, 1], or that many different images."""
    generator = torch.Generator().manual_seed(seed)
    if config.data == "synthetic":
        return (torch.rand(config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
    images = datasets.load(config.data).patterns
    if config.patterns > len(images):
        raise ValueError(f"patterns must be at most {len(images)}, the size of {config.data}; got {config.patterns}")
    return images[torch.randperm(len(images), generator=generator)[: config.patterns]].to(config.device)


def run(config: Config) -> dict[str, Any]:
    """Run the benchmark; the report holds accuracy, error and the fraction of the Oracle for every cell."""
    head = reports.stamp("retrieval", asdict(config))
    models = [model for model in config.models if model != "oracle"] + ["oracle"]
    figures: dict[tuple[Setting, str], list[tuple[float, ...]]] = {}
    cells = config.runs * len(config.settings) * len(models)
    with progress("retrieval", cells) as bar:
        for seed in range(config.seed, config.seed + config.runs):
            patterns = draw_patterns(config, seed)
            for setting in config.settings:
                world = Mixed(*setting, preset=config.preset, seed=seed)
                seen, test = world.sample(patterns, config.samples), world.sample(patterns, config.queries)
                ceiling = evaluate(Oracle(patterns, world), test)
                for model in models:
                    oracle = model == "oracle"
                    result = ceiling if oracle else evaluate(prepare(model, patterns, seen, world, seed), test)
                    fraction = result.first_choice / max(ceiling.first_choice, 1e-9)
                    figures.setdefault((setting, model), []).append((*result, fraction))
                    bar.advance(f"{setting}, {model}")

    rows = []
    for (setting, model), runs in figures.items():
        accuracy, error, first, share = (reports.spread(values) for values in zip(*runs, strict=True))
        paper = paper_figure(config, setting, model)
        rows.append(
            {
                "setting": str(setting),
                "intensities": list(setting),
                "model": model,
                "accuracy": accuracy,
                "error": error,
                "first_choice": first,
                "fraction_of_oracle": share,
                "paper": None if paper is None else {"accuracy": paper[0], "error": paper[1]},
            }
        )
    return {**head, "rows": rows}


def draw(config: Config, path: str | os.PathLike[str], columns: int = 8) -> None:
    """A picture of what the first run's models recall in the first setting."""
    patterns = draw_patterns(config, config.seed)
    world = Mixed(*config.settings[0], preset=config.preset, seed=config.seed)
    seen, test = world.sample(patterns, config.samples), world.sample(patterns, columns)
    with torch.no_grad():
        answers = {
            model: prepare(model, patterns, seen, world, config.seed).retrieve(test.queries) for model in config.models
        }
    shape = datasets.load(config.data).shape
    answers = {model: images.cpu() for model, images in answers.items()}
    plots.recalled(patterns[test.origins].cpu(), test.queries.cpu(), answers, shape, path)
