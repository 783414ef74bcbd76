"""``ahop-paper figures``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop_paper import figures
from ahop_paper._libraries import require
from ahop_paper.commands.common import app, as_folder, console, plain_errors


@app.command("figures")
@plain_errors
def draw_figures(
    folder: Annotated[Path | None, typer.Option(help="Where to put clouds.png and example.png; figures.")] = None,
) -> None:
    """Draw what corruptions do to a pattern, and how a footprint sees through one: the paper's explanatory figures."""
    require("matplotlib")
    folder = as_folder(folder, "figures")
    for name, draw in (("clouds.png", figures.draw_clouds), ("example.png", figures.draw_example)):
        draw(folder / name)
        console.print(f"figure: {folder / name}")
