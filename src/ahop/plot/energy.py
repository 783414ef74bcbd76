"""The energy that a memory descends, with its basins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ahop._checks import as_matrix, as_queries, stored_as
from ahop._component import single
from ahop.energy import Energetic, basins, descend
from ahop.memories.base import AssociativeMemory
from ahop.memories.fourier import FourierHopfield
from ahop.plot.canvas import BLUE, GREY, ORANGE, axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points along a side, room around what is drawn, levels, and how strong the shade of the lowest is.
_POINTS, _ROOM, _LEVELS = 81, 0.15, 14
# Every second of these points rolls down to say which basin it is in.
_EVERY = 2
# Of more patterns, their boundaries would take minutes to find, and nobody could tell them apart.
_MOST_PATTERNS = 300
_STRONGEST = 0.6
# A descent is drawn in so many strokes, of so many steps each, none of them longer than this part of the picture.
_STROKES, _STEPS, _STRIDE = 40, 3, 0.02


class Plane(NamedTuple):
    """A plane in the space of patterns: its origin ``(d,)`` and two directions ``(2, d)`` of length 1."""

    origin: Tensor
    directions: Tensor

    def onto(self, points: Tensor) -> Tensor:
        """Where points ``(..., d)`` lie in the plane, ``(..., 2)``."""
        return (points - self.origin) @ self.directions.mT

    def out(self, places: Tensor) -> Tensor:
        """Places ``(..., 2)`` as points ``(..., d)``."""
        return self.origin + places @ self.directions


def plane_of(patterns: Tensor) -> Plane:
    """The plane of the first two principal components of patterns ``(N, d)``; of two dimensions, they themselves."""
    dim = patterns.shape[1]
    if dim == 2:
        return Plane(patterns.new_zeros(2), torch.eye(2).to(patterns))
    centre = patterns.mean(0)
    return Plane(centre, torch.linalg.svd(patterns - centre, full_matrices=len(patterns) < 2).Vh[:2])


def energy(
    memory: AssociativeMemory | FourierHopfield, queries: Any = None, *, patterns: Any = None, ax: Axes | None = None
) -> Axes:
    """The energy as a map, with the patterns and, if there are queries, their ways downhill.

    Of two dimensions it is drawn as it is and, of up to 300 patterns, with the boundaries of its basins
    (:func:`ahop.energy.basins`), across which states roll into another well; of more dimensions on the plane of the
    patterns' first two principal components, through their mean. Patterns and queries that lie off this plane are drawn
    where they fall on it, and need not lie in a dip of it. The stronger the shade, the lower the energy. Between any
    two lines lies as much of the plane, so that deep wells leave the slopes to be seen.

    Args:
        memory: One whose queries are as wide as its patterns, of at least two dimensions.
        queries: ``(n, d)``, from which :func:`ahop.energy.descend` goes downhill; None draws no ways.
        patterns: ``(N, d)``, those that were stored in a memory that keeps none (:class:`~ahop.FourierHopfield`); of
            others None, which draws what they have.
        ax: Where to draw; None makes a figure (:mod:`ahop.plot`).
    """
    points = _points(memory, patterns)
    dim = points.shape[1]
    if dim < 2:
        raise ValueError("memory must have at least two dimensions to draw its energy on a plane, got one")
    starts = None if queries is None else single(as_queries(queries, points, None).flat().rows)
    plane = plane_of(points)
    stored = plane.onto(points)
    shown = stored if starts is None else torch.cat([stored, plane.onto(starts)])
    low, high = shown.amin(0), shown.amax(0)
    room = _ROOM * (high - low).amax().clamp_min(1e-6)
    (left, bottom), (right, top) = (low - room).tolist(), (high + room).tolist()
    across, up = torch.linspace(left, right, _POINTS), torch.linspace(bottom, top, _POINTS)
    grid = torch.stack(torch.meshgrid(across, up, indexing="xy"), -1).to(points)
    with torch.no_grad():
        height = memory.energy(plane.out(grid)).double().cpu()
    stride = _STRIDE * math.hypot(right - left, top - bottom)
    ways = stored.new_empty(1, 0, 2) if starts is None else _ways(memory, plane, starts, stride)
    ax = axes(ax, 4.6, 4.0)
    _draw(ax, across, up, height)
    ax.plot(*stored.cpu().T.numpy(), "o", color=BLUE, markersize=4, label="patterns")
    for way in ways.unbind(1):
        ax.plot(*way.T.numpy(), color=ORANGE, linewidth=1, alpha=0.8)
    if starts is not None:
        ax.plot(*ways[0].T.numpy(), "x", color=ORANGE, markersize=5, label="queries")
    if dim == 2 and len(points) <= _MOST_PATTERNS:
        _draw_basins(ax, memory, grid[::_EVERY, ::_EVERY])
    names = ("first value", "second value") if dim == 2 else ("first principal component", "second")
    ax.set(xlabel=names[0], ylabel=names[1], xlim=(left, right), ylim=(bottom, top))
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax


def _points(memory: AssociativeMemory | FourierHopfield, patterns: Any) -> Tensor:
    """The patterns to draw, ``(N, d)``, in float32 or better."""
    if isinstance(memory, FourierHopfield):
        if patterns is None:
            raise ValueError("patterns must be given: a memory that keeps none cannot say where they are")
        rows = stored_as(as_matrix(patterns, "patterns"), memory.frequencies, "patterns")
        if rows.shape[1] != memory.dim:
            raise ValueError(f"patterns must have {memory.dim} values each, got shape {tuple(rows.shape)}")
        return single(rows)
    if patterns is not None:
        raise ValueError("patterns must be None: this memory keeps its own")
    if memory.query_dim != memory.patterns.shape[1]:
        wide = f"{memory.query_dim} for {memory.patterns.shape[1]} values"
        raise ValueError(f"memory must have queries as wide as its patterns, got {wide}")
    return single(memory.patterns)


def _draw(ax: Axes, across: Tensor, up: Tensor, height: Tensor) -> None:
    """Heights as a shade, the stronger the lower, and lines that leave as much of the plane between any two."""
    # By rank, of which equal heights have the same.
    values, places = height.unique(return_inverse=True)
    depth = 1 - places / max(1, len(values) - 1)
    shade = torch.full((*height.shape, 4), int(GREY[1:3], 16) / 255)
    shade[..., 3] = _STRONGEST * depth
    corners = (float(across[0]), float(across[-1]), float(up[0]), float(up[-1]))
    ax.imshow(shade.numpy(), extent=corners, origin="lower", aspect="auto", interpolation="bilinear")
    levels = height.flatten().quantile(torch.linspace(0, 1, _LEVELS, dtype=height.dtype)[1:-1]).unique()
    if len(values) > 1:
        grid = across.numpy(), up.numpy(), height.numpy()
        ax.contour(*grid, levels.tolist(), colors=GREY, linewidths=0.6, linestyles="solid")


def _draw_basins(ax: Axes, memory: Energetic, grid: Tensor) -> None:
    """The boundaries between the basins of states ``(s, s, 2)``."""
    wells, found = basins(memory, grid.flatten(0, 1))
    places, owners = grid.cpu().numpy(), found.reshape(grid.shape[:2]).cpu()
    bounded = [own for well in range(len(wells)) if not bool((own := owners == well).all())]
    for own in bounded:
        ax.contour(
            places[..., 0],
            places[..., 1],
            own.double().numpy(),
            [0.5],
            colors=BLUE,
            linewidths=1.0,
            linestyles="dashed",
        )
    if bounded:
        ax.plot([], [], "--", color=BLUE, linewidth=1.0, label="basins")


def _ways(memory: Energetic, plane: Plane, starts: Tensor, stride: float) -> Tensor:
    """The ways of queries downhill, on the plane, ``(strokes, n, 2)``."""
    states = [starts]
    for _ in range(_STROKES):
        states.append(descend(memory, states[-1], _STEPS, stride=stride).to(starts))
    return plane.onto(torch.stack(states)).cpu()
