"""``ahop real``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop.paper import real
from ahop.paper.commands.common import Out, app, as_names, console, keep, plain_errors
from ahop.paper.pages.markdown import figure


@app.command("real")
@plain_errors
def run_real(
    data: Annotated[str, typer.Option(help="Data sets, with commas between.")] = ",".join(real.NAMES),
    models: Annotated[str, typer.Option(help="Models, with commas between; b-hop* sees no labels.")] = ",".join(
        real.MODELS
    ),
    samples: Annotated[int, typer.Option(help="Labelled queries for a-hop and whitening, at most.")] = 2048,
    seed: Annotated[int, typer.Option(help="Seed of what is held out.")] = 0,
    out: Out = None,
) -> None:
    """Retrieval of items measured twice: tablets by two instruments, drifting sensors, Wi-Fi by many phones."""
    names, chosen = as_names(data, "data"), as_names(models, "models")
    result = real.run(real.Config(names, chosen, samples, seed))
    table = Table(title="First choice is right, on items that were not learned from", title_justify="left")
    for column in ("model", "learns from", *names):
        table.add_column(column, justify="left" if column in ("model", "learns from") else "right")
    found = {(row["data"], row["model"]): row["accuracy"] for row in result["rows"]}
    for model in chosen:
        table.add_row(model, real.LEARNS[model], *(figure(found[name, model]) for name in names))
    console.print(table)
    _say_whether_adaptation_helps(found, names, chosen)
    keep(result, out)


def _say_whether_adaptation_helps(
    found: dict[tuple[str, str], float], names: tuple[str, ...], chosen: tuple[str, ...]
) -> None:
    fixed = [model for model in chosen if real.LEARNS[model] == "nothing"]
    for name in names if fixed and "b-hop*" in chosen else ():
        best, ours = max(found[name, model] for model in fixed), found[name, "b-hop*"]
        verdict = "helps" if ours > 1.1 * best else "hardly helps" if ours >= best else "does harm"
        console.print(f"{name}: learning without labels {verdict} ({figure(ours)} against {figure(best)} fixed)")
