"""``ahop datasets``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ahop.cli.common import app, console, plain_errors
from ahop.cli.moved import is_now


@app.command("datasets")
@plain_errors
def show_datasets(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="A data set to describe."),
    ] = None,
) -> None:
    """List the data sets; with a name, say where the original is, its licence and size, and how to get it."""
    match words:
        case None | []:
            _list()
        case ["prepare", *_]:
            raise is_now("datasets prepare", "prepare")
        case [name]:
            _describe(name)
        case _:
            raise ValueError(f"one data set can be described at a time, got {' '.join(words)}")


def _list() -> None:
    from ahop import datasets

    table = Table(title="Data sets", title_justify="left")
    table.add_column("name", no_wrap=True)
    for column in ("what it is", "where"):
        table.add_column(column)
    for name, entry in sorted(datasets.ENTRIES.items()):
        table.add_row(name, entry.about, entry.where() if entry.folder is None else "here")
    console.print(table)
    console.print('ahop datasets NAME says more. Load one with ahop.datasets.load("digits").', highlight=False)


def _describe(name: str) -> None:
    from ahop import datasets

    entry = datasets.ENTRIES.named(name)
    lines = [("what it is", entry.about), ("where", entry.where())]
    if origin := entry.origin:
        lines += [("published at", origin.page), ("licence", origin.licence), ("size", origin.size)]
        lines += [("needed", ", ".join(origin.files))] if origin.files else []
        lines += [("note", origin.note)] if origin.note else []
        if entry.files and all(file.url for file in entry.files):
            lines.append(("to get it", f'ahop.datasets.load("{name}") downloads it'))
        elif entry.files and origin.url:
            lines.append(("to get it", f"ahop-paper prepare {name} (pip install ahop-paper)"))
        if origin.files:
            lines.append(("from files", f"ahop-paper prepare {name} FILES, in folders or archives or by themselves"))
    for key, value in lines:
        # Addresses and commands are copied, so that nothing may break them.
        console.print(f"{key + ':':<14}{value}", highlight=False, markup=False, soft_wrap=True)
