"""What all commands share: the application, and plain errors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from ahop._extras import MissingExtraError
from ahop._version import __version__

if TYPE_CHECKING:
    from ahop import linkage, tables

Files = Annotated[
    list[Path], typer.Argument(metavar="STORED INCOMING", help="Two tables; with --model, INCOMING alone.")
]

# What most people come for; other commands follow as they are read.
_FIRST = ("match", "adapt", "playground", "datasets")


class _MostWantedFirst(TyperGroup):
    def list_commands(self, context: Any) -> list[str]:
        names = super().list_commands(context)
        return sorted(names, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


app = typer.Typer(cls=_MostWantedFirst, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()


def version_of(command: str) -> Any:
    """The option that says which version a command has."""

    def say(wanted: bool) -> None:
        if wanted:
            console.print(f"{command} {__version__}", highlight=False)
            raise typer.Exit

    return typer.Option("--version", help="Show the version.", callback=say, is_eager=True)


@app.callback()
def main(version: Annotated[bool, version_of("ahop")] = False) -> None:
    """Associative memory: thirteen Hopfield networks in one framework, with similarities that learn."""


def say(key: str, text: str) -> None:
    """A line of a report: a word, and a sentence on it, which a terminal breaks and a log does not."""
    table = Table.grid(padding=(0, 2))
    table.add_column(width=13, no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    table.add_row(key, Text(text))
    if console.is_terminal:
        console.print(table)
    else:
        console.print(f"{key:13}  {text}", highlight=False, markup=False, soft_wrap=True)


def read_incoming(path: Path, id: str | None, incoming_id: str | None, measured: Collection[str] = ()) -> tables.Table:
    """Read the incoming table, whose column of ids has the stored one's name unless it was given one of its own.

    Args:
        path: The file.
        id: The column of ids of the stored table; None finds one.
        incoming_id: That of this table; None is ``id``.
        measured: Columns that hold no ids, whatever they look like.
    """
    from ahop import tables

    try:
        return tables.read(path, id if incoming_id is None else incoming_id, measured)
    except tables.MissingColumnError as error:
        raise ValueError(f"{error}; --incoming-id names another") from None


def read_tables(
    files: list[Path], id: str | None, incoming_id: str | None, folder: Path | None
) -> tuple[tables.Table | linkage.Model, tables.Table]:
    """Read what is stored, or the model that was made of it, and what comes in; and say so.

    Args:
        files: STORED and INCOMING, or INCOMING alone.
        id: The column of ids of the stored table; None finds one.
        incoming_id: That of the incoming one; None is ``id``.
        folder: That of a model; None where there is none.
    """
    from ahop import linkage, tables

    if len(files) != (1 if folder else 2):
        wanted = "INCOMING alone, since --model holds what is stored" if folder else "two, STORED and INCOMING"
        raise ValueError(f"files must be {wanted}; got {' '.join(map(str, files))}")
    if folder is None:
        table = tables.read(files[0], id)
        say("stored", str(table))
        incoming = read_incoming(files[1], id, incoming_id)
        say("incoming", str(incoming))
        return table, incoming
    model = linkage.Model.load(folder)
    say("stored", f"{model.stored}; as saved in {folder}")
    incoming = read_incoming(files[0], id, incoming_id, model.columns)
    say("incoming", str(incoming))
    return model, incoming


def keep(read: Iterable[Path | None], written: Mapping[str, Path | None]) -> None:
    """Refuse to write over a file that is read.

    Args:
        read: Files that are read; None where there is none.
        written: Those that will be written, by the option that says so.
    """
    there = [path for path in read if path is not None and path.exists()]
    for option, path in written.items():
        if path is not None and path.exists() and any(map(path.samefile, there)):
            raise ValueError(f"{option} would write over {path}, which is read here")


def spare_answers(written: Mapping[str, Path | None]) -> None:
    """Refuse to write over rows that somebody has checked.

    Args:
        written: Where tables go, by the option that says so; None where none does.
    """
    from ahop import linkage
    from ahop.tables.table import counted

    for option, path in written.items():
        if path is not None and (given := linkage.answers_in(path)):
            raise ValueError(
                f"{option} would write over {path}, in which somebody has given {counted(given, 'answer')}: give "
                "--out another name"
            )


def apart(written: Mapping[str, Path | None]) -> None:
    """Refuse to write two things to one place.

    Args:
        written: Where each goes, by what a message calls it; None where it is not written.
    """
    taken: dict[Path, str] = {}
    for option, path in written.items():
        if path is not None and (other := taken.setdefault(path.resolve(), option)) != option:
            raise ValueError(f"{option} would write over {other}, since both are {path}: give one another name")


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
