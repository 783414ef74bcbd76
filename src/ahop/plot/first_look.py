"""The pictures to begin with."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ahop._checks import Observed, as_queries
from ahop.memories.base import AssociativeMemory
from ahop.plot.canvas import figure
from ahop.plot.confidence import confidence
from ahop.plot.corruption import corruption
from ahop.plot.energy import energy
from ahop.plot.reliability import reliability
from ahop.plot.risk_coverage import risk_coverage
from ahop.similarity import Density

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Ways downhill that can still be told apart.
_WAYS = 12


def first_look(
    memory: AssociativeMemory, queries: Any = None, origins: Any = None, *, observed: Observed = None
) -> Figure:
    """What there is to see of a memory, side by side; ``memory.plot`` is the same.

    Of a memory that learns a likelihood it is the corruption; with queries also how sure it is of its answers, and with
    their origins, in place of that, the reliability diagram and the risk-coverage curve. Of any other it is the energy,
    with the ways of the first few queries.

    Args:
        memory: Any memory.
        queries: ``(n, d)``, or None.
        origins: The pattern that each came from, ``(n,)``; None if unknown.
        observed: As in :meth:`~ahop.memories.base.AssociativeMemory.scores`; an energy takes complete queries.
    """
    if origins is not None and queries is None:
        raise ValueError("queries must be given with origins, got None")
    if not isinstance(memory.similarity, Density):
        some = None if queries is None else as_queries(queries, memory.patterns, None, memory.query_dim).flat().rows
        pictures = [partial(energy, memory, None if some is None else some[:_WAYS])]
    elif queries is None:
        pictures = [partial(corruption, memory)]
    elif origins is None:
        pictures = [partial(corruption, memory), partial(confidence, memory, queries, observed=observed)]
    else:
        judged = (reliability, risk_coverage)
        pictures = [partial(corruption, memory)]
        pictures += [partial(picture, memory, queries, origins, observed=observed) for picture in judged]
    with figure(len(pictures), 4.6, 4.0) as drawn:
        for picture, ax in zip(pictures, drawn.axes, strict=True):
            picture(ax=ax)
    return drawn
