"""The tables of a document, kept to what the results say."""

from __future__ import annotations

import os
import re

from ahop_paper.pages.tables import made, source

_BLOCK = re.compile(r"<!-- table: (?P<name>[\w-]+) -->\n(?:(?!<!--).)*<!-- end of table -->", re.S)


def filled(text: str, results: str | os.PathLike[str]) -> str:
    """The text with every marked table made again from the folder of results."""

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        table = f"{made(name, results)}\n\n<sub>{source(name, results)}</sub>"
        return f"<!-- table: {name} -->\n{table}\n<!-- end of table -->"

    whole, marked = len(_BLOCK.findall(text)), text.count("<!-- table: ")
    if whole != marked:
        raise ValueError(f"every marked table must have its end, <!-- end of table -->; {whole} of {marked} have")
    return _BLOCK.sub(fill, text)
