"""Memory retrieval under mixed corruption: Figure 3 and Table 2 of the paper."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ahop import datasets
from ahop._checks import choice
from ahop._progress import progress
from ahop._registry import Registry
from ahop.memories import AdaptiveHopfield, Oracle, UniversalHopfield, create
from ahop.memories.base import AssociativeMemory
from ahop.memories.names import known_names
from ahop.metrics import Evaluation, evaluate
from ahop.similarity.perceptron import Perceptron
from ahop.variants import Mixed, Samples, Variant
from ahop.variants.mixed import Preset
from ahop_paper import lineage, plots
from ahop_paper import report as reports
from ahop_paper.baselines import ALONE, NOTHING, PLAIN, Compared
from ahop_paper.parallel import each
from ahop_paper.spread import spread


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

    models: tuple[str, ...] = field(
        default_factory=lambda: tuple(name for name, one in MODELS.items() if not one.ceiling)
    )
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
    known = MODELS.get(model)
    return PAPER.get((config.data, setting.mask), {}).get((known and known.variant_of) or model)


Builder = Callable[[Tensor, Samples, Variant, int], AssociativeMemory | Compared]


class Model(NamedTuple):
    """Who takes part.

    Attributes:
        prepare: How it is made and taught.
        title: What tables call it.
        ours: Whether it is this library's own.
        labels: Whether it may learn from labels.
        variant_of: The network that it is, learned in another way; the paper has figures of that one.
        ceiling: Whether it knows the corruption, so that others are measured by it.
    """

    prepare: Builder
    title: str
    ours: bool = False
    labels: bool = True
    variant_of: str | None = None
    ceiling: bool = False


MODELS: Registry[Model] = Registry("model")


def model(
    name: str,
    title: str | None = None,
    *,
    ours: bool = False,
    labels: bool = True,
    variant_of: str | None = None,
    ceiling: bool = False,
) -> Callable[[Builder], Builder]:
    """Register a memory for the benchmark.

    Args:
        name: Its name.
        title: What tables call it; the name by default.
        ours, labels, variant_of, ceiling: As in :class:`Model`.

    Returns:
        A decorator for what builds it, from patterns, samples, the world they come from and a seed.
    """

    def join(build: Builder) -> Builder:
        MODELS.add(name, Model(build, title or name, ours, labels, variant_of, ceiling))
        return build

    return join


def _usual(name: str) -> Builder:
    return lambda patterns, train, world, seed: fitted(create(name, patterns), train)


for _name in ("m-hop", "u-hop", "k-hop", "k2-hop"):
    model(_name)(_usual(_name))


def _plain(name: str) -> Builder:
    make = PLAIN[name].make

    def build(patterns: Tensor, train: Samples, world: Variant, seed: int) -> Compared:
        return make(patterns, train.queries, train.origins.to(patterns.device), seed)

    return build


# The others learn nothing: m-hop and u-hop stand for them.
BASELINES = tuple(name for name, plain in PLAIN.items() if plain.learns != NOTHING)
for _name in BASELINES:
    _labels = PLAIN[_name].learns != ALONE
    model(_name, _name if _labels else f"{_name}, no labels", labels=_labels)(_plain(_name))


@model("mlp", "4-layer perceptron")
def _perceptron(patterns: Tensor, train: Samples, world: Variant, seed: int) -> AssociativeMemory:
    count, dim = patterns.shape
    similarity = Perceptron(dim, count, seed=seed)
    return fitted(UniversalHopfield(patterns, similarity=similarity, separation="softmax"), train)


@model("a-hop-adam", "a-hop, Adam as in the paper", variant_of="a-hop")
def _by_adam(patterns: Tensor, train: Samples, world: Variant, seed: int) -> AssociativeMemory:
    return fitted(AdaptiveHopfield(patterns), train, solver="adam")


model("a-hop")(_usual("a-hop"))


@model("b-hop*", "b-hop, no labels", ours=True, labels=False)
def _unlabelled(patterns: Tensor, train: Samples, world: Variant, seed: int) -> AssociativeMemory:
    return create("b-hop", patterns).fit(train.queries)


model("b-hop", ours=True)(_usual("b-hop"))


@model("oracle", "Oracle", ceiling=True)
def _oracle(patterns: Tensor, train: Samples, world: Variant, seed: int) -> AssociativeMemory:
    return Oracle(patterns, world)


# What others are measured by.
CEILING = next(name for name, one in MODELS.items() if one.ceiling)


def require_models(models: Sequence[str]) -> None:
    """Refuse names that :func:`prepare` does not know."""
    if not models:
        raise ValueError("models must name at least one, got none")
    for model in models:
        choice(model, "models", tuple(dict.fromkeys((*MODELS, *known_names()))))


@lineage.picks
def builder(model: str) -> Builder:
    """How a memory or baseline is made and taught, by the benchmark's name for it."""
    return MODELS[model].prepare if model in MODELS else _usual(model)


