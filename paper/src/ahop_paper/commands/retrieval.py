"""``ahop-paper retrieval``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop import datasets
from ahop._checks import as_device
from ahop.variants.mixed import PRESETS
from ahop_paper import plots, retrieval
from ahop_paper._libraries import require
from ahop_paper.commands.common import (
    Device,
    Out,
    Runs,
    Seed,
    app,
    as_names,
    console,
    plain_errors,
    require_file,
    show,
)
from ahop_paper.pages import tables


@app.command("retrieval")
@plain_errors
def run_retrieval(
    models: Annotated[str, typer.Option(help="Networks to compare, separated by commas.")] = ",".join(
        retrieval.Config().models
    ),
    data: Annotated[
        str, typer.Option(help=f"synthetic, or a set of images: {', '.join(datasets.names_of(datasets.Dataset))}.")
    ] = "synthetic",
    patterns: Annotated[int | None, typer.Option(help="Stored patterns; 2048, or 1024 of the digits.")] = None,
    dim: Annotated[int, typer.Option(help="Dimensions of synthetic patterns.")] = 64,
    preset: Annotated[str, typer.Option(help=f"Generator: {', '.join(PRESETS)}.")] = "published",
    setting: Annotated[
        list[str] | None, typer.Option(metavar="MASK,NOISE,BIAS", help="Intensities; repeat for several.")
    ] = None,
    difficulty: Annotated[
        list[float] | None, typer.Option(help="One intensity for all three; repeat for several.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Labelled queries to learn from.")] = 512,
    queries: Annotated[int, typer.Option(help="Queries to score on.")] = 1000,
    runs: Runs = 5,
    seed: Seed = 0,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Out = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Where to draw accuracy over settings.")] = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Where to draw originals, queries and what was recalled (images only)."),
    ] = None,
) -> None:
    """Retrieval under masking, noise and bias: Table 2 and Figure 3 of the paper. With --out, a run is resumable."""
    defaults = {"mnist": (0.6, 0.7)}.get(data, (0.4, 0.5))
    settings = [_setting(text) for text in setting or []]
    settings += [retrieval.Setting(value, value, value) for value in difficulty or []]
    settings = settings or [retrieval.Setting(value, value, value) for value in defaults]
    config = retrieval.Config(
        models=as_names(models, "models"),
        data=data,
        patterns=(1024 if data == "digits" else 2048) if patterns is None else patterns,
        dim=dim,
        preset=preset,  # type: ignore[arg-type]
        settings=tuple(dict.fromkeys(settings)),
        samples=samples,
        queries=queries,
        runs=runs,
        seed=seed,
        device=as_device(device),
    )
    if quick:
        config = retrieval.quick(config)
    if picture and config.data == "synthetic":
        raise ValueError("picture needs images: choose --data digits or --data mnist")
    for path in (plot, picture):
        require_file(path, ".png", ".pdf", ".svg")
    if plot or picture:
        require("matplotlib")

    result = retrieval.run(config, out)
    size = f"{config.patterns} {config.data} patterns, {config.samples} samples, {config.queries} queries"
    show(tables.settings(result), f"Retrieval, {size}\npreset {config.preset}, mean ± std of {config.runs} runs")
    if out:
        console.print(f"report: {out}")
    if plot:
        plots.accuracy(result, plot)
        console.print(f"plot: {plot}")
    if picture:
        retrieval.draw(config, picture)
        console.print(f"picture: {picture}")


def _setting(text: str) -> retrieval.Setting:
    try:
        mask, noise, bias = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"setting must be three numbers MASK,NOISE,BIAS, got {text!r}") from None
    return retrieval.Setting(mask, noise, bias)
