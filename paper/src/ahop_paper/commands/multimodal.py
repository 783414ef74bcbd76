"""``ahop-paper multimodal``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import multimodal
from ahop_paper.commands.common import Device, Out, Runs, Seed, app, keep, plain_errors, show
from ahop_paper.pages import tables


@app.command("multimodal")
@plain_errors
def run_multimodal(
    mask: Annotated[float, typer.Option(help="Part of the values that is lost, in each phase.")] = 0.6,
    noise: Annotated[float, typer.Option(help="Intensity of the noise.")] = 0.05,
    bias: Annotated[float, typer.Option(help="Intensity of the bias.")] = 0.05,
    runs: Runs = 5,
    seed: Seed = 0,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Out = None,
) -> None:
    """Two modalities: a damaged picture recalls a sound, and the sound, damaged again, must recall its concept."""
    config = multimodal.Config(mask=mask, noise=noise, bias=bias, runs=runs, seed=seed, device=as_device(device))
    if quick:
        config = multimodal.quick(config)
    result = multimodal.run(config)
    size = f"{config.samples} samples, {config.queries} queries, mean ± std of {config.runs}"
    size += "; (paper, corruption unspecified)"
    show(tables.modalities(result), f"Concepts that are found through two modalities\n{size}")
    keep(result, out)
