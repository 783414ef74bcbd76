"""``ahop-paper worlds``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import worlds
from ahop_paper.commands.common import (
    Device,
    Out,
    Runs,
    Seed,
    Workers,
    app,
    as_names,
    console,
    plain_errors,
    show,
)
from ahop_paper.pages import tables


@app.command("worlds")
@plain_errors
def run_worlds(
    world: Annotated[
        list[str] | None, typer.Option(help="A world by name; repeat for several; all of the group by default.")
    ] = None,
    untuned: Annotated[
        bool, typer.Option("--untuned", help="The worlds that nobody tuned on, outside the family that is learned.")
    ] = False,
    models: Annotated[
        str | None,
        typer.Option(help="Networks to compare, separated by commas; all of the table by default."),
    ] = None,
    patterns: Annotated[int, typer.Option(help="Stored patterns.")] = 2048,
    samples: Annotated[int, typer.Option(help="Queries to learn from.")] = 512,
    queries: Annotated[int, typer.Option(help="Queries to score on.")] = 1000,
    runs: Runs = 5,
    seed: Seed = 0,
    device: Device = "cpu",
    workers: Workers = 1,
    out: Out = None,
) -> None:
    """How close memories come to the best possible result under many corruptions; b-hop* learns without labels.

    With --out, a run is resumable.
    """
    usual = worlds.UNTUNED_MODELS if untuned else worlds.Config.models
    config = worlds.Config(
        tuple(world or worlds.group(untuned)),
        usual if models is None else as_names(models, "models"),
        patterns,
        samples=samples,
        queries=queries,
        runs=runs,
        seed=seed,
        device=as_device(device),
    )
    result = worlds.run(config, out, workers)
    show(tables.worlds_in_full(result), f"Worlds: {patterns} patterns, {samples} samples, mean of {runs} runs")
    if out:
        console.print(f"report: {out}")
