"""``ahop adapt``."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahop.cli.common import Files, apart, app, keep, plain_errors, read_incoming, read_tables, say, spare_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ahop.tables import Table

# Of a column's spread, written to files of text.
_DIGITS = 6
_CORRECTED = "rows as the stored ones were measured"
_Metric = Annotated[
    str | None,
    typer.Option(help="What an index ranks by: cosine, inner or l2. Rows of the same columns need none."),
]


@app.command()
@plain_errors
def adapt(
    files: Files,
    out: Annotated[Path, typer.Option(help="Where adapted rows go: .npy, .csv or .parquet.")],
    pairs: Annotated[Path | None, typer.Option(help="Known pairs: incoming id, stored id or none.")] = None,
    metric: _Metric = None,
    id: Annotated[str | None, typer.Option(help="The column of ids; else one that can be is found.")] = None,
    incoming_id: Annotated[str | None, typer.Option(help="That of INCOMING, if it has another name.")] = None,
    save: Annotated[Path | None, typer.Option(help="Folder to keep what was learned in.")] = None,
    model: Annotated[Path | None, typer.Option(help="Folder of what was learned before, to use as it is.")] = None,
) -> None:
    """Write rows as another instrument would have measured them, or as queries for an index that stays as it is.

    STORED is what the first instrument measured, or what the index holds; INCOMING what the second one measured, or
    queries of another model.
    """
    from ahop import linkage, tables
    from ahop._checks import choice
    from ahop._files import require_folder
    from ahop.linkage.rows import in_rows

    if metric is not None:
        choice(metric, "--metric", ("cosine", "inner", "l2"))
    tables.require_table(out, ".npy")
    spare_answers({"--out": out})
    keep([*files, pairs], {"--out": out})
    apart({"--out": out, "--save": save})
    if save is not None:
        require_folder(save)
    if model is not None and linkage.Correction.lies_in(model):
        _correct_further(files, model, out, id, incoming_id, {"--pairs": pairs, "--metric": metric, "--save": save})
        return
    given, asked = read_tables(files, id, incoming_id, model)
    held = given.stored if isinstance(given, linkage.Model) else given
    known, learned, correction = None, None, None
    if pairs is not None:
        known, note = linkage.known_pairs(pairs, held, asked)
        say("known pairs", note)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        if model is None and metric is None and tables.aligned(held, asked).shared:
            found = linkage.corrected(held, asked, known)
            correction, columns, vectors, made = found.correction, found.table.columns, found.table.values, _CORRECTED
            told = found.lines
            if save is not None and correction is None:
                raise ValueError("--save keeps corrections that known pairs have taught: give --pairs, or leave it out")
        else:
            metric = metric or "cosine"
            vectors, learned, told = linkage.adapted(given, asked, known, metric)
            columns, made = held.columns, f"queries for an index by {metric}"
    for note in dict.fromkeys(in_rows(str(one.message)) for one in warned):
        say("note", note)
    for line in told:
        say(*line)
    like = held.values[:, [held.columns.index(name) for name in columns]]
    _write(out, vectors, columns, asked, like)
    say("wrote", f"{out} ({len(vectors):,} {made})")
    kept = correction or learned
    if save is not None and kept is not None:
        kept.save(save)
        say("wrote", f"{save} (the {'model' if correction is None else 'correction'})")


def _correct_further(
    files: list[Path],
    folder: Path,
    out: Path,
    id: str | None,
    incoming_id: str | None,
    refused: dict[str, object],
) -> None:
    """Correct the next batch by what pairs taught before."""
    from ahop.linkage import Correction

    if len(files) != 1:
        raise ValueError(f"files must be INCOMING alone, since --model corrects it; got {' '.join(map(str, files))}")
    if useless := [option for option, value in refused.items() if value is not None]:
        raise ValueError(f"{useless[0]} must be left out: --model holds a correction, which is used as it is")
    correction = Correction.load(folder)
    say("corrected by", f"{correction.transfer.chosen_}; as saved in {folder}")
    asked = read_incoming(files[0], id, incoming_id, correction.columns)
    say("incoming", str(asked))
    found = correction.corrected(asked)
    _write(out, found.values, found.columns, asked, correction.library * correction.unit)
    say("wrote", f"{out} ({len(found.values):,} {_CORRECTED})")


def _write(out: Path, vectors: np.ndarray, columns: Sequence[str], asked: Table, like: np.ndarray) -> None:
    """Adapted rows, with the ids that they came with and the digits that rows like them have."""
    import numpy as np

    from ahop import tables
    from ahop._files import atomic_file

    if out.suffix.lower() == ".npy":
        with atomic_file(out) as file:
            np.save(file, vectors)
        return
    cells = (_rounded(*both) for both in zip(vectors.T, like.T, strict=True))
    adapted = {asked.id or "id": asked.ids.tolist(), **dict(zip(columns, cells, strict=True))}
    tables.write(adapted, out, asked.decimal)


def _rounded(column: np.ndarray, like: np.ndarray) -> list[float | None]:
    """The numbers of a column to a millionth of the spread of what it is like: no instrument has more digits."""
    import numpy as np

    spread = float(np.nanstd(like)) or 1.0
    cells = np.round(column.astype(np.float64), _DIGITS - math.floor(math.log10(spread))).tolist()
    return [None if math.isnan(cell) else cell for cell in cells]
