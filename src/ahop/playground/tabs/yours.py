"""Your data: two tables, which row is which, and how other methods do on origins that they have not learned from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ahop import linkage
from ahop._extras import require
from ahop.linkage import Linkage
from ahop.playground import sent, upload, views, widgets, yours
from ahop.playground.draw import safe
from ahop.playground.sent import File
from ahop.playground.yours import Row

_INTRODUCTION = f"""
Drop a table of things that are stored, and one of rows that came in. **b-hop** learns what happened to the rows on
their way and finds the stored row that each one is; known pairs, if there are any, judge it beside plain methods. At
most {upload.MOST_ROWS:,} rows of {upload.MOST_COLUMNS:,} columns and {sent.MOST_TABLE_BYTES // 2**20} MB a table;
nothing is written to disk. Hundreds of rows take seconds, thousands minutes, and the largest tables may take hours. It
compares numbers, not names, streets and dates: for these, take Splink.
"""
_TABLES = ".csv,.tsv,.txt,.npy,.npz"


def lay_out() -> None:
    """Everything of this part."""
    require("gradio", extra="playground")
    import gradio as gr

    example = yours.example()
    gr.Markdown(_INTRODUCTION)
    with gr.Row():
        with gr.Column(min_width=280):
            stored = widgets.drop("Stored: a table of what you have", _TABLES, bytes=sent.MOST_TABLE_BYTES)
            incoming = widgets.drop("Incoming: a table of what came in", _TABLES, bytes=sent.MOST_TABLE_BYTES)
            pairs = widgets.drop("Known pairs, if you have any", ".csv,.tsv,.txt")
            once = gr.Checkbox(False, label="Each stored row is meant at most once")
            go = gr.Button("Match", variant="primary", elem_id="yours-go")
        with gr.Column(min_width=280):
            gr.Markdown(upload.FORMATS)
            try_it = gr.Button("Try it with an example", elem_id="yours-example")
            gr.HTML("Save it: " + views.saved(example), apply_default_css=False)
    shown = gr.HTML(apply_default_css=False, elem_id="yours-shown")

    heavy: dict[str, Any] = {"show_progress": "minimal", "api_visibility": "private", "concurrency_id": "work"}
    go.click(_sent, [stored, incoming, pairs, once], shown, **heavy)
    try_it.click(lambda once: (yield from matched(*example, once=bool(once))), once, shown, **heavy)


def _sent(stored: str, incoming: str, pairs: str, once: bool) -> Iterator[str]:
    try:
        if not stored or not incoming:
            raise sent.UploadError("Two tables are needed: what is stored, and what came in.")
        (first,), (second,) = (sent.files(text, bytes=sent.MOST_TABLE_BYTES) for text in (stored, incoming))
        third = sent.files(pairs)[0] if pairs else None
    except sent.UploadError as error:
        yield views.message(str(error))
        return
    yield from matched(first, second, third, once=bool(once))


def matched(stored: File, incoming: File, pairs: File | None = None, *, once: bool = False) -> Iterator[str]:
    """The page after each step; what is wrong with a file is said in a sentence.

    Args:
        stored, incoming: The two tables.
        pairs: Known pairs, if any.
        once: Match each stored row at most once.
    """
    try:
        held, asked = upload.table(stored), upload.table(incoming)
        origins = None if pairs is None else upload.origins(pairs, held, asked)
        head = f"<p>{safe(held)}</p><p>{safe(asked)}</p>"
        yield head + views.waiting("learning what happened to the rows …")
        found = linkage.link(held, asked, origins, one_to_one=once, verbose=False)
        head += views.linkage(found) + views.matches(found)
        yield head + views.waiting("drawing the report …")
        head += f"<p>Save: {views.saved(yours.downloads(found))}</p>"
        command = yours.command(stored.name, incoming.name, None if pairs is None else pairs.name, once=once)
        end = f'<h4>The same in a terminal</h4><pre class="code"><code>{safe(command)}</code></pre>'
        for compared in _compared(found):
            yield head + compared + end
    except ValueError as error:
        yield views.message(str(error))


def _compared(found: Linkage) -> Iterator[str]:
    """Every method on held-out origins, if enough pairs are known."""
    try:
        halves = yours.split(found.origins)
    except sent.UploadError as error:
        yield f'<p class="note">{safe(error)}</p>'
        return
    head = (
        f"<h4>Other methods, on {len(halves.score):,} known pairs</h4>"
        f'<p class="note">Each has learned from {len(halves.learn):,} pairs of other stored rows.</p>'
    )
    rows: list[Row] = []
    yield head + views.waiting("the first method is asked …")
    for row in yours.rows(found, halves):
        rows.append(row)
        yield head + views.table(rows, len(yours.METHODS))
    head += f'<div class="film">{views.table(rows, len(rows))}{views.calibration(rows)}</div>'
    memory = next((row.memory for row in rows if row.method is yours.B_HOP), None)
    yield head + views.trust(() if memory is None else yours.curves(memory, found, halves))
