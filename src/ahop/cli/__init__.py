"""The command line for users of the library: one file a command, which joins by being there."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ahop._extras import MissingExtraError, require
from ahop._registry import read_all

app: Callable[[], None]
try:
    require("typer", "rich", extra="cli")
except MissingExtraError as error:
    _line = f"error: {error}"

    def app() -> None:
        """Say what is missing, and that nothing was done."""
        print(_line, file=sys.stderr)
        sys.exit(2)

else:
    from ahop.cli.common import app

    read_all(__name__, __path__)

__all__ = ["app"]
