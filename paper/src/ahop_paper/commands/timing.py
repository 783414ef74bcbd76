"""``ahop-paper timing``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import timing
from ahop_paper.commands.common import Device, Out, app, keep, plain_errors, show
from ahop_paper.pages import tables


@app.command("timing")
@plain_errors
def run_timing(
    device: Device = "cpu",
    samples: Annotated[int, typer.Option(help="Labelled queries to learn from.")] = 512,
    batch: Annotated[int, typer.Option(help="Queries retrieved at once.")] = 1024,
    quick: Annotated[bool, typer.Option("--quick", help="The first size alone, once.")] = False,
    out: Out = None,
) -> None:
    """How long a-hop takes to learn and to retrieve, with and without sorting: the paper's timing table."""
    config = timing.Config(samples=samples, batch=batch, device=as_device(device))
    result = timing.run(timing.quick(config) if quick else config)
    relative = config.device.startswith("cpu")
    unit = "relative to the first cell" if relative else "milliseconds"
    table = (tables.ratios if relative else tables.timing)(result)
    show(table, f"a-hop, {samples} samples, batches of {batch}: {unit}")
    keep(result, out)