def loader(data: str) -> Callable[[], Any] | None:
    """What loads the patterns; None for those that are drawn."""
    return None if data == "synthetic" else datasets.ENTRIES[data].load


def prepare(
    model: str, patterns: Tensor, train: Samples, world: Variant, seed: int = 0
) -> AssociativeMemory | Compared:
    """A fitted memory or baseline by the benchmark's name for it.

    Args:
        model: Its name in the benchmark.
        patterns: ``(N, d)``.
        train: What it may learn from.
        world: The corruption, which an Oracle knows.
        seed: Seed of what is drawn.
    """
    return builder(model)(patterns, train, world, seed)


def answers(made: AssociativeMemory | Compared, patterns: Tensor, queries: Tensor) -> Tensor:
    """What a memory reads out; a baseline has the pattern of its first choice.

    Args:
        made: A memory or a baseline.
        patterns: ``(N, d)``.
        queries: ``(n, d)``.

    Returns:
        Readouts, ``(n, d)``.
    """
    return made.retrieve(queries) if isinstance(made, AssociativeMemory) else patterns[made.first(queries)]


def scored(made: AssociativeMemory | Compared, patterns: Tensor, test: Samples) -> Evaluation:
    """:func:`~ahop.metrics.evaluate`, also of baselines, whose readouts are their first choices.

    Args:
        made: A memory or a baseline.
        patterns: ``(N, d)``.
        test: Queries and their origins.
    """
    if isinstance(made, AssociativeMemory):
        return evaluate(made, test)
    found, wanted = answers(made, patterns, test.queries), patterns[test.origins]
    right = float((found == wanted).all(1).double().mean())
    return Evaluation(right, float((found - wanted).square().mean()), right)


def fitted(memory: AssociativeMemory, train: Samples, **options: Any) -> AssociativeMemory:
    """A memory after its fit, if it learns; by the paper's number of steps, whether or not these are enough.

    Args:
        memory: What is to learn.
        train: Queries and their origins.
        **options: Arguments of ``fit``.
    """
    if not memory.learns:
        return memory
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return memory.fit(*train, **options)


def draw_patterns(config: Config, seed: int) -> Tensor:
    """The patterns of one run: uniform on [-1, 1], or that many different images."""
    generator = torch.Generator().manual_seed(seed)
    if config.data == "synthetic":
        return (torch.rand(config.patterns, config.dim, generator=generator) * 2 - 1).to(config.device)
    images = datasets.load(config.data).patterns
    if config.patterns > len(images):
        raise ValueError(f"patterns must be at most {len(images)}, the size of {config.data}; got {config.patterns}")
    return images[torch.randperm(len(images), generator=generator)[: config.patterns]].to(config.device)


