"""``ahop paper``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop._checks import as_device
from ahop._files import require_writable
from ahop.paper import paper
from ahop.paper.commands.common import Device, Workers, app, as_names, console, plain_errors


@app.command("paper")
@plain_errors
def run_paper(
    full: Annotated[bool, typer.Option("--full", help="Full sizes, for a GPU: two cores would need days.")] = False,
    only: Annotated[str | None, typer.Option(help="Files to make, separated by commas; all by default.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where to put what is made; paper-quick or paper-full.")] = None,
    device: Device = "cpu",
    workers: Workers = 1,
) -> None:
    """Every table and figure of the paper, quickly or in full. What is there already is not made again."""
    known = [part.file for part in paper.PARTS]
    wanted = known if only is None else as_names(only, "only")
    for name in wanted:
        if name not in known:
            raise ValueError(f"only must name files of {', '.join(known)}; got {name!r}")
    folder = folder or Path("paper-full" if full else "paper-quick")
    require_writable(folder / known[0])
    run = paper.Run(folder, full, as_device(device), workers)
    for part in paper.PARTS:
        if part.file in wanted:
            console.print(f"{part.file}, {part.shows}: {paper.make(part, run)}", highlight=False)
