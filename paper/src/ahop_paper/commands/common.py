"""What all commands share: the application, plain errors, and how options and figures are read and written."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ahop._files import own_folder, require_writable
from ahop.cli import common as plain
from ahop.cli.common import console
from ahop_paper import report
from ahop_paper.pages.markdown import Grid

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Out = Annotated[Path | None, typer.Option(metavar="FILE.json", help="Where to write the report.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1 and so on, or auto.")]
Seed = Annotated[int, typer.Option(help="Seed of the first run.")]
Runs = Annotated[int, typer.Option(help="Repetitions, each with a seed of its own.")]
Workers = Annotated[int, typer.Option(help="Processes that share the work; -1 for one per core.")]
Join = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE,FILE", help="Run nothing: make one report of these, which several machines wrote."),
]


@app.callback()
def main(version: Annotated[bool, plain.version_of("ahop-paper")] = False) -> None:
    """The experiments beside the library ahop: every table and figure of the paper and of the pages of results."""


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Say what was wrong with an argument in one line instead of a traceback, and before the work where it can be."""

    @wraps(command)
    def checked(*args: Any, **kwargs: Any) -> None:
        _check_shared(kwargs)
        command(*args, **kwargs)

    return plain.plain_errors(checked)


def _check_shared(options: dict[str, Any]) -> None:
    """Refuse what no command can do with the options that many have."""
    if "seed" in options:
        report.require_seed(options["seed"])
    if "runs" in options and options["runs"] < 1:
        raise ValueError(f"runs must be at least 1, got {options['runs']}")
    if "workers" in options and (options["workers"] == 0 or options["workers"] < -1):
        raise ValueError(f"workers must be at least 1, or -1 for one per core; got {options['workers']}")
    if options.get("join") is not None and options.get("quick"):
        raise ValueError("join takes whole runs; leave quick out")
    require_file(options.get("out"), ".json")


def require_file(path: Path | None, *endings: str) -> None:
    """Refuse a file that could not be written; before the work, not after it."""
    if path is None:
        return
    if path.suffix not in endings or path.is_dir():
        raise ValueError(f"{path} must be a file that ends in {' or '.join(sorted(endings))}")
    require_writable(path)


def as_folder(given: Path | None, own: str) -> Path:
    """A folder to write into: the one that was asked for, which must be there, or the command's own, which is made."""
    folder = own_folder(own) if given is None else given
    require_writable(folder / "x")
    return folder


def show(grid: Grid, title: str) -> None:
    """Print a table as documents and the page have it; lines that leave their first cell out belong to those above."""
    table = Table(title=title, title_justify="left")
    for place, head in enumerate(grid.head):
        cells = [line[place] for line in grid.lines if line[place]]
        figures = place > 0 and all(re.match(r"\W*\d", cell) for cell in cells)
        table.add_column(_marked(head), justify="right" if figures else "left")
    parted = any(not line[0] for line in grid.lines)
    for line in grid.lines:
        if parted and line[0]:
            table.add_section()
        table.add_row(*map(_marked, line))
    console.print(table)


def _marked(cell: str) -> str:
    """The marks of Markdown as those of the terminal."""
    return re.sub(r"\*\*(.+?)\*\*(?!\*)", r"[bold]\1[/bold]", escape(cell)).replace("`", "")


def keep(result: dict[str, Any], out: Path | None) -> None:
    """Write the report where it is wanted, and say so."""
    if out:
        report.write(result, out)
        console.print(f"report: {out}")


def joined(
    join: Callable[[Any, tuple[str, ...]], dict[str, Any]], config: Any, files: list[str], out: Path | None
) -> dict[str, Any]:
    """One report of several files, by the experiment's own ``join``, as it stands there.

    Args:
        join: The experiment's own function, called as ``join(config, files)``.
        config: What to run.
        files: The reports; names may be separated by commas.
        out: Where to write; None writes nothing.
    """
    # The option may be given more than once, too: none of the files is forgotten.
    result = join(config, as_names(",".join(files), "join"))
    if out:
        report.write_as_is(result, out)
    return result


def as_names(text: str, option: str) -> tuple[str, ...]:
    """What stands between commas, each once; at least one."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ValueError(f"{option} must name at least one, separated by commas; got {text!r}")
    return names
