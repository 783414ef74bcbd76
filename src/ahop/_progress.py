"""A progress bar for work that turns out to be long."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# Seconds before the first picture, since nobody needs a bar that flashes by, and between two of them.
PATIENCE, PAUSE = 1.0, 0.1
# The same for the lines of a log file.
LOG_PATIENCE, LOG_PAUSE = 10.0, 10.0
# Seconds between two pictures of a stage that says nothing of itself: so often does its time change.
TICK = 1.0
WIDTH = 40
# Bars of several threads share a stream.
_LOCK = threading.Lock()


class Bar:
    """Counts steps; :func:`progress` shows it once some time has passed.

    A thread draws what was last said while a long stage says nothing. It ends with the bar.

    Args:
        title: What is being done.
        total: How many steps that takes; None if unknown.
        show: Whether to show anything.
    """

    def __init__(self, title: str, total: int | None, show: bool = True) -> None:
        self._title, self._total, self._done, self._note = title, total, 0.0, ""
        self._start = time.monotonic()
        self._show, self._drawn = show and sys.stderr is not None, False
        # A log file needs no bar, but a line now and then says what a long work is at.
        self._log = not (_on_terminal() or _in_notebook())
        self._patience, self._pause = (LOG_PATIENCE, LOG_PAUSE) if self._log else (PATIENCE, PAUSE)
        self._next = self._start + self._patience
        self._closed, self._watcher = threading.Event(), threading.Thread(target=self._watch, daemon=True)
        if self._show:
            self._watcher.start()

    def advance(self, note: str = "", by: float = 1) -> None:
        self._done, self._note = self._done + by, note
        if self._show:
            self._draw()

    def close(self) -> None:
        self._closed.set()
        if self._show:
            self._watcher.join()
        if self._drawn and not self._log:
            with _LOCK:
                _write(_erase())

    def _watch(self) -> None:
        """Draw whenever nothing has been drawn for long, until the bar is closed."""
        wait = self._patience
        # What cannot be written on is no reason for a thread to complain.
        with suppress(OSError, ValueError):
            while not self._closed.wait(wait):
                self._draw()
                wait = max(self._pause, TICK)

    def _draw(self) -> None:
        """One picture, unless the last one is too recent."""
        with _LOCK:
            now = time.monotonic()
            if now <= self._next:
                return
            self._next, self._drawn = now + self._pause, True
            line = self._line(self._note, int(now - self._start))
            _write(f"{line}\n" if self._log else _erase() + line)

    def _line(self, note: str, seconds: int) -> str:
        parts = [self._title]
        if self._total:
            full = min(WIDTH, int(WIDTH * self._done / self._total))
            parts.append(f"[{'#' * full}{'-' * (WIDTH - full)}]")
        parts += [f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}", note]
        # One line, so that it can be erased: a terminal breaks what is wider than itself.
        return " ".join(" ".join(parts).split())[: max(1, shutil.get_terminal_size().columns - 1)]


def _on_terminal() -> bool:
    """Whether who reads standard error sees a terminal, or has said so with ``FORCE_COLOR``."""
    if sys.stderr is None or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stderr.isatty()


def _in_notebook() -> bool:
    """Whether standard error is a notebook's, which goes back to the start of a line as a terminal does."""
    return sys.stderr is not None and type(sys.stderr).__module__.startswith("ipykernel")


def _erase() -> str:
    if _in_notebook():
        # A notebook does not know the code for it.
        return "\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r"
    return "\r\x1b[2K"


def _write(text: str) -> None:
    # A terminal that lacks a letter is no reason for the work to fail.
    encoding = sys.stderr.encoding or "ascii"
    sys.stderr.write(text.encode(encoding, "replace").decode(encoding))
    sys.stderr.flush()


@contextmanager
def progress(title: str, total: int | None = None, *, show: bool = True) -> Iterator[Bar]:
    """Show how far ``title`` has come: on a terminal or in a notebook if it takes longer than a second, and as a line
    every ten seconds in a log file.

    Args:
        title: What is being done.
        total: How many steps that takes; None if unknown.
        show: Whether to show anything.

    Returns:
        The bar, to advance.
    """
    bar = Bar(title, total, show)
    try:
        yield bar
    finally:
        bar.close()
