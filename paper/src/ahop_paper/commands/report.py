"""``ahop-paper report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop._files import require_writable, write_atomically
from ahop_paper.commands.common import app, console, plain_errors
from ahop_paper.pages.documents import filled

PAGES = ("retrieval", "real-data", "trust", "tables", "bags", "images", "speed", "zoo")
DOCUMENTS = [*(Path(f"docs/results/{name}.md") for name in PAGES), Path("docs/what-we-found.md")]


@app.command("report")
@plain_errors
def write_report(
    results: Annotated[Path, typer.Option(help="Folder of the reports.")] = Path("results"),
    document: Annotated[
        list[Path], typer.Option(help="Document whose marked tables are made again; repeat for several.")
    ] = DOCUMENTS,
) -> None:
    """Make the tables of the pages of results and of the findings from the reports."""
    before = [_read(path) for path in document]
    after = [filled(text, results) for text in before]
    for path in document:
        require_writable(path)
    for path, old, new in zip(document, before, after, strict=True):
        if new != old:
            write_atomically(new, path)
        console.print(f"{path}: " + ("tables made again" if new != old else "says what the results say"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        advice = "run ahop-paper report in a checkout of ahop, or name documents with --document"
        raise ValueError(f"{path} cannot be read; {advice}") from error
