"""What all commands share: the application, plain errors, and how options and figures are read and written."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ahop.experiments import report

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Associative memory: every Hopfield network in one framework, with similarities that learn.",
)
console = Console()

Out = Annotated[Path | None, typer.Option(metavar="FILE.json", help="Where to write the report.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1, ...; auto.")]
Seed = Annotated[int, typer.Option(help="Seed of the first run.")]
Runs = Annotated[int, typer.Option(help="Repetitions, each with a seed of its own.")]


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Say what was wrong with an argument in one line instead of a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError) as error:
            Console(stderr=True, soft_wrap=True).print(f"error: {error}", style="red", markup=False, highlight=False)
            raise typer.Exit(2) from error

    return run


def require_file(path: Path | None, *endings: str) -> None:
    """Refuse a file that could not be written; before the work, not after it."""
    if path and (path.suffix not in endings or path.is_dir()):
        raise ValueError(f"{path} must be a file that ends in {' or '.join(sorted(endings))}")


def keep(result: dict[str, Any], out: Path | None) -> None:
    """Write the report where it is wanted, and say so."""
    if out:
        report.write(result, out)
        console.print(f"report: {out}")


def as_names(text: str) -> tuple[str, ...]:
    """What stands between commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
