"""Making the parts one after another: what is there already, what may begin in time, and what came of each."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ahop._extras import MissingExtraError
from ahop_paper import provenance, report
from ahop_paper._libraries import require
from ahop_paper.parallel import TimeUp
from ahop_paper.parts import BENCHMARKS, Part, Run

LEFT = "left for the next call"


def command(file: str, device: str) -> tuple[str, str]:
    """What makes a file of results/: a command, and what stands behind it, where it takes several with commas."""
    if file in BENCHMARKS:
        return BENCHMARKS[file], ""
    return f"ahop-paper paper --full{'' if device == 'cpu' else ' --device cuda'} --only", file


def require_startable(parts: Sequence[Part], run: Run, minutes: float) -> None:
    """Refuse, before the work, too little time, and what is there but comes from a quick run or from other code.

    Args:
        parts: What is to be made.
        run: How, and where.
        minutes: The time there is.
    """
    for part in parts:
        if run.full and part.minutes > minutes:
            raise ValueError(f"minutes must be at least {part.minutes}, as {part.file} takes; got {minutes:g}")
        if run.full and (before := there(part, run)) and before.get("quick"):
            out = Path(run.folder) / part.file
            raise ValueError(f"{out} comes from a quick run; choose another folder for full ones")
    other = [part.file for part in parts if stale(part, run)]
    if other:
        now = provenance.at(provenance.commit())
        raise ValueError(
            f"{run.folder} has {', '.join(other)}, made by code other than that of commit {now}; delete them to make"
            " them again, choose another folder, or go on at their own commit"
        )


def there(part: Part, run: Run) -> dict[str, Any] | None:
    """The report of a part as far as it is there; pictures have none."""
    out = Path(run.folder) / part.file
    return _read(out) if out.suffix == ".json" and out.exists() else None


def stale(part: Part, run: Run) -> str:
    """Which of what is there of a part was made, or begun, by other code, in words; none if all is of now."""
    before = there(part, run)
    if before is None:
        return ""
    with report.reading(Path(run.folder) / part.file):
        # A report of one piece has no rows with a code of their own.
        own = getattr(part.code, "code_of", None)
        code = None if own is None else partial(own, dict(before.get("config", {})))
        other = report.by_other_code(before, provenance.fingerprint(part.code.__file__ or ""), code)
        old = any("code" not in one for one, _ in other) and "done" in before and own is not None
        every = len(before.get("done", other))
    if not other:
        return ""
    share = "" if len(other) == every else f"{len(other)} of {every} parts "
    return f"{share}by other code" + " (made before rows had fingerprints)" * old


def make(part: Part, run: Run) -> str:
    """Make one part, unless it is there; what became of it, in a few words."""
    out = Path(run.folder) / part.file
    before = out.read_bytes() if out.exists() else None
    if part.needs_gpu and run.device == "cpu":
        return "skipped: needs --device cuda"
    until = run.end - (60 * part.minutes if run.full else 0)
    if before is None and time.monotonic() >= until:
        return LEFT
    try:
        if part.draw:
            require("matplotlib")
        if before is None or part.resumable:
            part.make(run, out, until)
    except TimeUp:
        return LEFT
    except (FileNotFoundError, MissingExtraError) as error:
        return f"skipped: {error}"
    made = out.read_bytes() != before
    picture = out.with_suffix(".png")
    if part.draw and (made or not picture.exists()):
        part.draw(_read(out), picture)
    return "made" if made else "there already"


def _read(path: Path) -> dict[str, Any]:
    with report.reading(path):
        return dict(json.loads(path.read_text()))
