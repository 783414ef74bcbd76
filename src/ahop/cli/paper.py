"""``ahop paper``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop._checks import as_device
from ahop.cli.common import Device, app, as_names, console, plain_errors
from ahop.experiments import paper


@app.command("paper")
@plain_errors
def run_paper(
    full: Annotated[bool, typer.Option("--full", help="Full sizes, for a GPU: two cores would need days.")] = False,
    only: Annotated[str, typer.Option(help="Files to make, with commas between; all if nothing is said.")] = "",
    folder: Annotated[Path | None, typer.Option(help="Where to put what is made; paper-quick or paper-full.")] = None,
    device: Device = "cpu",
    workers: Annotated[int, typer.Option(help="Processes to share the work; -1 is one a core.")] = 1,
) -> None:
    """Every table and figure of the paper, quickly or in full. What is there already is not made again."""
    wanted = as_names(only)
    known = [part.file for part in paper.PARTS]
    for name in wanted:
        if name not in known:
            raise ValueError(f"only must name files of {', '.join(known)}; got {name!r}")
    if workers == 0:
        raise ValueError("workers must be at least 1, or -1 for one a core; got 0")
    folder = folder or Path("paper-full" if full else "paper-quick")
    run = paper.Run(folder, full, as_device(device), workers)
    for part in paper.PARTS:
        if not wanted or part.file in wanted:
            console.print(f"{part.file}, {part.shows}: {paper.make(part, run)}", highlight=False)
