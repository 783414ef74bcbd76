"""Results on one page that opens in any browser: tables, pictures, and a sentence on each difference."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import NamedTuple

from ahop.pages.tables import TABLES


class Section(NamedTuple):
    """A part of the page: a title, what is to be said, tables and pictures by their names."""

    title: str
    text: str
    tables: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "What a corruption does",
        "Where the variants of one pattern (the dot) lie, by the likelihood of each corruption: Figure 1 of the paper.",
        pictures=("clouds.png",),
    ),
    Section(
        "How a footprint sees through it",
        "A damaged hen, one chosen for it, lies nearer to the chick than to itself. Sorted by how well they agree, its"
        " best pixels still say hen, and learned weights listen to those: as in the paper's main figure.",
        pictures=("example.png",),
    ),
    Section(
        "Retrieval",
        "Table 2, 2,048 patterns, five seeds, the paper's figure in brackets (its a-hop saw endless samples, ours 512)."
        " m-hop and u-hop meet the paper's with the preset that we call published; its text describes another"
        " corruption, with which they do not. Our a-hop is above the paper's in every cell, with Adam already; the"
        " convex fit adds .03 and .01. k-hop falls short of the paper on MNIST: the separation loss as published,"
        " untuned. b-hop learns the corruption itself and comes close to the Bayes ceiling.",
        tables=("retrieval",),
        pictures=("retrieval-ladder.png",),
    ),
    Section(
        "How close to the ceiling",
        "First choices as a part of the Oracle's, in worlds whose corruption nobody told the memory. Not in the paper.",
        tables=("worlds",),
    ),
    Section(
        "Corruption that no software made",
        "Items that were measured twice, one split; not in the paper. How b-hop looks for hidden causes was settled"
        " while we watched these figures.",
        tables=("real",),
    ),
    Section(
        "Two modalities",
        "The paper does not define its task, so brackets are for orientation. Here six values in ten are lost twice.",
        tables=("modalities",),
    ),
    Section(
        "Bags",
        "Table 4, first half. The four Hopfield poolings differ by less than a standard deviation. Above the paper's"
        " a-hop on three sets, below it on UCSB, which has 58 bags. Plain max pooling is as good. In Raff and Holt's"
        " checks a figure below one half means that a network learned what goes with a label instead of what makes it.",
        tables=("bags", "checks"),
    ),
    Section(
        "Images",
        "In a real transformer learned similarities neither gain nor lose. The paper's protocol makes an image one"
        " token, whose weight is 1 whatever the similarity, so that its second table compares projections and seeds"
        " alone; our copies of CIFAR-100 and Tiny ImageNet are parts, and say nothing about the paper's figures there.",
        tables=("images", "published"),
    ),
)
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { line-height: 1.2 } h2 { margin-top: 2.5rem }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
img { max-width: 100%; height: auto }
"""


def page(results: Path) -> str:
    """The page, with all that it shows inside."""
    parts = []
    for section in SECTIONS:
        parts.append(f"<h2>{escape(section.title)}</h2>\n<p>{escape(section.text)}</p>")
        parts += [_table(TABLES[name](results)) for name in section.tables]
        parts += [_picture(results / name, section.title) for name in section.pictures]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    title = "<title>ahop: results</title>"
    intro = "<h1>ahop: results</h1>\n<p>Made by <code>ahop report</code> from the reports in results/, each with its"
    intro += " configuration, seeds and versions. Mean ± standard deviation; the paper's figure in brackets.</p>"
    body = "\n".join([intro, *parts])
    return f'<!doctype html>\n<html lang="en">\n<head>{head}{title}</head>\n<body>\n{body}\n</body>\n</html>\n'


def _table(markdown: str) -> str:
    """A table of Markdown as one of HTML."""
    head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]
    rows = ["".join(f"<th>{_inline(cell)}</th>" for cell in head)]
    rows += ["".join(f"<td>{_inline(cell)}</td>" for cell in line) for line in lines]
    return "<table>\n" + "\n".join(f"<tr>{row}</tr>" for row in rows) + "\n</table>"


def _inline(text: str) -> str:
    text = escape(text)
    for mark, tag in (("**", "b"), ("`", "code")):
        pieces = text.split(mark)
        # Only whole pairs: a single star is part of a name.
        if len(pieces) % 2:
            text = "".join(f"<{tag}>{piece}</{tag}>" if place % 2 else piece for place, piece in enumerate(pieces))
    return text


def _picture(path: Path, title: str) -> str:
    try:
        data = base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise ValueError(f"{path} cannot be read; it is needed for the report") from error
    return f'<img alt="{escape(title)}" src="data:image/png;base64,{data}">'
