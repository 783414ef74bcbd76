"""Pictures, films and charts as text that stands in a page: nothing is written to disk or fetched."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ahop._extras import require

# From much less than nothing (blue) over nothing (white) to much more (orange): colours that all can tell apart.
_COLD, _WARM = (0, 90, 160), (200, 80, 0)
_FRAME_MS = 700
# Of areas side by side, as all can tell them apart; grey is for what is in none. Heights are shaded in so many bands.
_AREAS = (
    *((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167)),
    *((230, 159, 0), (86, 180, 233), (148, 103, 189), (190, 174, 20)),
)
_NO_AREA, _BANDS = (128, 128, 128), 14
# A curve of so many points, at most, shows them.
_DOTTED = 16
# Of a chart, and of the margins for its figures, in units of its own that the page scales.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 480, 250, 52, 12, 10, 42


class Line(NamedTuple):
    """A curve of a chart; the page's style sheet knows the colour of its kind."""

    name: str
    kind: str
    across: Sequence[float]
    up: Sequence[float]


def safe(text: object) -> str:
    """Text of somebody else as HTML; signs too that mean something in the page's templates, which are run as code.

    Example:
        >>> safe("<b>${x}")
        '&lt;b&gt;&#36;&#123;x&#125;'
    """
    plain = escape(str(text))
    return plain.translate({ord(sign): f"&#{ord(sign)};" for sign in "{}$`\\"})


def _greys(pictures: Tensor, shape: tuple[int, int]) -> list[Any]:
    """Shades in [-1, 1] as grey images; what lies beyond is black or white."""
    require("PIL", extra="playground")
    from PIL import Image

    bytes = ((pictures.detach().clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
    return [Image.fromarray(one.reshape(shape).numpy()) for one in bytes]


def _address(image: Any, kind: str, **options: Any) -> str:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def picture(pixels: Tensor, shape: tuple[int, int]) -> str:
    """The address of a picture ``(d,)`` that holds the picture itself."""
    return _address(_greys(pixels[None], shape)[0], "png")


def film(states: Tensor, shape: tuple[int, int]) -> str:
    """The address of a film of pictures ``(T, d)``, over and over."""
    first, *rest = _greys(states, shape)
    return _address(first, "gif", save_all=True, append_images=rest, duration=_FRAME_MS, loop=0)


def heat(values: Tensor, shape: tuple[int, int]) -> str:
    """The address of a picture of values ``(d,)``: white is nothing, blue is less and orange more."""
    require("PIL", extra="playground")
    from PIL import Image

    values = values.detach().float()
    strength = (values / values.abs().max().clamp_min(1e-9)).reshape(*shape, 1)
    ends = torch.where(strength < 0, torch.tensor(_COLD), torch.tensor(_WARM)).float()
    return _address(Image.fromarray((255 + strength.abs() * (ends - 255)).round().to(torch.uint8).numpy()), "png")


def areas(heights: Tensor, places: Tensor) -> str:
    """The address of a picture of areas ``(s, s)``, -1 for none, each in a colour that is the stronger the lower.

    Shades are those of ranks, in bands, so that slopes are seen beside deep wells; what is high lets the page through.
    """
    require("PIL", extra="playground")
    from PIL import Image

    colours = torch.tensor([*_AREAS, _NO_AREA])
    chosen = torch.where(places < 0, len(_AREAS), places % len(_AREAS))
    values, ranks = heights.unique(return_inverse=True)
    depth = ((1 - ranks / max(1, len(values) - 1)) * _BANDS).floor() / _BANDS
    pixels = torch.cat([colours[chosen], (20 + 215 * depth)[..., None]], 2)
    return _address(Image.fromarray(pixels.round().to(torch.uint8).numpy(), "RGBA"), "png")


def chart(
    title: str,
    lines: Sequence[Line],
    across: str,
    *,
    least: float | None = None,
    most: float | None = None,
    log: bool = False,
) -> str:
    """Curves over a common axis, as SVG with the colours of the page around it.

    Args:
        title: What it shows.
        lines: The curves.
        across: What the axis across means.
        least, most: Where the axis up ends; None is where the curves do.
        log: Whether equal steps across are equal factors, and marks stand where points do.
    """
    xs = sorted({float(x) for line in lines for x in line.across})
    ys = [float(y) for line in lines for y in line.up]
    marks = ticks(min(ys) if least is None else least, max(ys) if most is None else most)
    scale = math.log if log else float
    left, right = scale(xs[0]), scale(xs[-1]) if xs[-1] > xs[0] else scale(xs[0]) + 1

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + (scale(x) - left) / (right - left) * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - (float(y) - marks[0]) / (marks[-1] - marks[0]) * (_HEIGHT - _TOP - _BOTTOM),
        )

    drawn = []
    for mark in marks:
        _, y = place(xs[0], mark)
        drawn.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_figure(mark)}</text>')
    for mark in xs if log else [mark for mark in ticks(xs[0], xs[-1]) if xs[0] <= mark <= xs[-1]]:
        x, _ = place(mark, marks[0])
        drawn.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{_figure(mark)}</text>')
    drawn.append(f'<text x="{(_LEFT + _WIDTH) / 2:.0f}" y="{_HEIGHT - 5}" text-anchor="middle">{safe(across)}</text>')
    for line in lines:
        places = [place(x, y) for x, y in zip(line.across, line.up, strict=True)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawn.append(f'<polyline class="line {line.kind}" points="{path}"/>')
        if len(places) <= _DOTTED:
            drawn += [f'<circle class="dot {line.kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
    keys = "".join(f'<span class="key {line.kind}">{safe(line.name)}</span>' for line in lines if line.name)
    keys = f'<p class="keys">{keys}</p>' if keys else ""
    picture = f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{safe(title)}">{"".join(drawn)}</svg>'
    return f'<figure class="chart"><figcaption>{safe(title)}</figcaption>{keys}{picture}</figure>'


def spark(curves: np.ndarray, kinds: Sequence[str], about: str) -> str:
    """Curves ``(c, d)`` over each other in a small picture; NaN leaves a gap.

    Args:
        curves: The values, ``(c, d)``.
        kinds: The CSS class of each curve.
        about: What a screen reader says.
    """
    low, high = float(np.nanmin(curves)), float(np.nanmax(curves))
    up = 31 - 28 * (curves - low) / (high - low or 1.0)
    across = np.linspace(2, 148, curves.shape[1])
    drawn = []
    for kind, line in zip(kinds, up, strict=True):
        for part in np.ma.clump_unmasked(np.ma.masked_invalid(line)):
            points = " ".join(f"{x:.0f},{y:.1f}" for x, y in zip(across[part], line[part], strict=True))
            drawn.append(f'<polyline class="line {kind}" points="{points}"/>')
    return f'<svg class="spark" viewBox="0 0 150 34" role="img" aria-label="{safe(about)}">{"".join(drawn)}</svg>'


def ticks(low: float, high: float) -> list[float]:
    """Round numbers at equal steps, the first not above ``low`` and the last not below ``high``.

    Example:
        >>> ticks(-4.15, 0.0)
        [-6.0, -4.0, -2.0, 0.0]
        >>> ticks(0, 1)
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    span = high - low if high > low else max(abs(low), 1.0)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power * 4 >= span * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil((low + span) / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def _figure(value: float) -> str:
    """A number of few digits.

    Example:
        >>> _figure(0.25), _figure(-1234.0), _figure(20)
        ('0.25', '-1234', '20')
    """
    return f"{value:.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
