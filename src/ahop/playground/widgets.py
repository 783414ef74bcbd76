"""The page's own pieces: pictures to pick from, one to paint on, a place to drop files, and the sliders."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ahop._extras import require
from ahop.playground import draw
from ahop.playground.damage import Sliders
from ahop.playground.pictures import SETS, Pictures
from ahop.playground.sent import MOST_BYTES

TEXT = Path(__file__).parent / "text"
YOURS = "yours"
_PICK = """<div class="picker" role="group" aria-label="${label}">{{#each pictures}}
<button data-index="{{@index}}" aria-pressed="{{this.chosen}}" aria-label="{{{this.name}}}" title="{{{this.name}}}">
<img class="pixels" src="{{this.address}}" alt=""></button>{{/each}}</div>"""
_PAINT = """<div class="painter"><img src="${picture}" alt=""><canvas width="352" height="352" data-rows="${rows}"
data-columns="${columns}" role="img" aria-label="paint on this picture"></canvas><div class="tools">
<span>brush</span>
<button data-shade="-1" style="background:#000" aria-label="black brush"></button>
<button data-shade="0" style="background:#808080" aria-label="grey brush"></button>
<button data-shade="1" style="background:#fff" aria-label="white brush"></button>
<button>clean</button></div></div>"""
_DROP = """<label class="drop">${invitation}<b class="sent">{{{sent}}}</b><input type="file" accept="${accept}"
data-bytes="${bytes}" ${several} aria-label="${invitation}"></label>"""


class Range(NamedTuple):
    """A slider: what it says, and its ends, step and start."""

    says: str
    low: float
    high: float
    step: float
    start: float


# One for each field of Sliders, in their order.
RANGES = {
    "top": Range("Hide rows at the top", 0, 0.8, 0.05, 0.0),
    "bottom": Range("Hide rows at the bottom", 0, 0.8, 0.05, 0.0),
    "noise": Range("Noise", 0, 1.5, 0.05, 0.3),
    "blur": Range("Blur", 0, 3, 0.1, 0.0),
    "light": Range("Light", -1, 1, 0.05, 0.0),
    "contrast": Range("Contrast", 0.1, 2, 0.05, 1.0),
}


def read(name: str) -> str:
    """A script or style sheet of the page."""
    return (TEXT / name).read_text()


def sets(label: str = "Pictures in the memory") -> Any:
    """Which set is stored; "yours" are those that were dropped on the page."""
    require("gradio", extra="playground")
    import gradio as gr

    return gr.Radio([*SETS, YOURS], value=next(iter(SETS)), label=label)


def sliders(**start: float) -> list[Any]:
    """A slider for each kind of damage, in the order of :class:`Sliders`."""
    require("gradio", extra="playground")
    import gradio as gr

    return [
        gr.Slider(one.low, one.high, start.get(field, one.start), step=one.step, label=one.says)
        for field, one in RANGES.items()
    ]


def as_sliders(values: tuple[float, ...]) -> Sliders:
    """What the sliders say, within their ends whoever sent it."""
    pairs = zip(values, RANGES.values(), strict=True)
    return Sliders(*(round(min(max(float(value), one.low), one.high), 3) for value, one in pairs))


def thumbnails(pictures: Pictures, chosen: int) -> list[dict[str, str]]:
    """What a picker shows."""
    return [
        {
            "address": draw.picture(pattern, pictures.shape),
            # Gradio runs the filled template as code: escaping HTML, as two braces do, is not enough.
            "name": draw.safe(name),
            "chosen": str(index == chosen).lower(),
        }
        for index, (pattern, name) in enumerate(zip(pictures.patterns, pictures.names, strict=True))
    ]


def picker(pictures: Pictures, label: str, chosen: int = 0) -> Any:
    """All pictures of a set, to click on; the value is the number of the chosen one, as text.

    Args:
        pictures: The set.
        label: What stands above.
        chosen: The picture chosen at first.
    """
    require("gradio", extra="playground")
    import gradio as gr

    return gr.HTML(
        value=str(chosen),
        label=label,
        html_template=_PICK,
        js_on_load=read("pick.js"),
        pictures=thumbnails(pictures, chosen),
        apply_default_css=False,
    )


def painter(pictures: Pictures, index: int) -> Any:
    """A picture to paint on; the value is what :func:`ahop.playground.damage.paint_of` reads."""
    require("gradio", extra="playground")
    import gradio as gr

    return gr.HTML(
        value="",
        html_template=_PAINT,
        js_on_load=read("paint.js"),
        apply_default_css=False,
        **canvas(pictures, index),
    )


def canvas(pictures: Pictures, index: int) -> dict[str, Any]:
    """What a painter shows."""
    address = draw.picture(pictures.patterns[index], pictures.shape)
    return {"picture": address, "rows": pictures.shape[0], "columns": pictures.shape[1]}


def drop(
    invitation: str, accept: str, *, bytes: int = MOST_BYTES, several: bool = False, visible: bool | str = True
) -> Any:
    """A place for files; the value is what :func:`ahop.playground.sent.files` reads.

    One that is "hidden" is on the page and not seen: of one that is not there Gradio forgets what it says.

    Args:
        invitation: What stands in it.
        accept: Which kinds of files, as the ``accept`` attribute in HTML.
        bytes: The largest size.
        several: Whether it takes more than one file.
        visible: False leaves it out; "hidden" keeps it on the page, unseen.
    """
    require("gradio", extra="playground")
    import gradio as gr

    return gr.HTML(
        value="",
        html_template=_DROP,
        js_on_load=read("drop.js"),
        apply_default_css=False,
        visible=visible,
        invitation=invitation,
        sent="",
        accept=accept,
        several="multiple" if several else "",
        bytes=bytes,
    )


def chosen(kind: str, uploaded: Pictures | None) -> Pictures:
    """The pictures of a set; before any were dropped, yours are the first set."""
    if kind == YOURS and uploaded is not None:
        return uploaded
    return SETS.get(kind, next(iter(SETS.values())))()


def as_index(value: Any, pictures: Pictures) -> int:
    """The number of a picture, whatever was sent."""
    try:
        index = int(value)
    except (TypeError, ValueError):
        index = 0
    return index if 0 <= index < len(pictures) else 0
