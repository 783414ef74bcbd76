"""``ahop match``."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ahop.cli.common import Files, apart, app, keep, plain_errors, read_tables, say, spare_answers

if TYPE_CHECKING:
    from torch import Tensor

    from ahop.linkage import Model
    from ahop.tables import Table

# What a run that does not reach ``--require`` ends with.
_NOT_REACHED = 3


_Share = Annotated[float | None, typer.Option(help="Refuse strangers, and at most this share of genuine rows.")]


@app.command()
@plain_errors
def match(
    files: Files,
    out: Annotated[Path, typer.Option(help="Where matches go: .csv, with the decimal sign of INCOMING, or .parquet.")],
    id: Annotated[str | None, typer.Option(help="The column of ids; else one that can be is found.")] = None,
    incoming_id: Annotated[str | None, typer.Option(help="That of INCOMING, if it has another name.")] = None,
    pairs: Annotated[Path | None, typer.Option(help="Known pairs: incoming id, stored id or none.")] = None,
    one_to_one: Annotated[bool, typer.Option("--one-to-one", help="Match each stored row at most once.")] = False,
    reject: _Share = None,
    require: Annotated[float | None, typer.Option(help="Accuracy to reach; exit code 3 if it is not.")] = None,
    ask: Annotated[int | None, typer.Option(help="Write so many rows to check beside the matches.")] = None,
    answers: Annotated[list[Path] | None, typer.Option(help="Those rows with answers; once for each file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Where a page with pictures goes: .html.")] = None,
    save: Annotated[Path | None, typer.Option(help="Folder to keep the model in.")] = None,
    model: Annotated[Path | None, typer.Option(help="Folder of a model to use as it is.")] = None,
) -> None:
    """Match rows of two tables: learn what happened to them on their way, and say how right the matches are."""
    from ahop import linkage, tables
    from ahop._checks import within
    from ahop._files import write_atomically

    begun = time.monotonic()
    # What can be refused is refused before the work.
    for share, name in ((require, "--require"), (reject, "--reject")):
        if share is not None:
            within(share, name, 0.0, 1.0)
    tables.require_table(out)
    given = answers or []
    for file in (pairs, *given):
        if file is not None and not file.is_file():
            raise FileNotFoundError(f"{file} does not exist")
    checks = out.with_name(f"{out.stem}-check{out.suffix}")
    asking = {} if ask is None else {"--ask": checks, "the page of --ask": checks.with_suffix(".html")}
    _require_targets({"--out": out, **asking, "--report": report, "--save": save}, [*files, pairs, *given])
    stored, incoming = read_tables(files, id, incoming_id, model)
    known = None
    table = stored.stored if isinstance(stored, linkage.Model) else stored
    if pairs is not None:
        known, note = linkage.known_pairs(pairs, table, incoming)
        say("known pairs", note)
    checked = linkage.checked_answers(given, table, incoming, known) if given else None
    if ask is not None and not (left := _left(incoming, known, checked)) >= ask >= 1:
        raise ValueError(f"--ask must be 1 to {left}, as many rows as nobody knows; got {ask}")
    # One to one, pairs judge by themselves; a page asks for it where no answers do.
    judging = known is not None and (one_to_one or (report is not None and checked is None))
    if wait := _wait(stored, incoming, one_to_one=one_to_one, judging=judging):
        say("time to come", wait)

    found = linkage.link(stored, incoming, known, one_to_one=one_to_one, reject=reject)
    if checked is not None:
        found = linkage.answered(found, checked)
    elif report is not None:
        found = linkage.with_reliability(found)
    found = replace(found, seconds=time.monotonic() - begun)
    asked, to_fill = (None, None) if ask is None else (linkage.asked(found, ask), str(checks))
    shown = None if report is None else linkage.page(found, require, asked, to_fill)
    tables.write(found.table(), out, incoming.decimal)
    if asked is not None:
        tables.write(asked, checks, incoming.decimal)
        write_atomically(linkage.check_page(found, asked, checks.name), checks.with_suffix(".html"))
    if report is not None and shown is not None:
        write_atomically(shown, report)
    if save is not None:
        found.model.save(save)
    for line in linkage.lines(found, to_fill):
        say(*line)
    say("wrote", f"{out} (matches)")
    if ask is not None:
        say("wrote", f"{checks} (rows to check), {checks.with_suffix('.html')} (the same to read)")
    for path, what in ((report, "what to look at"), (save, "the model")):
        if path is not None:
            say("wrote", f"{path} ({what})")
    if require is not None:
        passed, text = linkage.verdict(found, require)
        say("verdict", text)
        if not passed:
            raise typer.Exit(_NOT_REACHED)


def _require_targets(written: dict[str, Path | None], read: list[Path | None]) -> None:
    """Refuse what would write over something of worth, or could not be written when the work is done."""
    from ahop import _extras
    from ahop._files import require_folder, require_writable

    spare_answers({option: written.get(option) for option in ("--out", "--ask")})
    keep(read, written)
    apart(written)
    if (report := written["--report"]) is not None:
        if report.suffix.lower() != ".html":
            raise ValueError(f"--report must end in .html; got {report}")
        _extras.require("matplotlib", extra="plot")
        require_writable(report)
    if (save := written["--save"]) is not None:
        require_folder(save)


def _left(incoming: Table, *known: Tensor | None) -> int:
    """How many rows nobody knows, before or by an answer."""
    from ahop._checks import UNKNOWN

    told = {row for some in known if some is not None for row in (some != UNKNOWN).nonzero().squeeze(1).tolist()}
    return len(incoming) - len(told)


def _wait(stored: Table | Model, incoming: Table, *, one_to_one: bool, judging: bool) -> str:
    """About how long it will take, where that is long."""
    from ahop import linkage

    table = stored.stored if isinstance(stored, linkage.Model) else stored
    rows, columns = table.values.shape
    how = {"learning": table is stored, "one_to_one": one_to_one, "judging": judging}
    return linkage.in_words(linkage.forecast(rows, len(incoming), columns, **how))
