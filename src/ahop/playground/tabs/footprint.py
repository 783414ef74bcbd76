"""Footprint: two pictures and a query, step by step from terms to weights over ranks."""

from __future__ import annotations

from typing import Any, NamedTuple

from ahop._extras import require
from ahop.playground import footprint, views, widgets
from ahop.playground.damage import Sliders
from ahop.playground.pictures import SETS, Pictures

_INTRODUCTION = """
How alike are a damaged A and two stored pictures, A and B? Pixel by pixel the term is minus the squared difference.
Sorted and added up, the best k terms are the **footprint**. What is hidden or painted over falls to the worst
ranks, whichever pixels it hit, and a-hop learns how much each rank is worth.
"""


class Start(NamedTuple):
    """What the page begins with: a set, two of its pictures, and what happens to the first."""

    kind: str
    one: int
    other: int
    sliders: Sliders


# Half of A is hidden, and B is as grey as what hides it: by distance alone, A is taken for B.
FIRST = Start("photos", 11, 38, Sliders(top=0.5, noise=0.2))


def lay_out(uploaded: Any) -> None:
    """Everything of this part; ``uploaded`` is where pictures of your own are kept."""
    require("gradio", extra="playground")
    import gradio as gr

    first = SETS[FIRST.kind]()
    gr.Markdown(_INTRODUCTION)
    with gr.Row():
        with gr.Column(min_width=280):
            kind = widgets.sets()
            kind.value = FIRST.kind
            gr.Markdown("**A**, which is damaged")
            one = widgets.picker(first, "picture A", FIRST.one)
            gr.Markdown("**B**")
            other = widgets.picker(first, "picture B", FIRST.other)
        with gr.Column(min_width=280):
            sliders = widgets.sliders(**FIRST.sliders._asdict())
    go = gr.Button("Compare", variant="primary", elem_id="footprint-go")
    shown = gr.HTML(apply_default_css=False, elem_id="footprint-shown")

    silent: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}

    def stored(kind: str, uploaded: Pictures | None) -> tuple[Any, Any, str]:
        pictures = widgets.chosen(kind, uploaded)
        return (
            gr.HTML("0", pictures=widgets.thumbnails(pictures, 0)),
            gr.HTML("1", pictures=widgets.thumbnails(pictures, 1)),
            "",
        )

    def picked(kind: str, uploaded: Pictures | None, index: str) -> Any:
        pictures = widgets.chosen(kind, uploaded)
        return gr.HTML(pictures=widgets.thumbnails(pictures, widgets.as_index(index, pictures)))

    kind.change(stored, [kind, uploaded], [one, other, shown], **silent)
    for picker in (one, other):
        picker.input(picked, [kind, uploaded, picker], picker, **silent)
    go.click(
        _compare,
        [kind, uploaded, one, other, *sliders],
        shown,
        show_progress="minimal",
        api_visibility="private",
        concurrency_id="work",
    )


def _compare(kind: str, uploaded: Pictures | None, one: Any, other: Any, *sliders: float) -> str:
    pictures = widgets.chosen(kind, uploaded)
    chosen = widgets.as_index(one, pictures), widgets.as_index(other, pictures)
    if chosen[0] == chosen[1]:
        return views.message("A and B are the same picture. Choose two that differ.")
    return views.footprints(pictures, chosen, footprint.compare(pictures, *chosen, widgets.as_sliders(sliders)))
