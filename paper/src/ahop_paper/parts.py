"""What there is to make: all tables and figures, of the paper and beyond it, but for what benchmarks/ measures."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ahop.variants.mixed import PRESETS
from ahop_paper import (
    ablations,
    blends,
    claims,
    figures,
    generators,
    images,
    mil,
    multimodal,
    plots,
    real,
    report,
    retrieval,
    tabular,
    timing,
    worlds,
    zoo,
)
from ahop_paper.retrieval import Setting
from ahop_paper.table_plain import PLAIN

# The paper's figure lists its twelve settings in a picture that the text does not repeat; these are ours.
TWELVE = (
    *(Setting(0.5, 0, 0), Setting(0.8, 0, 0), Setting(0, 0.5, 0), Setting(0, 0.8, 0)),
    *(Setting(0, 0, 0.5), Setting(0, 0, 1.0), Setting(0.5, 0.5, 0), Setting(0.5, 0, 0.5), Setting(0, 0.5, 0.5)),
    *(Setting(0.3, 0.3, 0.3), Setting(0.4, 0.4, 0.4), Setting(0.5, 0.5, 0.5)),
)


@dataclass(frozen=True)
class Run:
    """How the parts are run: in full or quickly, where, and by how many processes where a part can share its work.

    ``end`` is when all has to be at rest, by the monotonic clock.
    """

    folder: str | os.PathLike[str]
    full: bool = False
    device: str = "cpu"
    workers: int = 1
    end: float = math.inf


class Part(NamedTuple):
    """A table or figure: what its file is called, what it shows, whose code makes it, and how.

    ``minutes`` is how long it takes on an H200 with 16 cores, at most; for one that is resumable, which keeps what it
    has done and knows itself whether it is complete, how long its longest piece takes. A report may have a picture
    beside it.
    """

    file: str
    shows: str
    code: ModuleType
    make: Callable[[Run, Path, float], None]
    minutes: int = 1
    resumable: bool = False
    needs_gpu: bool = False
    draw: Callable[[dict[str, Any], Path], None] | None = None


def _report(make: Callable[[Run], dict[str, Any]]) -> Callable[[Run, Path, float], None]:
    """A part that ends in one report."""

    def part(run: Run, out: Path, until: float) -> None:
        report.write(make(run), out)

    return part


def _retrieval(config: retrieval.Config) -> Callable[[Run, Path, float], None]:
    def part(run: Run, out: Path, until: float) -> None:
        retrieval.run(_sized(replace(config, device=run.device), _sixteenth, run), out, run.workers, until)

    return part


def _generators(data: str) -> Callable[[Run, Path, float], None]:
    def part(run: Run, out: Path, until: float) -> None:
        presets = PRESETS if data == "synthetic" else ("published", "calibrated")
        config = generators.Config(data=data, presets=presets, device=run.device)
        generators.run(_sized(config, generators.quick, run), out, run.workers, until)

    return part


def _worlds(config: worlds.Config) -> Callable[[Run, Path, float], None]:
    def part(run: Run, out: Path, until: float) -> None:
        worlds.run(_sized(replace(config, device=run.device), _sixteenth, run), out, run.workers, until)

    return part


def _sized(config: Any, quick: Callable[[Any], Any], run: Run) -> Any:
    return config if run.full else quick(config)


def _sixteenth(config: Any) -> Any:
    # So that 4,096 patterns are still more than 2,048.
    return replace(config, patterns=config.patterns // 16, samples=64, queries=100, runs=1, quick=True)


def _twelve(patterns: int) -> Callable[[Run, Path, float], None]:
    models = ("m-hop", "u-hop", "k-hop", "k2-hop", *retrieval.BASELINES, "a-hop", "b-hop*", "b-hop")
    return _retrieval(retrieval.Config(models=models, settings=TWELVE, patterns=patterns))


def _alike(*difficulties: float) -> tuple[Setting, ...]:
    return tuple(Setting(value, value, value) for value in difficulties)


def _timing(device: str, repetitions: int) -> Callable[[Run, Path, float], None]:
    config = timing.Config(device=device, repetitions=repetitions)
    return _report(lambda run: timing.run(_sized(config, timing.quick, run)))


def _real(run: Run, out: Path, until: float) -> None:
    real.run(_sized(real.Config(device=run.device), real.quick, run), out, run.workers, until)


def _zoo(run: Run, out: Path, until: float) -> None:
    zoo.run(_sized(zoo.Config(), zoo.quick, run), out, run.workers, until)


def _tabular(device: str | None = None, **settings: Any) -> Callable[[Run, Path, float], None]:
    def part(run: Run, out: Path, until: float) -> None:
        config = tabular.Config(**settings, device=device or run.device)
        tabular.run(_sized(config, tabular.quick, run), out, run.workers, until)

    return part


def _bags(run: Run, out: Path, until: float) -> None:
    mil.run(_sized(mil.Config(), mil.quick, run), out, run.workers, until)


def _checks(run: Run, out: Path, until: float) -> None:
    mil.run_checks((*mil.Config.models, "monotone"), 5 if run.full else 1, 0, out, run.workers, until)


def _images(protocol: str, data: str, *models: str, **settings: Any) -> Callable[[Run, Path, float], None]:
    def part(run: Run, out: Path, until: float) -> None:
        config = images.Config(protocol=protocol, data=data, models=models, device=run.device, **settings)
        images.run(_sized(config, images.quick, run), out, run.workers, until)

    return part


_NUMBERS = retrieval.Config(
    models=("m-hop", "u-hop", "k-hop", "k2-hop", *retrieval.BASELINES, "mlp", "a-hop", "b-hop*", "b-hop"),
    data="mnist",
    settings=_alike(0.6, 0.7),
)
_DIGITS = retrieval.Config(data="digits", patterns=1024)
_LADDER = retrieval.Config(
    models=("m-hop", "centred L1", "z-scored cosine", "a-hop", "b-hop*", "b-hop"),
    settings=_alike(0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
)
_FEW = worlds.Config(worlds=("published 0.4", "published 0.5"), models=("b-hop",), samples=128)
_UNTUNED = worlds.Config(worlds=worlds.group(untuned=True), models=worlds.UNTUNED_MODELS)
PARTS = (
    Part("claims.json", "theorems and lemmas", claims, _report(lambda run: claims.run())),
    Part("clouds.png", "Figure 1", figures, lambda run, out, until: figures.draw_clouds(out)),
    Part("example.png", "main figure", figures, lambda run, out, until: figures.draw_example(out)),
    Part(
        "retrieval-twelve-2048.json",
        "retrieval figure (a)",
        retrieval,
        _twelve(2048),
        7,
        resumable=True,
        draw=plots.accuracy,
    ),
    Part(
        "retrieval-twelve-4096.json",
        "retrieval figure (b)",
        retrieval,
        _twelve(4096),
        8,
        resumable=True,
        draw=plots.accuracy,
    ),
    Part("retrieval-synthetic.json", "Table 2, synthetic", retrieval, _retrieval(retrieval.Config()), resumable=True),
    Part(
        "retrieval-digits.json",
        "Table 2 with digits, which need no download",
        retrieval,
        _retrieval(_DIGITS),
        resumable=True,
    ),
    Part("retrieval-mnist.json", "Table 2, MNIST", retrieval, _retrieval(_NUMBERS), 3, resumable=True),
    Part(
        "retrieval-ladder.json",
        "from easy to hopeless",
        retrieval,
        _retrieval(_LADDER),
        2,
        resumable=True,
        draw=plots.accuracy,
    ),
    Part(
        "retrieval-calibrated.json",
        "a-hop's lead where queries are drawn as hard as the paper's",
        retrieval,
        _retrieval(
            retrieval.Config(
                models=("m-hop", "u-hop", *retrieval.BASELINES, "a-hop", "b-hop*", "b-hop"), preset="calibrated"
            )
        ),
        2,
        resumable=True,
    ),
    *(
        Part(
            f"generators-{data}.json",
            f"how queries are drawn, {data}",
            generators,
            _generators(data),
            3,
            resumable=True,
        )
        for data in generators.LEVELS
    ),
    *(
        Part(
            f"tabular-{name}.json",
            f"Table 3, {shows}",
            tabular,
            _tabular(features=name, models=tuple(model for model in tabular.MODELS if model not in aside)),
            5,
            resumable=True,
        )
        for name, shows, aside in (
            # A vote of CatBoost would take seven hours of a core.
            ("sound", "sound features", (*PLAIN, "vote of catboost")),
            ("benchmark", "the paper's features", ("a-hop-cases", "catboost", "vote of catboost")),
        )
    ),
    Part(
        "tabular-plain.json",
        "what everyone tries first on tables",
        tabular,
        _tabular("cpu", models=tuple(PLAIN)),
        2,
        resumable=True,
    ),
    Part(
        "tabular-cpu.json",
        "times on a processor",
        tabular,
        _tabular("cpu", models=("default", "xgboost")),
        5,
        resumable=True,
    ),
    Part("mil.json", "Table 4, bags", mil, _bags, 5, resumable=True),
    Part("mil-checks.json", "what a model of bags may learn", mil, _checks, 1, resumable=True),
    Part(
        "images-cifar10.json",
        "a transformer of Hopfield layers",
        images,
        _images("transformer", "cifar10", *images.Config.models),
        5,
        resumable=True,
    ),
    Part(
        "images-cifar10-long.json",
        "the same, trained for twice as long",
        images,
        _images("transformer", "cifar10", "m-hop", epochs=200, runs=1),
        8,
        resumable=True,
    ),
    *(
        Part(
            f"images-published-{data}.json",
            f"Table 4, {data}",
            images,
            _images("published", data, "m-hop", "k-hop", "a-hop"),
            5,
            resumable=True,
        )
        for data in images.DATA
    ),
    Part(
        "ablations.json",
        "the four ablations",
        ablations,
        _report(lambda run: ablations.run(_sized(ablations.Config(device=run.device), ablations.quick, run))),
        3,
    ),
    Part(
        "multimodal.json",
        "two modalities",
        multimodal,
        _report(lambda run: multimodal.run(_sized(multimodal.Config(device=run.device), multimodal.quick, run))),
        4,
    ),
    Part("timing-cpu.json", "timing, ratios on a processor", timing, _timing("cpu", 3), 9),
    Part("timing-cuda.json", "timing", timing, _timing("cuda", 5), needs_gpu=True),
    Part("worlds.json", "how close to the ceiling", worlds, _worlds(worlds.Config()), 5, resumable=True),
    Part("worlds-untuned.json", "worlds that nobody tuned on", worlds, _worlds(_UNTUNED), 5, resumable=True),
    Part("worlds-128.json", "the same from few queries", worlds, _worlds(_FEW), resumable=True),
    Part("real.json", "real corruption", real, _real, 5, resumable=True),
    Part("zoo.json", "every memory, side by side", zoo, _zoo, 2, resumable=True),
    Part(
        "blends.json",
        "queries that are blends of several patterns",
        blends,
        _report(lambda run: blends.run(_sized(blends.Config(), blends.quick, run))),
        3,
    ),
)
# What is measured beside the package.
BENCHMARKS = {
    "ceiling.json": "python benchmarks/ceiling.py",
    "hubness.json": "python benchmarks/hubness.py",
    "fits-cuda.json": "python benchmarks/fits.py --device cuda",
    "fits-cpu.json": "python benchmarks/fits.py",
    "kernels-arm.json": "python benchmarks/kernels.py --device cpu",
    "kernels-x86.json": "python benchmarks/kernels.py --device cpu",
    "kernels-cuda.json": "python benchmarks/kernels.py --device cuda",
    "layers-cuda.json": "python benchmarks/layers.py --device cuda",
    "likelihood.json": "python benchmarks/likelihood.py",
    "load.json": "python benchmarks/load.py --ray",
    "match.json": "python benchmarks/match.py --large",
    "ranges.json": "python benchmarks/ranges.py",
    "scale-cpu.json": "python benchmarks/scale.py",
    "scale-cuda.json": "python benchmarks/scale.py --device cuda",
    "spaces.json": "python benchmarks/spaces.py",
    "trust.json": "python benchmarks/trust.py",
    "unrelated.json": "python benchmarks/unrelated.py",
    "zoo-costs.json": "python benchmarks/zoo_costs.py",
    "zoo-costs-cuda.json": "python benchmarks/zoo_costs.py --device cuda",
}
