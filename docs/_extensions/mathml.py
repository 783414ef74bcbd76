"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing to fetch."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

_LOGGER = logging.getLogger(__name__)


def _formula(writer: Any, node: nodes.Element, display: str) -> str:
    text = node.astext().strip()
    if r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    try:
        return convert(text, display=display)
    except Exception as error:
        _LOGGER.warning("a formula cannot be drawn (%r): %s", error, text, location=node)
        return f"<code>{writer.encode(text)}</code>"


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(_formula(writer, node, "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<div class="formula">{_formula(writer, node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx know it as the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
