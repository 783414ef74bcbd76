"""``ahop figures``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop._files import require_writable
from ahop.paper import figures
from ahop.paper.commands.common import app, console, plain_errors


@app.command("figures")
@plain_errors
def draw_figures(
    folder: Annotated[Path, typer.Option(help="Where to put clouds.png and example.png.")] = Path("figures"),
) -> None:
    """Draw what corruptions do to a pattern, and how a footprint sees through one: the paper's explanatory figures."""
    require_writable(folder / "clouds.png")
    for name, draw in (("clouds.png", figures.draw_clouds), ("example.png", figures.draw_example)):
        draw(folder / name)
        console.print(f"figure: {folder / name}")
