"""``ahop-paper tabular``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import tabular
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


@app.command("tabular")
@plain_errors
def run_tabular(
    data: Annotated[str, typer.Option(help="Tables, separated by commas.")] = ",".join(tabular.DATA),
    models: Annotated[str, typer.Option(help="Models to compare, separated by commas.")] = ",".join(
        tabular.Config.models
    ),
    features: Annotated[
        str, typer.Option(help="sound, or benchmark: those of earlier benchmarks, for comparison with the paper.")
    ] = "sound",
    trials: Annotated[int, typer.Option(help="Settings that each model may try on validation rows.")] = 12,
    runs: Runs = 5,
    seed: Annotated[int, typer.Option(help="The first split; 0 is the published one.")] = 0,
    workers: Workers = 1,
    device: Device = "cpu",
    quick: Annotated[
        bool, typer.Option("--quick", help="500 rows, one trial, one split: to see that it works.")
    ] = False,
    join: Join = None,
    out: Out = None,
) -> None:
    """Tables, by Hopfield networks, forests and boosted trees: Table 3 of the paper. With --out, a run is resumable.

    A full run needs a GPU for the networks, and many cores for the votes of trees. Two cores would need days. Machines
    can share it, by splits or models, each with a file of its own for --join.
    """
    config = tabular.Config(
        data=as_names(data, "data"),
        models=as_names(models, "models"),
        features=features,
        trials=trials,
        runs=runs,
        seed=seed,
        device=as_device(device),
    )
    if quick:
        config = tabular.quick(config)
    result = tabular.run(config, out, workers) if join is None else joined(tabular.join, config, join, out)
    size = f"{config.features} features, mean ± std of {config.runs} split{'s' * (config.runs > 1)}"
    papers = "; (paper)" * any(row["paper"] for row in result["rows"])
    show(tables.accuracies(result), f"Accuracy, {size}{papers}")
    show(tables.areas(result), f"Area under the curve, {size}")
    if any("fit" in row for row in result["rows"]):
        show(tables.ratios_to_trees(result), f"Time to fit, and to predict, as ratios to {tabular.REFERENCE}'s")
    if out:
        console.print(f"report: {out}")
