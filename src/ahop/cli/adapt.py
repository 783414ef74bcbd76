"""``ahop adapt``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ahop.cli.common import app, plain_errors, say


@app.command()
@plain_errors
def adapt(
    stored: Annotated[Path, typer.Argument(help="The table that the index holds.")],
    incoming: Annotated[Path, typer.Argument(help="Queries, of another model or another width.")],
    pairs: Annotated[Path, typer.Option(help="Known pairs: incoming id, stored id.")],
    out: Annotated[Path, typer.Option(help="Where adapted queries go: .npy, .csv or .parquet.")],
    metric: Annotated[str, typer.Option(help="What the index ranks by: cosine, inner or l2.")] = "cosine",
    id: Annotated[str | None, typer.Option(help="The column of ids; else one that can be is found.")] = None,
    incoming_id: Annotated[str | None, typer.Option(help="That of INCOMING, if it has another name.")] = None,
) -> None:
    """Write queries of a changed embedding for an index that stays as it is."""
    import numpy as np

    from ahop import linkage, tables
    from ahop._checks import choice
    from ahop._files import whole_file

    choice(metric, "--metric", ("cosine", "inner", "l2"))
    tables.require_table(out, ".npy")
    held, asked = tables.read(stored, id), tables.read(incoming, id if incoming_id is None else incoming_id)
    say("stored", str(held))
    say("incoming", str(asked))
    known = linkage.known_pairs(pairs, held, asked)
    say("known pairs", known.note)
    vectors = linkage.adapted(held, asked, known.origins, metric)
    if out.suffix.lower() == ".npy":
        with whole_file(out) as file:
            np.save(file, vectors)
    else:
        tables.write({"id": asked.ids.tolist(), **dict(zip(held.columns, vectors.T.tolist(), strict=True))}, out)
    say("wrote", f"{out} ({len(vectors):,} queries for an index by {metric})")
