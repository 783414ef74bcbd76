"""``ahop claims``."""

from __future__ import annotations

from rich.table import Table

from ahop.paper import claims
from ahop.paper.commands.common import Out, app, console, keep, plain_errors
from ahop.paper.pages.markdown import figure


@app.command("claims")
@plain_errors
def run_claims(out: Out = None) -> None:
    """The paper's theorems and lemmas, tried on numbers: as printed, and as they hold."""
    result = claims.run()
    table = Table(title="What the paper claims, and what holds", title_justify="left", show_lines=True)
    for column in ("where", "as printed", "figures are", "printed", "corrected", "what holds"):
        table.add_column(column, justify="right" if column in ("printed", "corrected") else "left")
    for row in result["rows"]:
        figures = [figure(row[what]) for what in ("printed", "corrected")]
        table.add_row(row["where"], row["says"], row["measured"], *figures, row["holds"])
    console.print(table)
    keep(result, out)
