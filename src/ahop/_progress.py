"""A progress bar for work that turns out to be long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Bar:
    """Counts steps; :func:`progress` shows it once a second has passed."""

    def __init__(self, title: str, total: int | None, show: bool = True) -> None:
        self._title, self._total, self._done, self._show = title, total, 0.0, show
        self._start = time.monotonic()
        self._display: Progress | None = None

    def advance(self, note: str = "", by: float = 1) -> None:
        self._done += by
        # Nobody needs a bar that flashes by, and a log file needs none at all.
        if self._show and self._display is None and time.monotonic() - self._start > 1:
            console = Console(stderr=True)
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
            )
            self._display = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
            self._task = self._display.add_task(self._title, total=self._total, note=note)
            self._display.start()
        if self._display is not None:
            self._display.update(self._task, completed=self._done, note=note)

    def close(self) -> None:
        if self._display is not None:
            self._display.stop()


@contextmanager
def progress(title: str, total: int | None = None, *, show: bool = True) -> Iterator[Bar]:
    """Show how far ``title`` has come, on a terminal and only if it takes longer than a second."""
    bar = Bar(title, total, show)
    try:
        yield bar
    finally:
        bar.close()
