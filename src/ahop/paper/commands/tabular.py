"""``ahop tabular``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop._checks import as_device
from ahop.paper import tabular
from ahop.paper.commands.common import (
    Device,
    Out,
    Runs,
    Seed,
    Workers,
    app,
    as_names,
    console,
    plain_errors,
)
from ahop.paper.pages.markdown import figure, with_spread


@app.command("tabular")
@plain_errors
def run_tabular(
    data: Annotated[str, typer.Option(help="Tables, with commas between.")] = ",".join(tabular.DATA),
    models: Annotated[str, typer.Option(help="Models to compare, with commas between.")] = ",".join(
        tabular.Config.models
    ),
    features: Annotated[
        str, typer.Option(help="sound, or benchmark: those of earlier benchmarks, for comparison with the paper.")
    ] = "sound",
    trials: Annotated[int, typer.Option(help="Settings that each model may try on validation rows.")] = 12,
    runs: Runs = 5,
    seed: Seed = 0,
    workers: Workers = 1,
    device: Device = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help="500 rows, one trial, one run: to see that it works.")] = False,
    out: Out = None,
) -> None:
    """Tables: Hopfield networks beside forests and boosted trees, Table 3 of the paper. Can be gone on with by --out.

    In full it wants a GPU: with --device cuda --workers 15 the networks take about a quarter of an hour on an H200 for
    a set of features, and all trees an hour on one core. Two cores would need days.
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
    result = tabular.run(config, out, workers)
    for what, title in (("accuracy", "Accuracy"), ("auc", "Area under the curve")):
        _print(result, config, what, title)
    if any("fit" in row for row in result["rows"]):
        _print(result, config, "fit", f"Time to fit, and to predict, as ratios to {tabular.REFERENCE}'s")
    if out:
        console.print(f"report: {out}")


def _print(result: dict, config: tabular.Config, what: str, title: str) -> None:
    size = (
        ""
        if what == "fit"
        else f", {config.features} features, mean ± std of {config.runs} run{'s' * (config.runs > 1)}"
    )
    papers = any(row["paper"] for row in result["rows"]) and what == "accuracy"
    table = Table(title=title + size + "; (paper)" * papers, title_justify="left")
    for column in ("model", *config.data):
        table.add_column(column, justify="left" if column == "model" else "right")
    found = {(row["data"], row["model"]): row for row in result["rows"]}
    for model in config.models:
        cells = []
        for name in config.data:
            row = found[name, model]
            if what == "fit":
                cells.append(f"{row['fit']:.1f}, {row['predict']:.1f}" if "fit" in row else "not timed")
                continue
            best = max(other[what]["mean"] for other in result["rows"] if other["data"] == name)
            cell = with_spread(row[what])
            paper = f" ({figure(row['paper'])})" if papers and row["paper"] else ""
            cells.append((f"[bold]{cell}[/bold]" if row[what]["mean"] == best else cell) + paper)
        table.add_row(model, *cells)
    console.print(table)
