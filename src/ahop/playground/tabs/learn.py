"""Learn: accuracy rises with the number of examples, beside the ceiling; and what was learned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ahop._extras import require
from ahop.playground import learn, views, widgets
from ahop.playground.learn import Point, Setup
from ahop.playground.pictures import Pictures

_INTRODUCTION = """
Choose a damage and how many damaged pictures to show. After 10, 20, 50 … of them each memory is asked for the
origins of 200 others. The Oracle knows the damage: no memory can do better on average. Without labels nobody says
which picture an example came from, and b-hop learns all the same.
"""


def lay_out(uploaded: Any) -> None:
    """Everything of this part; ``uploaded`` is where pictures of your own are kept."""
    require("gradio", extra="playground")
    import gradio as gr

    gr.Markdown(_INTRODUCTION)
    with gr.Row():
        with gr.Column(min_width=280):
            kind = widgets.sets()
            examples = gr.Slider(learn.LEAST, learn.MOST, 100, step=10, label="Examples to show")
            labels = gr.Checkbox(True, label="Say which picture each example came from (labels)")
        with gr.Column(min_width=280):
            sliders = widgets.sliders(noise=0.6, light=-0.4, top=0.2)
    go = gr.Button("Learn", variant="primary", elem_id="learn-go")
    curve = gr.HTML(apply_default_css=False, elem_id="learn-curve")
    learned = gr.HTML(apply_default_css=False, elem_id="learn-told")
    go.click(
        _learn,
        [kind, uploaded, examples, labels, *sliders],
        [curve, learned],
        show_progress="minimal",
        api_visibility="private",
        concurrency_id="work",
    )


def _learn(
    kind: str, uploaded: Pictures | None, examples: float, labels: bool, *sliders: float
) -> Iterator[tuple[str, str]]:
    pictures = widgets.chosen(kind, uploaded)
    count = min(max(int(examples), learn.LEAST), learn.MOST)
    setup = Setup(pictures, widgets.as_sliders(sliders), count, bool(labels))
    points: list[Point] = []
    yield views.waiting("learning from the first 10 examples …"), ""
    for point in learn.points(setup):
        points.append(point)
        properties = learn.properties(point.memory, pictures.patterns.shape[1])
        words = point.memory.similarity.describe()
        rest = "" if point.examples == count else views.waiting(f"{point.examples} of {count} examples shown …")
        yield views.curve(points, setup.labels) + rest, views.learned(pictures, words, properties)
