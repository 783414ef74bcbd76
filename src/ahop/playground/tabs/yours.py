"""Your data: a file of patterns and queries, and how each memory does on origins that it has not learned from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ahop._extras import require
from ahop.playground import upload, views, widgets, yours
from ahop.playground.draw import safe
from ahop.playground.upload import Data, File
from ahop.playground.yours import Row

_INTRODUCTION = f"""
Drop a file of things that were stored and of what came to ask for them. Memories learn on half of the origins and
are scored on the other half. At most {upload.MOST_PATTERNS} patterns, {upload.MOST_QUERIES} queries,
{upload.MOST_COLUMNS} columns and {upload.MOST_BYTES // 2**20} MB; nothing is written to disk.
"""


def lay_out() -> None:
    """Everything of this part."""
    require("gradio", extra="playground")
    import gradio as gr

    example = yours.example()
    gr.Markdown(_INTRODUCTION)
    with gr.Row():
        with gr.Column(min_width=280):
            drop = widgets.drop("Drop a CSV or NPZ file here, or choose it", ".csv,.npz")
            go = gr.Button("Try it with an example", elem_id="yours-example")
            save = f'<a class="save" href="{yours.link(example)}" download="{example.name}">Save the example</a>'
            gr.HTML(save, apply_default_css=False)
        with gr.Column(min_width=280):
            gr.Markdown(upload.FORMATS)
    shown = gr.HTML(apply_default_css=False, elem_id="yours-shown")

    heavy: dict[str, Any] = {"show_progress": "minimal", "api_visibility": "private", "concurrency_id": "work"}
    # A file that is dropped while another is scored is next, not lost.
    drop.upload(_sent, drop, shown, trigger_mode="always_last", **heavy)
    go.click(lambda: (yield from scored(example)), None, shown, **heavy)


def _sent(text: str) -> Iterator[str]:
    try:
        (file,) = upload.files(text)
    except upload.UploadError as error:
        yield views.message(str(error))
        return
    yield from scored(file)


def scored(file: File) -> Iterator[str]:
    """The page after each step; what is wrong with a file is said in a sentence."""
    try:
        data = upload.data(file)
        head = _summary(file, data)
        if data.origins is None:
            yield head + views.waiting("learning from queries alone …")
            yield head + _end(file, data)
            return
        halves = yours.split(data)
        rows: list[Row] = []
        yield head + views.waiting("the first memory is asked …")
        for row in yours.rows(data, halves):
            rows.append(row)
            yield head + views.table(rows, len(yours.MODELS))
        scores = f'<div class="film">{views.table(rows, len(rows))}{views.calibration(rows)}</div>'
        yield head + scores + views.waiting("learning from all queries, to say what happened …")
        yield head + scores + _end(file, data)
    except ValueError as error:
        yield views.message(str(error))


def _summary(file: File, data: Data) -> str:
    known = 0 if data.origins is None else int((data.origins >= 0).sum())
    counts = f"{len(data.patterns)} patterns, {len(data.queries)} queries, {data.patterns.shape[1]} columns"
    return f"<p><b>{safe(file.name)}</b>: {counts}; the origins of {known} queries are known.</p>"


def _end(file: File, data: Data) -> str:
    description, report = yours.told(data)
    code = safe(yours.code(file.name, data.origins is not None))
    return (
        f"<h4>What happened to the queries</h4>{views.words(description)}<pre>{safe(report)}</pre>"
        f'<h4>The same in five lines</h4><pre class="code"><code>{code}</code></pre>'
    )
