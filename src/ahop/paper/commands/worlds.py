"""``ahop worlds``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop._checks import as_device
from ahop.paper import worlds
from ahop.paper.commands.common import (
    Device,
    Out,
    Runs,
    Seed,
    app,
    as_names,
    console,
    keep,
    plain_errors,
)
from ahop.paper.pages.markdown import figure


@app.command("worlds")
@plain_errors
def run_worlds(
    world: Annotated[
        list[str] | None, typer.Option(help="A world by name; repeat for several; all by default.")
    ] = None,
    models: Annotated[str, typer.Option(help="Networks to compare, separated by commas.")] = "m-hop,b-hop*,b-hop",
    patterns: Annotated[int, typer.Option(help="Stored patterns.")] = 2048,
    samples: Annotated[int, typer.Option(help="Queries to learn from.")] = 512,
    queries: Annotated[int, typer.Option(help="Queries to score on.")] = 1000,
    runs: Runs = 5,
    seed: Seed = 0,
    device: Device = "cpu",
    out: Out = None,
) -> None:
    """How close memories come to the best possible result under many corruptions; b-hop* learns without labels."""
    names = as_names(models, "models")
    config = worlds.Config(
        tuple(world or worlds.WORLDS),
        names,
        patterns,
        samples=samples,
        queries=queries,
        runs=runs,
        seed=seed,
        device=as_device(device),
    )
    result = worlds.run(config)
    table = Table(title=f"Worlds: {patterns} patterns, {samples} samples, mean of {runs} runs", title_justify="left")
    columns = ("first_choice", "fraction_of_oracle", "calibration_error", "rejection_auroc")
    for column in ("world", "model", "1st choice", "of Oracle", "worst run", "calibration error", "strangers AUROC"):
        table.add_column(column, justify="left" if column in ("world", "model") else "right")
    for row in result["rows"]:
        means = [figure(row[column]["mean"]) if column in row else "" for column in columns]
        means.insert(2, figure(min(row["fraction_of_oracle"]["runs"])))
        last = row["model"] == "oracle"
        table.add_row(row["world"] if row["model"] == names[0] else "", row["model"], *means, end_section=last)
    console.print(table)
    keep(result, out)
