"""Every table and figure of the paper, one after another."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ahop._extras import MissingExtraError, require
from ahop.paper import (
    ablations,
    claims,
    figures,
    generators,
    images,
    mil,
    multimodal,
    plots,
    report,
    retrieval,
    tabular,
    timing,
)
from ahop.paper.retrieval import Setting

# The paper's figure lists its twelve settings in a picture that the text does not repeat; these are ours.
TWELVE = (
    *(Setting(0.5, 0, 0), Setting(0.8, 0, 0), Setting(0, 0.5, 0), Setting(0, 0.8, 0)),
    *(Setting(0, 0, 0.5), Setting(0, 0, 1.0), Setting(0.5, 0.5, 0), Setting(0.5, 0, 0.5), Setting(0, 0.5, 0.5)),
    *(Setting(0.3, 0.3, 0.3), Setting(0.4, 0.4, 0.4), Setting(0.5, 0.5, 0.5)),
)


@dataclass(frozen=True)
class Run:
    """How the parts are run: in full or quickly, where, and by how many processes where a part can share its work."""

    folder: str | os.PathLike[str]
    full: bool = False
    device: str = "cpu"
    workers: int = 1


class Part(NamedTuple):
    """A table or figure: what its file is called, what it shows, and how it is made.

    A resumable one keeps what it has done and knows itself whether it is whole. A report may have a picture beside it.
    """

    file: str
    shows: str
    make: Callable[[Run, Path], None]
    resumable: bool = False
    draw: Callable[[dict[str, Any], Path], None] | None = None


def _report(make: Callable[[Run], dict[str, Any]]) -> Callable[[Run, Path], None]:
    """A part that ends in one report."""

    def part(run: Run, out: Path) -> None:
        report.write(make(run), out)

    return part


def _retrieval(config: retrieval.Config) -> Callable[[Run, Path], None]:
    def make(run: Run) -> dict[str, Any]:
        return retrieval.run(_sized(replace(config, device=run.device), _sixteenth, run))

    return _report(make)


def _sixteenth(config: retrieval.Config) -> retrieval.Config:
    # So that 4,096 patterns are still more than 2,048.
    return replace(config, patterns=config.patterns // 16, samples=64, queries=100, runs=1, quick=True)


def _twelve(patterns: int) -> Callable[[Run, Path], None]:
    models = ("m-hop", "u-hop", "k-hop", "k2-hop", "a-hop", "b-hop*", "b-hop")
    return _retrieval(retrieval.Config(models=models, settings=TWELVE, patterns=patterns))


def _generators(data: str) -> Callable[[Run, Path], None]:
    def part(run: Run, out: Path) -> None:
        generators.run(_sized(generators.Config(data=data, device=run.device), generators.quick, run), out)

    return part


def _tabular(features: str) -> Callable[[Run, Path], None]:
    def part(run: Run, out: Path) -> None:
        config = tabular.Config(features=features, device=run.device)
        tabular.run(_sized(config, tabular.quick, run), out, run.workers)

    return part


def _bags(run: Run, out: Path) -> None:
    mil.run(_sized(mil.Config(), mil.quick, run), out, run.workers)


def _images(protocol: str, data: str, *models: str) -> Callable[[Run, Path], None]:
    def part(run: Run, out: Path) -> None:
        config = images.Config(protocol=protocol, data=data, models=models, device=run.device)
        images.run(_sized(config, images.quick, run), out)

    return part


_NUMBERS = retrieval.Config(
    models=("m-hop", "u-hop", "k-hop", "k2-hop", "mlp", "a-hop", "b-hop*", "b-hop"),
    data="mnist",
    settings=(Setting(0.6, 0.6, 0.6), Setting(0.7, 0.7, 0.7)),
)
_DIGITS = retrieval.Config(data="digits", patterns=1024)
PARTS = (
    Part("claims.json", "theorems and lemmas", _report(lambda run: claims.run())),
    Part("clouds.png", "Figure 1", lambda run, out: figures.draw_clouds(out)),
    Part("example.png", "main figure", lambda run, out: figures.draw_example(out)),
    Part("retrieval-twelve-2048.json", "retrieval figure (a)", _twelve(2048), draw=plots.accuracy),
    Part("retrieval-twelve-4096.json", "retrieval figure (b)", _twelve(4096), draw=plots.accuracy),
    Part("retrieval-synthetic.json", "Table 2, synthetic", _retrieval(retrieval.Config())),
    Part("retrieval-digits.json", "Table 2 with digits, which need no download", _retrieval(_DIGITS)),
    Part("retrieval-mnist.json", "Table 2, MNIST", _retrieval(_NUMBERS)),
    Part("generators-synthetic.json", "how queries are drawn", _generators("synthetic"), resumable=True),
    Part("generators-mnist.json", "how queries are drawn, MNIST", _generators("mnist"), resumable=True),
    Part("tabular-sound.json", "Table 3, sound features", _tabular("sound"), resumable=True),
    Part("tabular-benchmark.json", "Table 3, the paper's features", _tabular("benchmark"), resumable=True),
    Part("mil.json", "Table 4, bags", _bags, resumable=True),
    Part(
        "images-cifar10.json",
        "a transformer of Hopfield layers",
        _images("transformer", "cifar10", *images.Config.models),
        resumable=True,
    ),
    *(
        Part(
            f"images-published-{data}.json",
            f"Table 4, {data}",
            _images("published", data, "m-hop", "k-hop", "a-hop"),
            resumable=True,
        )
        for data in images.DATA
    ),
    Part(
        "ablations.json",
        "the four ablations",
        _report(lambda run: ablations.run(_sized(ablations.Config(device=run.device), ablations.quick, run))),
    ),
    Part(
        "multimodal.json",
        "two modalities",
        _report(lambda run: multimodal.run(_sized(multimodal.Config(device=run.device), multimodal.quick, run))),
    ),
    Part(
        "timing.json",
        "timing",
        _report(lambda run: timing.run(_sized(timing.Config(device=run.device), timing.quick, run))),
    ),
)


def _sized(config: Any, quick: Callable[[Any], Any], run: Run) -> Any:
    return config if run.full else quick(config)


def make(part: Part, run: Run) -> str:
    """Make one part, unless it is there; what became of it, in a word or two."""
    out = Path(run.folder) / part.file
    there = out.exists() and not part.resumable
    if there and out.suffix == ".json" and _read(out).get("quick") and run.full:
        raise ValueError(f"{out} comes from a quick run; choose another folder for full ones")
    try:
        if part.draw:
            require("matplotlib")
        if not there:
            part.make(run, out)
    except (FileNotFoundError, MissingExtraError) as error:
        return f"skipped: {error}"
    picture = out.with_suffix(".png")
    if part.draw and not picture.exists():
        part.draw(_read(out), picture)
    return "there already" if there else "made"


def _read(path: Path) -> dict[str, Any]:
    with report.reading(path):
        return dict(json.loads(path.read_text()))
