"""``ahop timing``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop._checks import as_device
from ahop.paper import timing
from ahop.paper.commands.common import Device, Out, app, console, keep, plain_errors


@app.command("timing")
@plain_errors
def run_timing(
    device: Device = "cpu",
    samples: Annotated[int, typer.Option(help="Labelled queries to learn from.")] = 512,
    batch: Annotated[int, typer.Option(help="Queries retrieved at once.")] = 1024,
    quick: Annotated[bool, typer.Option("--quick", help="The first size alone, once.")] = False,
    out: Out = None,
) -> None:
    """How long a-hop takes to learn and to retrieve, with and without the sort: the paper's timing table."""
    config = timing.Config(samples=samples, batch=batch, device=as_device(device))
    result = timing.run(timing.quick(config) if quick else config)
    unit = "relative to the first row" if config.device.startswith("cpu") else "milliseconds"
    table = Table(title=f"a-hop, {samples} samples, batches of {batch}: {unit}", title_justify="left")
    for column in ("d", "N", "sort", "fit", "paper", "fit by Adam", "a query", "paper"):
        table.add_column(column, justify="right")
    for row in result["rows"]:
        paper = row["paper"]
        figures = (row["fit"], paper["fit"], row["adam"], row["query"], paper["query"])
        size = (str(row["dim"]), str(row["patterns"]), "yes" if row["sort"] else "no")
        table.add_row(*size, *("" if figure is None else str(figure) for figure in figures))
    console.print(table)
    keep(result, out)
