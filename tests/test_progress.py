import io
import threading
import time
from types import SimpleNamespace

import pytest

from ahop import _progress
from ahop._progress import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show_on(stream, monkeypatch):
    """Let the bar alone take the stream for standard error, which is pytest's own."""
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=stream))
    return stream


@pytest.fixture
def clock(monkeypatch):
    """Time that passes when a test says so."""
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "70")
    return show_on(Terminal(), monkeypatch)


def run(clock, seconds, title="fit", total=4, note="", **options):
    with progress(title, total, **options) as bar:
        for _ in range(4):
            clock[0] += seconds
            bar.advance(note)


def test_a_bar_is_shown_after_a_second_and_erased_in_the_end(clock, terminal):
    run(clock, 1.0, note="loss 0.5")
    drawn = terminal.getvalue().split("\r\x1b[2K")
    assert drawn[0] == drawn[-1] == ""
    assert drawn[1] == f"fit [{'#' * 20}{'-' * 20}] 0:00:02 loss 0.5"
    assert drawn[-2].startswith(f"fit [{'#' * 40}] 0:00:04")


def test_a_notebook_has_a_bar_without_codes_of_terminals(clock, terminal, monkeypatch):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    show_on(stream, monkeypatch)
    run(clock, 1.0, note="loss 0.5")
    drawn = stream.getvalue().split("\r" + 69 * " " + "\r")
    assert drawn[0] == drawn[-1] == ""
    assert drawn[1] == f"fit [{'#' * 20}{'-' * 20}] 0:00:02 loss 0.5"


def test_no_bar_is_shown_within_a_second(clock, terminal):
    run(clock, 0.25)
    assert terminal.getvalue() == ""


def test_a_bar_that_is_not_asked_for_is_not_shown(clock, terminal):
    run(clock, 10, show=False)
    assert terminal.getvalue() == ""


def test_a_log_file_gets_a_line_every_ten_seconds_of_long_work_and_a_bar_if_it_is_said_to_be_a_terminal(
    clock, terminal, monkeypatch
):
    log = show_on(io.StringIO(), monkeypatch)
    run(clock, 2.0)
    assert log.getvalue() == ""
    run(clock, 6.0, total=None, note="hidden causes")
    assert log.getvalue() == "fit 0:00:12 hidden causes\nfit 0:00:24 hidden causes\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    run(clock, 10)
    assert "\r\x1b[2Kfit [#" in log.getvalue()


def test_a_dumb_terminal_gets_lines_and_no_stream_gets_nothing(clock, terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    run(clock, 10)
    assert terminal.getvalue().endswith("\n") and "\x1b" not in terminal.getvalue()
    show_on(None, monkeypatch)
    run(clock, 10)


def test_a_bar_is_one_line_narrower_than_the_terminal(clock, terminal):
    run(clock, 10, title="many words " * 20, note="two\nlines")
    lines = terminal.getvalue().split("\r\x1b[2K")
    assert max(map(len, lines)) == 69 and not any("\n" in line for line in lines)


def test_work_without_a_known_end_shows_its_time_alone(clock, terminal):
    run(clock, 3600, total=None, note="part")
    assert "fit 1:00:00 part" in terminal.getvalue()


def test_letters_that_a_terminal_lacks_do_not_end_the_work(clock, terminal, monkeypatch):
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    stream.isatty = lambda: True
    show_on(stream, monkeypatch)
    run(clock, 10, title="größe")
    assert b"gr??e [" in raw.getvalue()


def test_a_bar_is_erased_after_an_error(clock, terminal):
    with pytest.raises(ValueError, match="no"), progress("fit", 2) as bar:
        clock[0] += 5
        bar.advance()
        raise ValueError("no")
    assert terminal.getvalue().endswith("\r\x1b[2K")


def waited(stream, for_text):
    """Whether a stream says something within two seconds."""
    end = time.perf_counter() + 2
    while for_text not in stream.getvalue() and time.perf_counter() < end:
        time.sleep(0.005)
    return for_text in stream.getvalue()


@pytest.fixture
def hasty(monkeypatch):
    """A bar without patience, as if its time were over soon."""
    for name in ("PATIENCE", "PAUSE", "LOG_PATIENCE", "LOG_PAUSE", "TICK"):
        monkeypatch.setattr(_progress, name, 0.02)


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_a_single_long_stage_is_named_again_and_again_until_it_is_over(kind, terminal, hasty, monkeypatch):
    stream, before = show_on(kind(), monkeypatch), threading.active_count()
    with progress("fit") as bar:
        bar.advance("plain metrics")
        assert waited(stream, "fit 0:00:00 plain metrics")
        seen = stream.getvalue()
        assert waited(stream, seen + ("fit" if kind is io.StringIO else "\r\x1b[2Kfit"))
    said = stream.getvalue()
    assert threading.active_count() == before
    time.sleep(0.06)
    assert stream.getvalue() == said


def test_bars_within_each_other_end_their_own_threads(terminal, hasty):
    before = threading.active_count()
    with progress("outer"):
        with pytest.raises(ValueError, match="no"), progress("inner"):
            assert threading.active_count() == before + 2 and waited(terminal, "inner") and waited(terminal, "outer")
            raise ValueError("no")
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_stream_that_is_closed_meanwhile_ends_no_work(terminal, hasty, monkeypatch):
    log = show_on(io.StringIO(), monkeypatch)
    with progress("fit"):
        log.close()
        time.sleep(0.06)


def test_a_bar_that_is_not_asked_for_has_no_thread(terminal):
    before = threading.active_count()
    with progress("fit", show=False):
        assert threading.active_count() == before
