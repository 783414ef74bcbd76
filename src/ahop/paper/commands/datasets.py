"""``ahop datasets``."""

from __future__ import annotations

from rich.table import Table

from ahop import datasets
from ahop.paper.commands.common import app, console


@app.command("datasets")
def list_datasets() -> None:
    """List the data sets, and where their files are."""
    table = Table(title="Data sets", title_justify="left")
    for column in ("name", "what it is", "where"):
        table.add_column(column)
    for name, entry in sorted(datasets.ENTRIES.items()):
        table.add_row(name, entry.about, entry.where())
    console.print(table)
    console.print('Load one with ahop.datasets.load("digits"). Set AHOP_DATA to a folder that holds the files.')
