"""Energy: a memory of six points on a plane, with its wells and the basin of each."""

from __future__ import annotations

from typing import Any

from ahop._extras import require
from ahop.playground import energy, views
from ahop.playground.energy import BETA, KINDS, LEAST_BETA, MOST_BETA

_INTRODUCTION = """
Six patterns of two values each. A state rolls down the energy until it rests in a well, and a **basin** is the set
of places that roll into the same well: a colour each, the stronger the lower; grey is in none. Dot products favour long
patterns: at a high beta, the short one in the middle has a basin only under distances. a-hop, g-hop and
b-hop learn from queries that are blurred sideways.
"""


def lay_out() -> None:
    """Everything of this part."""
    require("gradio", extra="playground")
    import gradio as gr

    gr.Markdown(_INTRODUCTION)
    with gr.Row():
        with gr.Column(min_width=280):
            name = gr.Radio(list(KINDS), value=next(iter(KINDS)), label="Memory")
            beta = gr.Slider(LEAST_BETA, MOST_BETA, BETA, step=0.5, label="Inverse temperature (beta)")
            go = gr.Button("Draw", variant="primary", elem_id="energy-go")
        with gr.Column(min_width=280):
            shown = gr.HTML(apply_default_css=False, elem_id="energy-shown")
    silent: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    name.change(lambda name: gr.Slider(visible=_kind(name)[1].tempered), name, beta, **silent)
    gr.on(
        [go.click, name.change, beta.release],
        _draw,
        [name, beta],
        shown,
        show_progress="minimal",
        api_visibility="private",
        trigger_mode="always_last",
        concurrency_id="work",
    )


def _kind(name: str) -> tuple[str, energy.Kind]:
    """A memory that is there, whatever was sent."""
    known = name if name in KINDS else next(iter(KINDS))
    return known, KINDS[known]


def _draw(name: str, beta: float) -> str:
    known, kind = _kind(name)
    # One that learns or has no temperature is drawn once.
    at = round(min(max(float(beta), LEAST_BETA), MOST_BETA), 2) if kind.tempered else BETA
    return views.landscape(known, kind.about, energy.landscape(known, at))
