"""``ahop ablations``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop._checks import as_device
from ahop.paper import ablations
from ahop.paper.commands.common import Device, Out, Runs, Seed, app, console, keep, plain_errors
from ahop.paper.pages.markdown import with_spread


@app.command("ablations")
@plain_errors
def run_ablations(
    runs: Runs = 5,
    seed: Seed = 0,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Out = None,
) -> None:
    """What sorting, accumulation, both bases and more samples are good for: the paper's four ablations."""
    config = ablations.Config(runs=runs, seed=seed, device=as_device(device))
    if quick:
        config = ablations.quick(config)
    result = ablations.run(config)
    size = f"{config.patterns} patterns, {config.samples} samples, mean ± std of {config.runs}"
    compared = "; (paper)" if config.published else ""
    table = Table(title=f"Accuracy of a-hop without some of its parts\n{size}{compared}", title_justify="left")
    for column in ("ablation", "condition", *(f"difficulty {value:g}" for value in ablations.DIFFICULTIES)):
        table.add_column(column, justify="right" if column.startswith("difficulty") else "left")
    found = {(row["study"], row["condition"], row["difficulty"]): row for row in result["rows"]}
    before = ""
    for condition in ablations.CONDITIONS:
        cells = []
        for difficulty in ablations.DIFFICULTIES:
            row = found[condition.study, condition.name, difficulty]
            cells.append(with_spread(row["accuracy"], row["paper"]))
        if before and condition.study != before:
            table.add_section()
        table.add_row("" if condition.study == before else condition.study, condition.name, *cells)
        before = condition.study
    console.print(table)
    keep(result, out)
