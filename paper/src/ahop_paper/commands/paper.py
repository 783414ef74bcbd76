"""``ahop-paper paper``."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated

import typer

from ahop._checks import as_device
from ahop_paper import paper, parts, provenance
from ahop_paper.commands.common import Device, Workers, app, as_folder, as_names, console, plain_errors


@app.command("paper")
@plain_errors
def run_paper(
    full: Annotated[bool, typer.Option("--full", help="Full sizes, for a GPU: two cores would need days.")] = False,
    only: Annotated[str | None, typer.Option(help="Files to make, separated by commas; all by default.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where to put what is made; paper-quick or paper-full.")] = None,
    minutes: Annotated[
        float, typer.Option(help="Stop after so many minutes, with exit status 1 if more is left for the next call.")
    ] = math.inf,
    listed: Annotated[bool, typer.Option("--list", help="Only say what there is to make, and what is there.")] = False,
    device: Device = "cpu",
    workers: Workers = 1,
) -> None:
    """Every table and figure of the paper and of the pages of results, quickly or in full.

    What is there already is not made again, and what was begun is gone on with, if the code is the same.
    """
    known = [part.file for part in parts.PARTS]
    wanted = known if only is None else as_names(only, "only")
    for name in wanted:
        if name not in known:
            raise ValueError(f"only must name files of {', '.join(known)}; got {name!r}")
    chosen = [part for part in parts.PARTS if part.file in wanted]
    own = "paper-full" if full else "paper-quick"
    run = parts.Run(folder or Path(own), full, as_device(device), workers, time.monotonic() + 60 * minutes)
    if listed:
        _list(chosen, run)
        return
    paper.require_startable(chosen, run, minutes)
    as_folder(folder, own)
    left = []
    for part in chosen:
        became = paper.make(part, run)
        left += [part.file] if became == paper.LEFT else []
        console.print(f"{part.file}, {part.shows}: {became}", highlight=False)
    if left:
        console.print(f"The time is up with {len(left)} left; the same command goes on.")
        raise typer.Exit(1)


def _list(chosen: list[parts.Part], run: parts.Run) -> None:
    for part in chosen:
        before = paper.there(part, run)
        state = (
            ""
            if before is None
            else f": {provenance.commits(before)}" + (f", {other}" if (other := paper.stale(part, run)) else "")
        )
        pieces = "pieces of " * part.resumable
        console.print(f"{part.file}, {part.shows}, {pieces}{part.minutes} min{state}", highlight=False, soft_wrap=True)
    for file, command in parts.BENCHMARKS.items():
        console.print(f"{file}: {command}", highlight=False)
