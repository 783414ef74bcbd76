"""``ahop-paper zoo``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop_paper import zoo
from ahop_paper.commands.common import (
    Out,
    Runs,
    Seed,
    Workers,
    app,
    console,
    plain_errors,
    show,
)
from ahop_paper.pages import tables


@app.command("zoo")
@plain_errors
def run_zoo(
    world: Annotated[
        list[str] | None, typer.Option(help="A world by name; repeat for several; with --quick, those that are here.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="A memory by its name in the table; repeat for several.")
    ] = None,
    runs: Runs = 5,
    seed: Seed = 0,
    workers: Workers = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds of small worlds, to see that it works.")] = False,
    out: Out = None,
) -> None:
    """Every memory of the library on the same worlds: right first choices, calibration, strangers, capacity.

    With --out, a run is resumable.
    """
    worlds = tuple(world or (_at_hand() if quick else zoo.TRIALS))
    config = zoo.Config(worlds, tuple(model or zoo.models()), runs=runs, seed=seed)
    result = zoo.run(zoo.quick(config) if quick else config, out, workers)
    for table in (tables.zoo_advice, tables.zoo, tables.zoo_trust, tables.zoo_capacity):
        show(table(result), table.__doc__ or "")
    if out:
        console.print(f"report: {out}")


def _at_hand() -> tuple[str, ...]:
    here, away = zoo.at_hand()
    if away:
        console.print(f"Not here, and left out: {', '.join(away)}.", highlight=False, soft_wrap=True)
    return here
