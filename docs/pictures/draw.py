"""Draws the pictures of the site: ``python docs/pictures/draw.py``, with names to draw only these.

Each is an SVG file without a ground of its own, in colours that read on white and on black. Maps of energy, which would
be long as SVG, are pixels in few colours.
"""

import io
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import of_pages
import of_results
from PIL import Image

HERE = Path(__file__).parent
PIXELS = ("zoo-by-products", "zoo-by-distances")


def as_text(path: Path) -> None:
    """The picture that was drawn last, as SVG; the same text for the same picture."""
    text = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ahop"}):
        plt.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    # A hundredth of a point is all that anybody sees.
    path.write_text(re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", text.getvalue()))


def as_pixels(path: Path) -> None:
    """The picture that was drawn last, as PNG."""
    file = io.BytesIO()
    plt.savefig(file, dpi=58, transparent=True)
    few = Image.open(file).quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


if __name__ == "__main__":
    known = {draw.__name__.replace("_", "-"): draw for draw in (*of_pages.DRAWN, *of_results.DRAWN)}
    for name in sys.argv[1:] or known:
        known[name]()
        as_pixels(HERE / f"{name}.png") if name in PIXELS else as_text(HERE / f"{name}.svg")
        plt.close()
