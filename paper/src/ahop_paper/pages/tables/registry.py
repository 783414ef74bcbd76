"""Tables by name, and what all of them are made with: rows of reports, looked up by what they are about."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ahop import datasets
from ahop._registry import Registry
from ahop_paper import paper, provenance
from ahop_paper import retrieval as benchmark
from ahop_paper.pages.markdown import Grid, read, table, with_spread

Row = dict[str, Any]
Maker = Callable[..., Grid]


class Table(NamedTuple):
    """How a table is made, and of which reports."""

    make: Maker
    reads: tuple[str, ...]


TABLES: Registry[Table] = Registry("table")


def shown(name: str, *reads: str) -> Callable[[Maker], Maker]:
    """A table that documents show under ``name``, made of these reports."""

    def join(make: Maker) -> Maker:
        # A module that is read again brings the same table, no second one of that name.
        if name in TABLES and _place(TABLES[name].make) == _place(make):
            del TABLES[name]
        TABLES.add(name, Table(make, reads))
        return make

    return join


def _place(make: Maker) -> tuple[str, str]:
    return inspect.getfile(make), make.__name__


def made(name: str, folder: str | os.PathLike[str]) -> str:
    """The table of this name in Markdown, from the reports of the folder."""
    wanted = TABLES.named(name)
    try:
        return table(*wanted.make(*(read(folder, report) for report in wanted.reads)))
    except (LookupError, TypeError, AttributeError) as error:
        lacks = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"table {name!r} cannot be made from the reports in {Path(folder)}, which lack a part: {lacks}"
        ) from error


def source(name: str, folder: str | os.PathLike[str]) -> str:
    """What makes the reports of a table, and the commits at which they were made, in Markdown."""
    found: dict[tuple[str, str], list[str]] = {}
    for stem in TABLES.named(name).reads:
        report = read(folder, stem)
        command, file = paper.command(f"{stem}.json", report["config"].get("device", "cpu"))
        found.setdefault((command, provenance.commits(report)), []).append(file)
    return "; ".join(
        f"`{' '.join([command, ','.join(files)]).strip()}`, {at}" for (command, at), files in found.items()
    )


# --- rows and columns -----------------------------------------------------------------------------------------


def each(rows: Iterable[Row], *keys: str) -> list[Any]:
    """What stands under the key, or under several, in the order in which it comes first."""
    return list(dict.fromkeys(row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys) for row in rows))


def by(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], Row]:
    """Rows by what stands under the keys."""
    return {tuple(row[key] for key in keys): row for row in rows}


def cells_of(
    found: dict[tuple[Any, ...], Row], places: Iterable[tuple[Any, ...]], write: Callable[[Row], str]
) -> list[str]:
    """What is written of the row at each place, and nothing where there is none.

    Args:
        found: Rows by their place.
        places: Which to write, in order.
        write: What is written of a row.
    """
    return [write(found[place]) if place in found else "" for place in places]


def beside_paper(what: str, digits: int = 3) -> Callable[[Row], str]:
    """Writes a figure of a row with the paper's in brackets."""
    return lambda row: with_spread(row[what], row["paper"], digits)


def model_title(name: str) -> str:
    """What the benchmark calls a network, ours in bold."""
    known = benchmark.MODELS.get(name)
    if known is None:
        return name
    if not known.ours:
        return known.title
    return f"**{known.title}**" + ("" if known.title == name else f" (`{name}`)")


def set_title(name: str) -> str:
    """What a data set is called."""
    return datasets.ENTRIES[name].title if name in datasets.ENTRIES else name
