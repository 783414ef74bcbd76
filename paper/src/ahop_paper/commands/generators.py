"""``ahop-paper generators``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop.variants.mixed import PRESETS
from ahop_paper import generators
from ahop_paper.commands.common import Device, Out, Runs, Seed, app, as_names, console, plain_errors, show
from ahop_paper.pages import tables


@app.command("generators")
@plain_errors
def run_generators(
    data: Annotated[str, typer.Option(help="synthetic or mnist.")] = "synthetic",
    presets: Annotated[str, typer.Option(help="Ways of drawing queries, separated by commas.")] = ",".join(PRESETS),
    runs: Runs = 15,
    seed: Seed = 5,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Out = None,
) -> None:
    """Which way of drawing queries gives the paper's figures for networks that learn nothing.

    With --out, a run is resumable.
    """
    config = generators.Config(
        data=data, presets=as_names(presets, "presets"), runs=runs, seed=seed, device=as_device(device)
    )
    if quick:
        config = generators.quick(config)
    result = generators.run(config, out)
    size = f"{config.queries} queries, mean of {config.runs} runs"
    show(tables.generators(result), f"Accuracy, {size}\n(standard errors away from the paper's)")
    show(tables.generator_errors(result), f"Squared error a dimension, {size}\n(standard errors away from the paper's)")
    if out:
        console.print(f"report: {out}")
