"""``ahop report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop.cli.common import app, console, plain_errors
from ahop.pages.readme import filled


@app.command("report")
@plain_errors
def write_report(
    results: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("results"),
    readme: Annotated[Path, typer.Option(help="Document whose marked tables are made anew.")] = Path("README.md"),
) -> None:
    """Make the README's tables from the results."""
    before = readme.read_text()
    after = filled(before, results)
    if after != before:
        readme.write_text(after)
    console.print(f"{readme}: " + ("tables made anew" if after != before else "says what the results say"))