def run(
    config: Config, out: str | os.PathLike[str] | None = None, workers: int = 1, until: float = math.inf
) -> dict[str, Any]:
    """Run the benchmark; the report holds accuracy, error and the fraction of the Oracle for every cell.

    What ``out`` already holds is not done again, and each part is kept when ready. None begins after ``until``.

    Args:
        config: What to run.
        out: The report to go on with and to write, after every part; None writes none.
        workers: The number of processes; -1 takes one a core.
        until: When no further part begins, by the monotonic clock.

    Returns:
        The report.
    """
    head = reports.stamp("retrieval", asdict(config), __file__)
    free, code = ("models", "settings", "runs", "seed", "device"), partial(code_of, asdict(config))
    journal = reports.Journal(out, head, free, partial(summary, config), code)
    with reports.reading(out):
        known = {(Setting(*one["intensities"]), one["model"], one["seed"]) for one in journal.done}
    left = [
        (seed, setting, models, config)
        for seed in range(config.seed, config.seed + config.runs)
        for setting in config.settings
        if (models := [model for model in with_ceiling(config.models) if (setting, model, seed) not in known])
    ]
    with progress("retrieval", len(left)) as bar:
        for found in each(score, left, workers, until):
            journal.add(found)
            bar.advance(f"{Setting(*found[0]['intensities'])}, seed {found[0]['seed']}")
    return journal.report()


def code_of(config: dict[str, Any], one: dict[str, Any]) -> str:
    """The fingerprint of what makes a row: measure, patterns and model."""
    return lineage.fingerprint(score, loader(config["data"]), builder(one["model"]))


def score(seed: int, setting: Setting, models: Sequence[str], config: Config) -> list[dict[str, Any]]:
    """What some models find in one setting of one seed.

    Args:
        seed: Seed of patterns, world and models.
        setting: The intensities of the corruption.
        models: Their names.
        config: What to run.
    """
    patterns = draw_patterns(config, seed)
    world = Mixed(*setting, preset=config.preset, seed=seed)
    train, test = world.sample(patterns, config.samples), world.sample(patterns, config.queries)
    found = []
    for model in models:
        result = scored(prepare(model, patterns, train, world, seed), patterns, test)
        found.append({"intensities": list(setting), "model": model, "seed": seed, **result._asdict()})
    return found


def with_ceiling(models: Sequence[str]) -> tuple[str, ...]:
    """The models, the one that the others are measured by last: it always takes part."""
    return (*(model for model in models if model != CEILING), CEILING)


def summary(config: Config, head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a setting and model, and all that was run.

    Args:
        config: What to run.
        head: What the report says besides its rows.
        done: All that was run.
    """
    found = {(tuple(one["intensities"]), one["model"], one["seed"]): one for one in done}
    rows = []
    for setting in config.settings:
        for model in with_ceiling(config.models):
            seeds = [seed for seed in range(config.seed, config.seed + config.runs) if (setting, model, seed) in found]
            if not seeds:
                continue
            runs = [found[setting, model, seed] for seed in seeds]
            ceilings = [max(found[setting, CEILING, seed]["first_choice"], 1e-9) for seed in seeds]
            shares = [one["first_choice"] / ceiling for one, ceiling in zip(runs, ceilings, strict=True)]
            row: dict[str, Any] = {"setting": str(setting), "intensities": list(setting), "model": model}
            row |= {key: spread([one[key] for one in runs]) for key in Evaluation._fields}
            row["fraction_of_oracle"] = spread(shares)
            paper = paper_figure(config, setting, model)
            row["paper"] = None if paper is None else {"accuracy": paper[0], "error": paper[1]}
            rows.append(row)
    return {**head, "rows": rows, "done": done}


def draw(config: Config, path: str | os.PathLike[str], columns: int = 8) -> None:
    """A picture of what the first run's models recall in the first setting.

    Args:
        config: What to run.
        path: Where to write.
        columns: The number of queries.
    """
    patterns = draw_patterns(config, config.seed)
    world = Mixed(*config.settings[0], preset=config.preset, seed=config.seed)
    train, test = world.sample(patterns, config.samples), world.sample(patterns, columns)
    with torch.no_grad():
        recalled = {
            model: answers(prepare(model, patterns, train, world, config.seed), patterns, test.queries).cpu()
            for model in config.models
        }
    shape = datasets.load(config.data).shape
    plots.recalled(patterns[test.origins].cpu(), test.queries.cpu(), recalled, shape, path)
