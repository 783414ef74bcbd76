"""Pages that are one file: they need no network, and follow light and dark mode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fff; --faint: #6a737d; --line: #d8dee4; --mark: #3a87c8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --faint: #8b949e; --line: #30363d; }
}
body { background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { border-top: 1px solid var(--line); font-size: 1.15rem; margin-top: 2rem;
  padding-top: 1rem; }
.verdict { border-left: .4rem solid var(--mark); font-size: 1.1rem; padding: .6rem 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { border-bottom: 1px solid var(--line); padding: .25rem .6rem;
  text-align: left; vertical-align: top; }
th { font-weight: 600; white-space: nowrap; } td.number { font-variant-numeric: tabular-nums; text-align: right; }
p.faint { color: var(--faint); } svg { height: auto; max-width: 100%; } .scroll { overflow-x: auto; }
"""


def document(title: str, parts: Iterable[str]) -> str:
    """A page of parts that are HTML already."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(parts)
        + ("\n</body></html>\n")
    )


def grid(head: Sequence[str] | None, rows: Iterable[Sequence[Any]]) -> str:
    """A table; the first column of one without a head names its rows."""
    body = []
    for first, *rest in rows:
        cells = "".join(f"<td>{escape('' if cell is None else str(cell))}</td>" for cell in rest)
        tag = "th" if head is None else "td"
        body.append(f"<tr><{tag}>{escape(str(first))}</{tag}>{cells}</tr>")
    top = "" if head is None else f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>"
    return f'<div class="scroll"><table>{top}{"".join(body)}</table></div>'
