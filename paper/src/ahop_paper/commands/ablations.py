"""``ahop-paper ablations``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import ablations
from ahop_paper.commands.common import Device, Out, Runs, Seed, app, keep, plain_errors, show
from ahop_paper.pages import tables


@app.command("ablations")
@plain_errors
def run_ablations(
    runs: Runs = 5,
    seed: Seed = 0,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Out = None,
) -> None:
    """What sorting, accumulation, a second base and more samples each add: the paper's four ablations."""
    config = ablations.Config(runs=runs, seed=seed, device=as_device(device))
    if quick:
        config = ablations.quick(config)
    result = ablations.run(config)
    size = f"{config.patterns} patterns, {config.samples} samples, mean ± std of {config.runs}"
    compared = "; (paper)" if config.published else ""
    show(tables.ablations(result), f"Accuracy of a-hop without some of its parts\n{size}{compared}")
    keep(result, out)
