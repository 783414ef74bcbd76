"""``ahop-paper real``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import real
from ahop_paper.commands.common import (
    Device,
    Join,
    Out,
    Runs,
    Workers,
    app,
    as_names,
    console,
    joined,
    plain_errors,
    show,
)
from ahop_paper.pages import tables

_ALL = ",".join(real.MODELS)


@app.command("real")
@plain_errors
def run_real(
    data: Annotated[
        str | None,
        typer.Option(
            help=f"Data sets, separated by commas: {', '.join(real.Config().data)}.",
            show_default="all; with --quick, those that are here",
        ),
    ] = None,
    models: Annotated[
        str,
        typer.Option(
            help=f"Models, separated by commas; b-hop* sees no labels: {', '.join(real.MODELS)}.", show_default="all"
        ),
    ] = _ALL,
    runs: Runs = 5,
    seed: Annotated[int, typer.Option(help="The first split; 0 is the published one.")] = 0,
    workers: Workers = 1,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="Two splits of a few items, to see that it works.")] = False,
    join: Join = None,
    out: Out = None,
) -> None:
    """Retrieval of items that were measured twice, by instruments, in places and by models that differ.

    With --out, a run is resumable. Machines can share it, by sets or models, each with a file of its own for --join.
    """
    chosen = as_names(data, "data") if data is not None else _at_hand() if quick else real.Config().data
    config = real.Config(chosen, as_names(models, "models"), runs, seed, device=as_device(device))
    if quick:
        config = real.quick(config)
    result = real.run(config, out, workers) if join is None else joined(real.join, config, join, out)
    for table in (tables.real_models, tables.real, tables.never_behind, tables.calibration):
        grid = table(result)
        if grid.lines:
            show(grid, table.__doc__ or "")
    idle = set(config.models) - {row["model"] for row in result["rows"]}
    if idle and models != _ALL:
        message = (
            f"Took no part, as meant for other data or given more labels than there are: {', '.join(sorted(idle))}."
        )
        console.print(message, highlight=False, soft_wrap=True)
    if out:
        console.print(f"report: {out}")


def _at_hand() -> tuple[str, ...]:
    """What can be tried on this machine; what is left out is said."""
    here, away = real.at_hand()
    if away:
        instead = "" if set(here) <= set(real.Config().data) else f" Instead of all: {', '.join(here)}."
        message = f"Not here, and left out: {', '.join(away)}; ahop datasets NAME says how to get one.{instead}"
        console.print(message, highlight=False, soft_wrap=True)
    return here
