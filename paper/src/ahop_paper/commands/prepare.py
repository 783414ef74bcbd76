"""``ahop-paper prepare``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop_paper import publishers
from ahop_paper.commands.common import app, console, plain_errors


@app.command("prepare")
@plain_errors
def prepare_data(
    name: Annotated[str, typer.Argument(help="The data set; ahop datasets lists them.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="The publisher's own: files, folders or archives.", show_default=False)
    ] = None,
) -> None:
    """Make of the publisher's files what is loaded here.

    Without any they are downloaded, where no account is needed for that; ahop datasets NAME says where they are.
    """
    made = publishers.prepare(name, files or [])
    for path in made.paths:
        console.print(f"file: {path}", highlight=False, markup=False, soft_wrap=True)
    if not made.same:
        console.print("It holds other values than those that the results of this project were made with.")
