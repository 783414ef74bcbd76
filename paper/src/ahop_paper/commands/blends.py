"""``ahop-paper blends``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop_paper import blends
from ahop_paper.commands.common import Out, Runs, Seed, app, keep, plain_errors, show
from ahop_paper.pages import tables


@app.command("blends")
@plain_errors
def run_blends(
    runs: Runs = 5,
    seed: Seed = 0,
    quick: Annotated[bool, typer.Option("--quick", help="A small size that ends in a minute.")] = False,
    out: Out = None,
) -> None:
    """How often the whole set comes back where a query is the mean of several patterns."""
    config = blends.Config(runs=runs, seed=seed)
    if quick:
        config = blends.quick(config)
    result = blends.run(config)
    size = f"{config.patterns} patterns, {config.queries} queries, mean of {config.runs} runs, 95 % confidence interval"
    show(tables.blends(result), f"Share of queries whose whole set comes back\n{size}")
    keep(result, out)
