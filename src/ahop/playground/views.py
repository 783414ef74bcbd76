"""What the page shows, as HTML: answers, films, curves, footprints, basins and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch

from ahop._checks import UNKNOWN
from ahop.linkage import Linkage, lines
from ahop.playground import draw
from ahop.playground.draw import Line, safe
from ahop.playground.energy import PATTERNS, REACH, Landscape
from ahop.playground.footprint import Comparison
from ahop.playground.learn import Point, Property
from ahop.playground.pictures import Pictures
from ahop.playground.recall import MEMORIES, Answer, Task, Walk
from ahop.playground.sent import File
from ahop.playground.yours import CHARTED, Row, link

_FRAMES = 7
# Of a table that is matched: rows that are shown, and columns and standard deviations of a small picture.
_ROWS, _COLUMNS, _FAR = 50, 150, 4.0


def image(address: str, about: str, size: str = "") -> str:
    """A picture with square pixels.

    Args:
        address: Where it is, as a URL.
        about: What it shows, for those who cannot see it.
        size: A further class of the style sheet.
    """
    return f'<img class="pixels {size}" src="{address}" alt="{safe(about)}">'


def message(text: str) -> str:
    """What was wrong, where something was."""
    return f'<p class="message" role="alert">{safe(text)}</p>'


def waiting(text: str) -> str:
    """That something is under way."""
    return f'<p class="waiting" role="status">{safe(text)}</p>'


# --- damage and recall -------------------------------------------------------------------------------------------


def query(task: Task) -> str:
    """The picture as the memories see it."""
    name = task.pictures.names[task.chosen]
    picture = image(draw.picture(task.query, task.pictures.shape), f"{name}, damaged", "large")
    return f"<figure>{picture}<figcaption>what the memories see</figcaption></figure>"


def cards(task: Task, answers: Sequence[Answer], names: Sequence[str]) -> str:
    """One card a memory; those that have not answered yet are learning.

    Args:
        task: What is asked.
        answers: Those of the memories that have answered.
        names: All memories, in their order on the page.
    """
    given = {answer.name: answer for answer in answers}
    made = [_card(task, given[name]) if name in given else _empty(name) for name in names]
    known = any(MEMORIES[name].knows for name in names)
    note = "" if known else '<p class="note">No Oracle here: nobody can say how likely your strokes were.</p>'
    return f'<div class="cards">{"".join(made)}</div>{note}'


def _head(name: str) -> str:
    return f'<h4>{safe(name)}</h4><p class="about">{safe(MEMORIES[name].about)}</p>'


def _empty(name: str) -> str:
    return f'<section class="card">{_head(name)}{waiting("learning from examples …")}</section>'


def _card(task: Task, answer: Answer) -> str:
    pictures, shape = task.pictures, task.pictures.shape
    best = "".join(
        f"<li>{image(draw.picture(pictures.patterns[index], shape), pictures.names[index], 'small')}"
        f'<span class="bar"><i style="width:{100 * chance:.1f}%"></i></span><b>{safe(percent(chance))}</b></li>'
        for index, chance in answer.best
    )
    back = image(draw.picture(answer.picture, shape), f"what {answer.name} brings back", "medium")
    return (
        f'<section class="card" data-memory="{safe(answer.name)}">{_head(answer.name)}'
        f'<div class="answer">{back}<ol>{best}</ol></div>{_verdict(answer)}</section>'
    )


def _verdict(answer: Answer) -> str:
    """Whether it is right, and what it says of strangers; a memory that cannot say "none of these" is told so."""
    good = bool(answer.refused) if answer.right is None else answer.right and not answer.refused
    if answer.refused:
        text = "says: none of these"
    elif answer.right is None:
        text = "takes it for one of these" + (" (it cannot say no)" if answer.refused is None else "")
    elif answer.right and answer.tied:
        text = "the right one is as likely as another"
    else:
        text = "first choice is right" if answer.right else "first choice is wrong"
    return f'<p class="verdict {"good" if good else "bad"}">{text}</p>'


def percent(chance: float) -> str:
    """A probability in a few characters.

    Example:
        >>> percent(0.731), percent(0.0001), percent(0.99999)
        ('73 %', '< 1 %', '> 99 %')
    """
    if 0 < chance < 0.01:
        return "< 1 %"
    if 0.99 < chance < 1:
        return "> 99 %"
    return f"{100 * chance:.0f} %"


def film(task: Task, name: str, walk: Walk) -> str:
    """The state's walk as a film, some of its frames, and the energy of each state.

    Args:
        task: What was asked.
        name: The memory's short name.
        walk: The states and their energies.
    """
    shape, last = task.pictures.shape, len(walk.states) - 1
    chosen = sorted({round(part * last / (_FRAMES - 1)) for part in range(_FRAMES)})
    frames = "".join(
        f"<li>{image(draw.picture(walk.states[step], shape), f'step {step}', 'small')}"
        f"<span>{step}: {float(walk.energies[step]):.3g}</span></li>"
        for step in chosen
    )
    moving = image(draw.film(walk.states, shape), f"film of {name}", "large")
    end = f"It rests after {last} steps." if walk.rests else f"After {last} steps it still moves."
    line = Line("", "b-hop", range(last + 1), walk.energies.tolist())
    return (
        f'<div class="film"><figure>{moving}<figcaption>{safe(name)}: {end}</figcaption></figure>'
        f'{draw.chart("Energy of the state", [line], "step")}</div><ol class="frames">{frames}</ol>'
    )


# --- learn -------------------------------------------------------------------------------------------------------


def curve(points: Sequence[Point], labels: bool) -> str:
    """Accuracy over the number of examples, beside the ceiling."""
    counts = [point.examples for point in points]
    lines = [
        Line(_known_as(name, labels), name.lower(), counts, [point.accuracy[name] for point in points])
        for name in points[0].accuracy
    ]
    return draw.chart("First choices that are right", lines, "examples shown", least=0.0, most=1.0, log=True)


def _known_as(name: str, labels: bool) -> str:
    if MEMORIES[name].knows:
        return f"{name}: the ceiling"
    return name if labels or not MEMORIES[name].learns else f"{name}, no labels"


def learned(pictures: Pictures, description: str, properties: Sequence[Property]) -> str:
    """What was learned: in words, as one picture a property, and as curves.

    Args:
        pictures: The set.
        description: What was learned, in words.
        properties: What was learned, as pictures and curves.
    """
    shown = "".join(_property(pictures, item) for item in properties)
    return f'<h4>What b-hop has learned</h4>{words(description)}<div class="learned">{shown}</div>'


def words(description: str) -> str:
    """What happens to queries, a sentence a line."""
    lines = "".join(f"<li>{safe(line)}</li>" for line in description.splitlines() if line)
    return f'<ul class="words">{lines}</ul>'


def _property(pictures: Pictures, item: Property) -> str:
    if item.places is not None:
        line = Line("", "b-hop", item.places.tolist(), item.values.tolist())
        return draw.chart(item.title, [line], "value", least=0.0)
    low, high = float(item.values.min()), float(item.values.max())
    drawn = image(draw.heat(item.values, pictures.shape), item.title, "large")
    return f"<figure>{drawn}<figcaption>{safe(item.title)}, from {low:.2g} to {high:.2g}</figcaption></figure>"


# --- footprint ---------------------------------------------------------------------------------------------------


def footprints(pictures: Pictures, chosen: tuple[int, int], found: Comparison) -> str:
    """Both pairs: alike in each pixel, sorted, added up, weighed.

    Args:
        pictures: The set.
        chosen: The numbers of both pictures in it.
        found: Their terms and scores.
    """
    shape = pictures.shape
    names = [f"{letter}: {pictures.names[index]}" for letter, index in zip("AB", chosen, strict=True)]
    shown = [("the query, a damaged A", draw.picture(found.query, shape))]
    for name, index, terms in zip(names, chosen, found.terms, strict=True):
        shown += [(name, draw.picture(pictures.patterns[index], shape))]
        shown += [(f"{name[0]}: unlike in each pixel", draw.heat(terms, shape))]
    figures = "".join(
        f"<figure>{image(address, name, 'medium')}<figcaption>{safe(name)}</figcaption></figure>"
        for name, address in shown
    )
    ranks = range(1, len(found.weights) + 1)
    kinds = ("first", "second")
    ordered, sums = (
        [Line(name, kind, ranks, values.tolist()) for name, kind, values in zip(names, kinds, both, strict=True)]
        for both in (found.ordered, found.sums)
    )
    weights = [Line("", "a-hop", ranks, found.weights.tolist())]
    charts = (
        draw.chart("1. The terms, sorted", ordered, "rank, best first")
        + draw.chart("2. Their running sums: the footprints", sums, "best k pixels")
        + draw.chart("3. The weight of each rank, learned", weights, "rank, best first")
    )
    scores = "".join(
        _winner(title, both) for title, both in (("Distance", found.plain), ("Weighed by rank", found.learned))
    )
    return f'<div class="strip">{figures}</div>{scores}<div class="charts">{charts}</div>'


def _winner(title: str, scores: torch.Tensor) -> str:
    first, second = scores.tolist()
    good = first > second
    return (
        f'<p class="verdict {"good" if good else "bad"}">{title}: A has {first:.3g}, B has {second:.3g}; '
        f"{'A, the right one, is more alike.' if good else 'B is more alike, which is wrong.'}</p>"
    )


# --- energy ------------------------------------------------------------------------------------------------------


def landscape(name: str, about: str, found: Landscape) -> str:
    """A map of the energy: basins by colour, patterns as dots, wells as crosses, and what there is to count.

    Args:
        name: The network's short name.
        about: What it is, in a few words.
        found: Its energy over the plane.
    """
    side = 2 * REACH
    drawn = [f'<image href="{draw.areas(found.heights, found.basins)}" width="{side}" height="{side}"/>']
    for x, y in PATTERNS.tolist():
        drawn.append(f'<circle cx="{REACH + x:.2f}" cy="{REACH - y:.2f}" r="0.035"/>')
    for x, y in found.wells.tolist():
        drawn.append(f'<path d="M{REACH + x - 0.06:.2f} {REACH - y - 0.06:.2f}l.12 .12m0 -.12l-.12 .12"/>')
    count = len(found.wells)
    caption = f"{count} well{'s' * (count != 1)}; {found.own} of {len(PATTERNS)} patterns have one of their own."
    if found.without:
        caption += (
            f" From {percent(found.without)} of the plane, a state rolls out of the picture or stays where it is."
        )
    keys = '<p class="keys"><span>● pattern</span><span>✕ where states come to rest</span></p>'
    picture = f'<svg viewBox="0 0 {side} {side}" role="img" aria-label="energy of {safe(name)}">{"".join(drawn)}</svg>'
    return (
        f'<figure class="landscape"><h4>{safe(name)}: {safe(about)}</h4>{picture}{keys}'
        f"<figcaption>{caption}</figcaption></figure>"
    )


# --- your data ---------------------------------------------------------------------------------------------------


def linkage(found: Linkage) -> str:
    """What was read, what happened, how right the matches are and what else there is."""
    rows = "".join(f"<tr><th>{safe(word)}</th><td>{safe(text)}</td></tr>" for word, text in lines(found))
    described = words(found.memory.similarity.describe(found.incoming.columns))
    return f'<table class="told">{rows}</table><h4>What happened to the rows</h4>{described}'


def matches(found: Linkage) -> str:
    """Some rows with the match of each, drawn over each other where columns are the same; known ones come last."""
    rows = (found.origins != UNKNOWN).int().argsort(stable=True)[:_ROWS].tolist()
    columns = {name: [values[row] for row in rows] for name, values in found.table().items()}
    # Whether labels have judged is said above, of all rows.
    del columns["verified"]
    drawn = [_over(found, row) if found.model.shared else "" for row in rows]
    head = "".join(f"<th>{safe(name.replace('_', ' '))}</th>" for name in columns) + "<th>row over its match</th>"
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in cells) + f"<td>{picture}</td></tr>"
        for *cells, picture in zip(*columns.values(), drawn, strict=True)
    )
    return (
        f'<h4>Your rows</h4><p class="note">{len(rows)} of {len(found.incoming):,}; matches.csv has all.</p>'
        f'<div class="scroll rows"><table class="models"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: object) -> str:
    return percent(value) if isinstance(value, float) else safe("" if value is None else value)


def _over(found: Linkage, row: int) -> str:
    """A row and its match in units of the stored columns; nothing where it has no match."""
    match = int(found.indices[row])
    if match < 0:
        return ""
    # As many columns as a small picture can show.
    values = found.stored.values[:, :_COLUMNS]
    spread = np.where(values.std(0) > 0, values.std(0), 1.0)
    both = np.stack([values[match], found.incoming.values[row, :_COLUMNS]])
    units = ((both - values.mean(0)) / spread).clip(-_FAR, _FAR)
    return draw.spark(units, ("m-hop", "b-hop"), "blue: the match, orange: the row")


def saved(files: Iterable[File]) -> str:
    """Files to save, which are part of the page."""
    return ", ".join(
        f'<a class="save" href="{link(file)}" download="{safe(file.name)}">{safe(file.name)}</a>' for file in files
    )


def table(rows: Iterable[Row], total: int) -> str:
    """A line a method; the best figures are bold."""
    rows = list(rows)
    sound = [row for row in rows if not row.problem]
    right = max((row.right for row in sound), default=math.nan)
    gap = min((row.calibration for row in sound if not math.isnan(row.calibration)), default=math.nan)
    lines = "".join(_line(row, right, gap) for row in rows)
    head = "<tr><th>method</th><th>learns from</th><th>right</th><th>sure</th><th>calibration error</th></tr>"
    rest = waiting(f"{len(rows)} of {total} methods done …") if len(rows) < total else ""
    return f'<div class="scroll"><table class="models"><thead>{head}</thead><tbody>{lines}</tbody></table></div>{rest}'


def _line(row: Row, right: float, gap: float) -> str:
    begin = f"<tr><td>{safe(row.method.name)}</td><td>{safe(row.method.learns)}</td>"
    if row.problem:
        return f'{begin}<td colspan="3">{safe(row.problem)}</td></tr>'

    def cell(value: float, best: bool) -> str:
        if math.isnan(value):
            return "<td>&ndash;</td>"
        return f"<td>{'<b>' if best else ''}{value:.3f}{'</b>' if best else ''}</td>"

    figures = (
        cell(row.right, row.right == right)
        + cell(row.confidence, False)
        + cell(row.calibration, row.calibration == gap)
    )
    return f"{begin}{figures}</tr>"


def trust(pictures: Iterable[str]) -> str:
    """Whether probabilities mean what they say, and what it costs to answer more; nothing without pictures."""
    shown = "".join(f'<div class="plot">{picture}</div>' for picture in pictures)
    note = (
        "On pairs that b-hop has not learned from. First: points on the dashed line are as often right as their "
        "probability says, those below it are too sure. Second: how many answers are wrong if only the surest rows are "
        "answered."
    )
    return f'<h4>How far b-hop can be trusted</h4><p class="note">{note}</p><div class="film">{shown}</div>' * bool(
        shown
    )


def calibration(rows: Sequence[Row]) -> str:
    """How often first choices are right over how sure the memory is; on the diagonal it means what it says."""
    lines = [Line("as sure as right", "oracle", (0.0, 1.0), (0.0, 1.0))]
    for row in rows:
        if row.method in CHARTED and row.curve:
            lines.append(Line(row.method.name, row.method.name, *zip(*row.curve, strict=True)))
    return draw.chart("Calibration on held-out origins", lines, "how sure", least=0.0, most=1.0)
