"""A linkage as one page: the verdict, what was learned, how sure it is, what decided, and what to check by hand.

The page is one file. It needs no network, its pictures are part of it, and it follows light and dark mode.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import torch

from ahop import plot
from ahop._checks import UNKNOWN
from ahop._extras import require
from ahop.learning.report import VERIFIED
from ahop.linkage.html import document, grid
from ahop.linkage.linking import Linkage
from ahop.linkage.rows import sentences
from ahop.linkage.words import lines, right, to_check, verdict
from ahop.plot.canvas import BLUE, figure, plain
from ahop.plot.matches import matches_of
from ahop.plot.reliability import reliability_of
from ahop.similarity.families.order import order_of
from ahop.tables.table import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Doubtful rows that are listed, of which some are explained column by column; curves; hubs.
_DOUBTFUL, _EXPLAINED, _CURVES, _HUBS = 12, 3, 6, 8
# Bins of a diagram of a few dozen labels.
_BINS = 5
# Rows whose confidence makes a histogram.
_HISTOGRAM_ROWS = 20_000


def page(
    linkage: Linkage,
    wanted: float | None = None,
    asked: dict[str, list[Any]] | None = None,
    checks: str | None = None,
) -> str:
    """The page, in HTML.

    Args:
        linkage: What was matched.
        wanted: The accuracy that is asked for, or None.
        asked: Rows to check (:func:`ahop.linkage.asked`), or None.
        checks: The file that they were written to, or None.
    """
    title = f"{linkage.incoming.name} matched to {linkage.stored.name}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="verdict">{escape(_verdict(linkage, wanted))}</p>',
        grid(None, lines(linkage, checks)),
        *_learned(linkage),
        *_confidence(linkage),
        *_reliability(linkage),
        *(_matches(linkage) if linkage.found else ()),
        *_strangers(linkage),
        *_to_check(asked),
        "<h2>What to do next</h2>",
        f"<p>{escape(_next(linkage, checks))}</p>",
    ]
    return document(title, parts)


def _verdict(linkage: Linkage, wanted: float | None) -> str:
    return right(linkage) if wanted is None else verdict(linkage, wanted).text


def _learned(linkage: Linkage) -> Iterable[str]:
    if not linkage.found:
        return
    names = linkage.incoming.columns
    yield "<h2>What happened to the rows</h2>"
    yield "".join(f"<p>{escape(text)}</p>" for text in sentences(linkage.memory.similarity, names))
    try:
        picture = drawn(lambda ax: plot.corruption(linkage.memory, names, ax=ax), 7.5, 3.4)
    except ValueError:
        # A map between two spaces tells nothing of single columns.
        return
    yield picture


def _confidence(linkage: Linkage) -> Iterable[str]:
    open_rows = (linkage.origins == UNKNOWN).nonzero().squeeze(1)[:_HISTOGRAM_ROWS]
    if not len(open_rows):
        return
    sure = linkage.probabilities[open_rows]

    def draw(ax: Axes) -> None:
        ax.hist(sure.numpy(), 20, range=(0, 1), color=BLUE, alpha=0.8)
        ax.set(xlabel="probability of the match", ylabel="rows", xlim=(0, 1))

    if not linkage.found:
        told = "Nothing was found that is better than chance: all stored rows are as likely as each other."
    elif linkage.evidence is not None and linkage.verified:
        told = f"{counted(linkage.evidence.labels, 'label')} have judged how right they are."
    else:
        told = "Too few have been checked to know whether these probabilities hold: they do if the model is right."
    yield f"<h2>How sure the matches are</h2>\n{drawn(draw, 6.0, 2.6)}\n<p>{escape(told)}</p>"


def _reliability(linkage: Linkage) -> Iterable[str]:
    """Whether probabilities hold, where enough labels have judged."""
    labels = linkage.labels
    if labels is None or len(labels.right) < VERIFIED:
        return

    def draw(ax: Axes) -> None:
        reliability_of(labels.probabilities, labels.right, _BINS, ax=ax)
        ax.set_xlabel("probability of the match")

    when = "of pairs that were held out, half of them at a time"
    if linkage.certificate:
        when = "before the answers made them as sure as they were right"
    yield "<h3>Do the probabilities hold?</h3>"
    yield f"<p>Those {when}: on the dashed line they do, below it they are too sure.</p>"
    yield drawn(draw, 4.4, 4.2)


def _matches(linkage: Linkage) -> Iterable[str]:
    yield from _doubtful(linkage)
    yield from _hubs(linkage)
    yield from _strained(linkage)


def _doubtful(linkage: Linkage) -> Iterable[str]:
    """The matches that are least sure, why they were preferred, and their curves."""
    matched = ((linkage.origins == UNKNOWN) & (linkage.indices >= 0)).nonzero().squeeze(1)
    rows: list[int] = matched[linkage.probabilities[matched].argsort(stable=True)[:_DOUBTFUL]].tolist()
    if not rows:
        return
    yield "<h2>Matches to look at first</h2>"
    yield "<p>The least sure ones, with the runner-up of each.</p>"
    yield grid(
        ("row", "match", "probability", "runner-up", "its probability"),
        [
            (
                linkage.incoming.ids[row],
                linkage.stored_id(int(linkage.indices[row])),
                _percent(linkage.probabilities[row]),
                linkage.stored_id(int(linkage.second[row])),
                _percent(linkage.second_probabilities[row]),
            )
            for row in rows
        ],
    )
    queries = torch.from_numpy(linkage.incoming.values).to(linkage.memory.patterns.dtype)
    explained = [text for row in rows[:_EXPLAINED] if (text := _why(linkage, queries[row], row))]
    if explained:
        yield "<h3>Which columns decided</h3>"
        yield "<p>Blue speaks for the match, orange for the runner-up.</p>"
        if linkage.one_to_one:
            yield "<p>One to one, a match may be the less likely of the two: the other one went to another row.</p>"
        yield from explained
    if linkage.model.shared and order_of(linkage.memory.patterns):
        yield "<h3>Drawn over each other</h3>"
        shown = rows[:_CURVES]
        yield drawn(lambda ax: _curves(linkage, queries, shown, ax), 8.0, 1.4 + 0.9 * len(shown))


def _curves(linkage: Linkage, queries: torch.Tensor, rows: list[int], ax: Axes) -> None:
    found = torch.stack((linkage.indices, linkage.second), 1)[rows]
    told = [
        f"{linkage.incoming.ids[row]}\n{linkage.stored_id(int(linkage.indices[row]))}, "
        f"{100 * float(linkage.probabilities[row]):.0f} %"
        for row in rows
    ]
    matches_of(linkage.memory.patterns, queries[rows], found, told, linkage.incoming.columns, first="match", ax=ax)


def _why(linkage: Linkage, query: torch.Tensor, row: int) -> str:
    """A waterfall of the evidence for its match; nothing where the model cannot leave a column out."""
    first, second = int(linkage.indices[row]), int(linkage.second[row])
    if second < 0:
        return ""

    def draw(ax: Axes) -> None:
        names = linkage.incoming.columns
        plot.evidence(linkage.memory, query, names, pair=(first, second), observed="not-nan", ax=ax)
        ax.set_xlabel(plain(f"nats for {linkage.stored_id(first)} against {linkage.stored_id(second)}"))

    try:
        return f"<p>{escape(str(linkage.incoming.ids[row]))}</p>\n{drawn(draw, 6.5, 4.0)}"
    except ValueError:
        return ""


def _hubs(linkage: Linkage) -> Iterable[str]:
    """Stored rows that many rows were matched to: hubs, or rows that are meant often."""
    counts = torch.bincount(linkage.indices[linkage.indices >= 0], minlength=1)
    often = counts.argsort(descending=True, stable=True)[:_HUBS].tolist()
    rows = [(linkage.stored_id(row), int(counts[row])) for row in often if counts[row] > 1]
    if rows:
        yield "<h2>Stored rows that were matched more than once</h2>"
        yield "<p>They are meant often, or they are hubs: near to many rows. --one-to-one allows each once.</p>"
        yield grid(("stored row", "matches"), rows)


def _strained(linkage: Linkage) -> Iterable[str]:
    """Stored rows that were given away once, though more rows asked for them."""
    rows = [
        (linkage.stored_id(row), _ids(linkage, linkage.alone == row), _ids(linkage, linkage.indices == row))
        for row in list(linkage.strained)[:_HUBS]
    ]
    if rows:
        yield "<h2>Where one to one was strained</h2>"
        yield (
            "<p>By themselves, several rows have the same match. Whether no stored row is meant twice is yours to say: "
            "where one is, leave --one-to-one out.</p>"
        )
        yield grid(("stored row", "asked for by", "given to"), rows)


def _ids(linkage: Linkage, which: torch.Tensor) -> str:
    """The ids of a few rows."""
    rows = which.nonzero().squeeze(1).tolist()
    told = ", ".join(str(linkage.incoming.ids[row]) for row in rows[:_HUBS])
    return told if len(rows) <= _HUBS else f"{told} and {len(rows) - _HUBS:,} more"


def _strangers(linkage: Linkage) -> Iterable[str]:
    if linkage.reject is None:
        return
    names = [str(linkage.incoming.ids[row]) for row in linkage.strangers.nonzero().squeeze(1).tolist()]
    shown = ", ".join(names[:100]) + (f" and {len(names) - 100:,} more" if len(names) > 100 else "")
    yield f"<h2>Strangers</h2>\n<p>{counted(len(names), 'row')} of no stored one. {escape(shown)}</p>"


def _to_check(asked: dict[str, list[Any]] | None) -> Iterable[str]:
    if asked is None:
        return
    yield "<h2>Rows to check</h2>"
    yield "<p>Drawn so that what they prove holds for all rows. Fill in the file, and give it to --answers.</p>"
    yield grid(tuple(asked), zip(*asked.values(), strict=True))


def _next(linkage: Linkage, checks: str | None) -> str:
    if not linkage.found:
        told = "Nothing was found. Are both files of the same things?"
        return told if linkage.verified else f"{told} Twenty known pairs (--pairs) would tell."
    if linkage.verified:
        return "Probabilities can be relied on: take the matches that are sure enough, and look at the others by hand."
    return f"Check some answers, which tell how right the others are: {to_check(checks)}."


# --- parts of a page ------------------------------------------------------------------------------------------


def drawn(draw: Callable[[Axes], Any], width: float, height: float) -> str:
    """A picture as part of a page, in SVG.

    Args:
        draw: Draws into the axes given.
        width, height: The size in inches.
    """
    require("matplotlib", extra="plot")
    from matplotlib import pyplot, rc_context

    with figure(1, width, height) as made:
        draw(made.axes[0])
        text = io.StringIO()
        # Text stays text, which can be searched and read aloud.
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ahop"}):
            made.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    pyplot.close(made)
    whole = text.getvalue()
    return whole[whole.index("<svg") :]


def _percent(share: Any) -> str:
    return f"{100 * float(share):.1f} %"
