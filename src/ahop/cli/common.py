"""What all commands share: the application, and plain errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from rich.console import Console

import ahop
from ahop._extras import MissingExtraError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()


def version_of(command: str) -> Any:
    """The option that says which version a command has."""

    def say(wanted: bool) -> None:
        if wanted:
            console.print(f"{command} {ahop.__version__}", highlight=False)
            raise typer.Exit

    return typer.Option("--version", help="Show the version.", callback=say, is_eager=True)


@app.callback()
def main(version: Annotated[bool, version_of("ahop")] = False) -> None:
    """Associative memory: ten Hopfield networks in one framework, with similarities that learn."""


def plain_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Say what was wrong with an argument in one line instead of a traceback."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except (ValueError, OSError, MissingExtraError) as error:
            line = "error: " + " ".join(str(error).splitlines())
            Console(stderr=True, soft_wrap=True).print(line, style="red", markup=False, highlight=False)
            raise typer.Exit(2) from error

    return run
