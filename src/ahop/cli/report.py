"""``ahop report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop.cli.common import app, console, plain_errors, require_file
from ahop.experiments.report import write_whole
from ahop.pages import page as pages
from ahop.pages.readme import filled


@app.command("report")
@plain_errors
def write_report(
    results: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("results"),
    readme: Annotated[Path, typer.Option(help="Document whose marked tables are made anew.")] = Path("README.md"),
    page: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Where to write all of it as one page.")
    ] = None,
) -> None:
    """Make the README's tables from the results, and one page of all of them."""
    require_file(page, ".html")
    before = readme.read_text()
    after = filled(before, results)
    if after != before:
        write_whole(after, readme)
    if page:
        write_whole(pages.page(results), page)
        console.print(f"page: {page}")
    console.print(f"{readme}: " + ("tables made anew" if after != before else "says what the results say"))
