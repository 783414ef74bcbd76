"""``ahop mil``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ahop.paper import mil
from ahop.paper.commands.common import (
    Out,
    Runs,
    Seed,
    Workers,
    app,
    as_names,
    console,
    keep,
    plain_errors,
)
from ahop.paper.pages.markdown import figure, with_spread


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
        _run_checks(config, out)
        return
    result = mil.run(config, out, workers)
    size = f"{config.folds} folds, mean ± std of {config.runs} run{'s' * (config.runs > 1)}; (paper)"
    table = Table(title=f"Area under the curve, {size}", title_justify="left")
    for column in ("pooling", *config.data):
        table.add_column(column, justify="left" if column == "pooling" else "right")
    found = {(row["data"], row["model"]): row for row in result["rows"]}
    best = {name: max(row["auc"]["mean"] for row in result["rows"] if row["data"] == name) for name in config.data}
    for model in config.models:
        cells = []
        for name in config.data:
            row = found[name, model]
            cell = with_spread(row["auc"])
            paper = f" ({figure(row['paper'])})" if row["paper"] else ""
            cells.append((f"[bold]{cell}[/bold]" if row["auc"]["mean"] == best[name] else cell) + paper)
        table.add_row(model, *cells)
    console.print(table)
    if out:
        console.print(f"report: {out}")


def _run_checks(config: mil.Config, out: Path | None) -> None:
    result = mil.run_checks(tuple(dict.fromkeys((*config.models, "monotone"))), config.runs, config.seed)
    title = (
        f"Area under the curve on training and on test bags, mean of {config.runs}; below .5: learned the wrong thing"
    )
    table = Table(title=title, title_justify="left")
    for column in ("check", "pooling", "training", "test"):
        table.add_column(column, justify="left" if column in ("check", "pooling") else "right")
    for row in result["rows"]:
        table.add_row(row["check"], row["model"], figure(row["train"]["mean"]), figure(row["test"]["mean"]))
    console.print(table)
    keep(result, out)
