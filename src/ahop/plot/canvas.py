"""What pictures are drawn on: axes, colours that read on white and on black, and the names of columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ahop._extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Each at least three times as bright as black and three times as dark as white (WCAG's contrast ratio), and told apart
# by those who see no colours: blue speaks for, orange against.
BLUE, ORANGE, GREY = "#3a87c8", "#d9722e", "#808080"
# Names of columns that have room, and those that have it side by side.
_NAMED, _FEW = 40, 6
# Matplotlib's types name every setting.
_STYLE: dict[Any, Any] = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.size": 9.0,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), GREY),
}


@contextmanager
def figure(columns: int, width: float, height: float) -> Iterator[Figure]:
    """A new figure of axes side by side, in the library's style; closed again after an error.

    Args:
        columns: The number of axes.
        width, height: The size of each in inches.
    """
    require("matplotlib", extra="plot")
    from matplotlib import pyplot, rc_context

    with rc_context(_STYLE):
        made, _ = pyplot.subplots(1, columns, figsize=(columns * width, height), layout="constrained")
    try:
        yield made
    except BaseException:
        pyplot.close(made)
        raise


def axes(ax: Axes | None, width: float = 5.0, height: float = 3.6) -> Axes:
    """The axes to draw in: those that were given, or those of a new figure.

    Args:
        ax: The axes given, or None.
        width, height: The size of a new figure in inches.
    """
    require("matplotlib", extra="plot")
    from matplotlib.axes import Axes

    if ax is None:
        with figure(1, width, height) as made:
            return made.axes[0]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be the axes of a matplotlib figure or None, got {type(ax).__name__}")
    return ax


def ink(ax: Axes) -> Any:
    """The colour of text in these axes."""
    return ax.xaxis.label.get_color()


def legend(ax: Axes, **where: Any) -> None:
    """A legend without a box, in the colour of the text."""
    ax.legend(frameon=False, fontsize="small", labelcolor=ink(ax), **where)


def name_columns(ax: Axes, names: Sequence[str]) -> None:
    """Write the names of columns below their places; of many, those for which there is room."""
    some = slice(None, None, math.ceil(len(names) / _NAMED))
    turned = 0 if len(names) <= _FEW else 90
    ax.set_xticks(range(len(names))[some], list(names)[some], rotation=turned)


def plain(text: Any) -> str:
    """A text as it stands: matplotlib takes what is between two dollar signs for a formula."""
    return str(text).replace("$", r"\$")


def as_names(names: Sequence[str] | None, count: int) -> list[str]:
    """The names of the columns: those that were given, one each, or their numbers."""
    if names is None:
        return [f"column {place}" for place in range(count)]
    if isinstance(names, str) or len(names) != count:
        came = f"the text {names!r}" if isinstance(names, str) else str(len(names))
        raise ValueError(f"names must be {count}, one for each column of the queries; got {came}")
    return [plain(name) for name in names]
