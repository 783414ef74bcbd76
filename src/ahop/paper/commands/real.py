"""``ahop real``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ahop.paper import real
from ahop.paper.commands.common import Out, app, as_names, console, keep, plain_errors, show
from ahop.paper.pages import tables
from ahop.paper.pages.markdown import figure


@app.command("real")
@plain_errors
def run_real(
    data: Annotated[str, typer.Option(help="Data sets, separated by commas.")] = ",".join(real.Config().data),
    models: Annotated[str, typer.Option(help="Models, separated by commas; b-hop* sees no labels.")] = ",".join(
        real.MODELS
    ),
    samples: Annotated[int, typer.Option(help="Labelled queries for a-hop and whitening, at most.")] = 2048,
    seed: Annotated[int, typer.Option(help="Seed of what is held out.")] = 0,
    out: Out = None,
) -> None:
    """Retrieval of items that were measured twice, by instruments and in places that differ."""
    config = real.Config(as_names(data, "data"), as_names(models, "models"), samples, seed)
    result = real.run(config)
    show(tables.real(result), "First choice is right, on items that were not learned from")
    _say_whether_adaptation_helps(result["rows"])
    keep(result, out)


def _say_whether_adaptation_helps(rows: list[dict[str, Any]]) -> None:
    for name in dict.fromkeys(row["data"] for row in rows):
        found = {row["model"]: row["accuracy"] for row in rows if row["data"] == name}
        fixed = [accuracy for model, accuracy in found.items() if real.MODELS[model].learns == real.NOTHING]
        if fixed and "b-hop*" in found:
            best, ours = max(fixed), found["b-hop*"]
            verdict = "helps" if ours > 1.1 * best else "hardly helps" if ours >= best else "does harm"
            console.print(f"{name}: learning without labels {verdict} ({figure(ours)} against {figure(best)} fixed)")
