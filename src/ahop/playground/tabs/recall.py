"""Damage and recall: a picture is damaged, and every memory shows what it brings back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ahop._extras import require
from ahop.playground import recall, sent, upload, views, widgets
from ahop.playground.damage import Sliders, paint_of
from ahop.playground.pictures import SETS, Pictures
from ahop.playground.recall import MEMORIES, Answer, Task

_INTRODUCTION = f"""
Pick a picture, damage it, and see what each memory brings back. Those that learn see {recall.EXAMPLES} other
pictures with the same damage first, which takes some seconds. b-hop may also say **none of these**: it refuses what
is less familiar than all but {100 * recall.REFUSED:.0f} % of the examples were.
"""
_FILM = """
The answer becomes the next question until nothing moves. m-hop, s-hop and k2-hop go down in energy. For the others
it says how badly the state is explained *as a damaged picture*: a clean one may be explained worse than the query
was.
"""
# The picture and the damage that the page begins with.
_FIRST, _START = 15, {"top": 0.25, "noise": 0.5, "light": 0.6}


def lay_out(uploaded: Any) -> None:
    """Everything of this part; ``uploaded`` is where pictures of your own are kept."""
    require("gradio", extra="playground")
    import gradio as gr

    first = next(iter(SETS.values()))()
    gr.Markdown(_INTRODUCTION)
    with gr.Row():
        with gr.Column(scale=3, min_width=280):
            kind = widgets.sets()
            drop = widgets.drop(
                f"Drop 2 to {upload.MOST_PICTURES} pictures here, or choose them. They stay in this computer's memory.",
                "image/*",
                several=True,
                visible="hidden",
            )
            message = gr.HTML(visible=False, apply_default_css=False)
            picker = widgets.picker(first, "pictures in the memory", _FIRST)
            with gr.Row(elem_classes="side-by-side"):
                painter = widgets.painter(first, _FIRST)
                preview = gr.HTML(views.query(Task(first, _FIRST, Sliders(**_START))), apply_default_css=False)
        with gr.Column(scale=2, min_width=280):
            sliders = widgets.sliders(**_START)
            forget = gr.Checkbox(False, label="Take this picture out of the memory first: none of these is right then")
            seed = gr.State(0)
            again = gr.Button("Draw the noise again", size="sm")
    go = gr.Button("Bring it back", variant="primary", elem_id="recall-go")
    cards = gr.HTML(apply_default_css=False, elem_id="recall-cards")
    gr.Markdown("### The walk to rest\n" + _FILM)
    name = gr.Radio(list(MEMORIES), value="m-hop", label="Film of")
    film = gr.HTML(apply_default_css=False, elem_id="recall-film")

    asked = [kind, uploaded, picker, *sliders, painter, forget, seed]
    silent: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
    heavy: dict[str, Any] = {"show_progress": "minimal", "api_visibility": "private", "concurrency_id": "work"}
    running = go.click(_answers, asked, cards, **heavy).then(_film, [*asked, name], film, **heavy)
    name.change(_film, [*asked, name], film, **heavy)

    def stored(kind: str, uploaded: Pictures | None) -> tuple[Any, ...]:
        pictures = widgets.chosen(kind, uploaded)
        yours = kind == widgets.YOURS
        empty = yours and uploaded is None
        hint = views.waiting("No pictures of yours yet: these are digits.") if empty else ""
        return (
            gr.HTML(visible=True if yours else "hidden"),
            gr.HTML(hint, visible=empty),
            gr.HTML("0", pictures=widgets.thumbnails(pictures, 0)),
            gr.HTML("", **widgets.canvas(pictures, 0)),
        )

    def picked(kind: str, uploaded: Pictures | None, index: str) -> tuple[Any, ...]:
        pictures = widgets.chosen(kind, uploaded)
        at = widgets.as_index(index, pictures)
        return gr.HTML(pictures=widgets.thumbnails(pictures, at)), gr.HTML("", **widgets.canvas(pictures, at))

    def dropped(text: str, before: Pictures | None) -> tuple[Any, ...]:
        try:
            pictures = upload.pictures(sent.files(text, upload.MOST_PICTURES))
        except sent.UploadError as error:
            return before, gr.HTML(views.message(str(error)), visible=True), gr.HTML(), gr.HTML()
        return (
            pictures,
            gr.HTML("", visible=False),
            gr.HTML("0", pictures=widgets.thumbnails(pictures, 0)),
            gr.HTML("", **widgets.canvas(pictures, 0)),
        )

    # What was brought back of another picture or another damage must not stand beside this one.
    def preview_of(*values: Any) -> tuple[str, str, str]:
        return views.query(task_of(*values)), "", ""

    shown: dict[str, Any] = {**silent, "trigger_mode": "always_last", "cancels": [running]}
    show = (preview_of, asked, [preview, cards, film])
    kind.change(stored, [kind, uploaded], [drop, message, picker, painter], **silent).then(*show, **shown)
    picker.input(picked, [kind, uploaded, picker], [picker, painter], **silent).then(*show, **shown)
    drop.upload(
        dropped, [drop, uploaded], [uploaded, message, picker, painter], trigger_mode="always_last", **silent
    ).then(*show, **shown)
    again.click(lambda seed: seed + 1, seed, seed, **silent).then(*show, **shown)
    gr.on([*(slider.change for slider in sliders), painter.input, forget.change], *show, **shown)


def task_of(kind: str, uploaded: Pictures | None, index: Any, *rest: Any) -> Task:
    """What the pieces of the page say.

    Args:
        kind: The set of pictures.
        uploaded: The user's own pictures, if any.
        index: The place of the chosen picture.
        rest: The sliders, what was painted, whether the picture is taken out of the memory, and the seed.
    """
    *sliders, paint, forget, seed = rest
    pictures = widgets.chosen(kind, uploaded)
    painted = paint_of(paint, pictures.patterns.shape[1])
    at = widgets.as_index(index, pictures)
    return Task(pictures, at, widgets.as_sliders(tuple(sliders)), painted, bool(forget), int(seed))


def _answers(*asked: Any) -> Iterator[str]:
    task = task_of(*asked)
    names = recall.names_for(task.damage)
    answers: list[Answer] = []
    yield views.cards(task, answers, names)
    for answer in recall.ask_all(task):
        answers.append(answer)
        yield views.cards(task, answers, names)


def _film(*asked: Any) -> str:
    *rest, name = asked
    task = task_of(*rest)
    if name not in recall.names_for(task.damage):
        return views.waiting("There is no Oracle of painted pictures: nobody can say how likely your strokes were.")
    return views.film(task, name, recall.walk(recall.memory_for(task, name), task.query))
