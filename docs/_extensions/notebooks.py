"""Every guide as a notebook to download: its text and its code, without outputs, made while the site is built.

A link to it stands on its page, and beside it in the list of guides.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "guides"
# What runs everywhere; and what runs where other libraries are, for a guide that has nothing else.
BLOCK, BESIDE = (re.compile(rf"```{word}\n(.*?)```\n?", re.DOTALL) for word in ("python", "py"))
# Pictures and other pages lie beside the site, not beside a notebook.
PICTURE, LINK = re.compile(r"!\[[^]]*\]\([^)]*\)\n*"), re.compile(r"(?<!!)\[([^]]+)\]\((?!https?:)[^)]*\)")
# A guide in the last cell of a row.
IN_A_CELL = re.compile(r"\[[^]]+\]\((?P<guide>[\w-]+)\.md\)(?= \|$)", re.MULTILINE)


def code_of(text: str) -> re.Pattern[str]:
    """The pattern of the blocks that are a guide's code."""
    return BLOCK if BLOCK.search(text) else BESIDE


def with_code(folder: Path) -> dict[str, str]:
    """The guides that have code, by their names."""
    texts = {path.stem: path.read_text() for path in sorted(folder.glob("*.md"))}
    return {name: text for name, text in texts.items() if code_of(text).search(text)}


def notebook(text: str) -> dict[str, Any]:
    """The notebook of a page in Markdown: a cell for each block of its code, and one for each text between them."""
    cells = []
    # Every second part is a block.
    for place, part in enumerate(code_of(text).split(text)):
        code = place % 2 == 1
        source = (part if code else LINK.sub(r"\1", PICTURE.sub("", part))).strip("\n")
        if source:
            kind = {"cell_type": "code", "execution_count": None, "outputs": []} if code else {"cell_type": "markdown"}
            cells.append({**kind, "id": f"cell-{place}", "metadata": {}, "source": source})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def listed(text: str, codes: set[str]) -> str:
    """The list of guides, with a link to the notebook of each that has code."""

    def beside(found: re.Match[str]) -> str:
        link = f'<br/><a class="download" href="{found["guide"]}.ipynb" download>notebook</a>'
        return found[0] + link * (found["guide"] in codes)

    return IN_A_CELL.sub(beside, text)


def _offer(app: Sphinx, page: str, source: list[str]) -> None:
    """Put a link below the title of a guide with code, and into the list of guides."""
    if page == f"{FOLDER}/index" and app.builder.format == "html":
        source[0] = listed(source[0], set(with_code(Path(app.srcdir, FOLDER))))
    if page.startswith(f"{FOLDER}/") and code_of(source[0]).search(source[0]) and app.builder.format == "html":
        name = f"{page.removeprefix(f'{FOLDER}/')}.ipynb"
        title, _, rest = source[0].partition("\n")
        source[0] = f'{title}\n\n<p class="notebook"><a href="{name}" download>As a notebook</a></p>\n{rest}'


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        for name, text in with_code(Path(app.srcdir, FOLDER)).items():
            Path(app.outdir, FOLDER, f"{name}.ipynb").write_text(json.dumps(notebook(text), indent=1))


def setup(app: Sphinx) -> dict[str, bool]:
    """Let Sphinx know it."""
    app.connect("source-read", _offer)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
