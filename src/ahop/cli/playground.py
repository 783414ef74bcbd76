"""``ahop playground``."""

from __future__ import annotations

from typing import Annotated

import typer

from ahop._extras import require
from ahop.cli.common import app, console, plain_errors


@app.command()
@plain_errors
def playground(
    host: Annotated[
        str, typer.Option(help="Where to listen; others can only come in if you name another.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Where a browser finds the page.")] = 7860,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Open a page to play with memories: damage pictures, watch them learn, try data of your own."""
    require("gradio", extra="playground")
    from ahop.playground import page

    running = page.start(host, port, browser=browser)
    console.print(f"playground: {running.local_url} (Ctrl+C stops it)", highlight=False)
    running.block_thread()
