"""``ahop-paper claims``."""

from __future__ import annotations

from ahop_paper import claims
from ahop_paper.commands.common import Out, app, keep, plain_errors, show
from ahop_paper.pages import tables


@app.command("claims")
@plain_errors
def run_claims(out: Out = None) -> None:
    """The paper's theorems and lemmas, tested with numbers: as printed, and as corrected."""
    result = claims.run()
    show(tables.claims(result), "What the paper claims, and what holds")
    keep(result, out)
