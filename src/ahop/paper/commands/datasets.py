"""``ahop datasets``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop import datasets
from ahop.paper.commands.common import app, console, plain_errors


@app.command("datasets")
@plain_errors
def show_datasets(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME | prepare NAME FILES", help="A data set, or what is to be prepared."),
    ] = None,
) -> None:
    """List the data sets; with a name, say where the original is; with prepare, make of it what is loaded here.

    FILES are the publisher's own: files, folders or archives. Without any they are downloaded, where no account is
    needed for that.
    """
    match words:
        case None | []:
            _list()
        case ["prepare", name, *files]:
            _prepare(name, files)
        case ["prepare"]:
            raise ValueError("prepare must be followed by the name of a data set, as in ahop datasets prepare adult")
        case [name]:
            _tell(name)
        case _:
            raise ValueError(f"one data set can be told of at a time, got {' '.join(words)}")


def _list() -> None:
    table = Table(title="Data sets", title_justify="left")
    table.add_column("name", no_wrap=True)
    for column in ("what it is", "where"):
        table.add_column(column)
    for name, entry in sorted(datasets.ENTRIES.items()):
        table.add_row(name, entry.about, entry.where() if entry.folder is None else "here")
    console.print(table)
    console.print('ahop datasets NAME says more. Load one with ahop.datasets.load("digits").', highlight=False)


def _tell(name: str) -> None:
    entry = datasets.ENTRIES.named(name)
    lines = [("what it is", entry.about), ("where", entry.where())]
    if origin := entry.origin:
        lines += [("published at", origin.page), ("licence", origin.licence), ("size", origin.size)]
        lines += [("needed", ", ".join(origin.files))] if origin.files else []
        lines += [("note", origin.note)] if origin.note else []
        if origin.url or all(file.url for file in entry.files):
            lines.append(("to get it", f"ahop datasets prepare {name}"))
        if origin.files:
            lines.append(("from files", f"ahop datasets prepare {name} FILES, in folders or archives or by themselves"))
    for key, value in lines:
        # Addresses and commands are copied, so that nothing may break them.
        console.print(f"{key + ':':<14}{value}", highlight=False, markup=False, soft_wrap=True)


def _prepare(name: str, files: list[str]) -> None:
    made = datasets.prepare(name, files)
    for path in made.paths:
        console.print(f"file: {path}", highlight=False, markup=False, soft_wrap=True)
    if not made.same:
        console.print("It holds other values than those that the results of this project were made with.")
