"""``ahop-paper mil``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop_paper import mil
from ahop_paper.commands.common import (
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


@app.command("mil")
@plain_errors
def run_mil(
    data: Annotated[str, typer.Option(help="Data sets, separated by commas.")] = ",".join(mil.DATA),
    models: Annotated[str, typer.Option(help="Poolings to compare, separated by commas.")] = ",".join(
        mil.Config.models
    ),
    runs: Runs = 5,
    seed: Seed = 0,
    workers: Workers = 1,
    quick: Annotated[bool, typer.Option("--quick", help="One run with little training, to see that it works.")] = False,
    checks: Annotated[
        bool, typer.Option("--checks", help="Instead, Raff & Holt's checks of what a model may learn, on made-up bags.")
    ] = False,
    out: Out = None,
) -> None:
    """Multiple-instance learning by Hopfield pooling: Table 4 of the paper. With --out, a run is resumable."""
    config = mil.Config(data=as_names(data, "data"), models=as_names(models, "models"), runs=runs, seed=seed)
    if quick:
        config = mil.quick(config)
    if checks:
        _run_checks(config, out, workers)
        return
    result = mil.run(config, out, workers)
    size = f"{config.folds} folds, mean ± std of {config.runs} run{'s' * (config.runs > 1)}; (paper)"
    show(tables.bags(result), f"Area under the curve, {size}")
    if out:
        console.print(f"report: {out}")


def _run_checks(config: mil.Config, out: Path | None, workers: int) -> None:
    models = tuple(dict.fromkeys((*config.models, "monotone")))
    result = mil.run_checks(models, config.runs, config.seed, out, workers)
    title = f"Area under the curve on test bags, mean of {config.runs}; below .5: learned the wrong thing"
    show(tables.checks(result), title)
    if out:
        console.print(f"report: {out}")
