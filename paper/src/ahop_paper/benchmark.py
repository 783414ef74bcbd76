"""The command line of a benchmark whose work several processes and machines share, a part at a time."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ahop_paper import provenance, report
from ahop_paper.parallel import TimeUp, each

Done = dict[str, Any]


def run(
    name: str,
    file: str,
    about: str | None,
    work: Callable[..., list[Done]],
    summary: Callable[[list[Done]], list[Done]],
    sets: Sequence[str],
    seeds: Sequence[int],
    ways: Sequence[str] = (),
) -> None:
    """Do what is left of a benchmark, keep every part when it is ready, and print it.

    Args:
        name: What the report is called; it is ``results/NAME.json`` unless ``--out`` says otherwise.
        file: Where the code of the benchmark lies: ``__file__``.
        about: What the benchmark does, for ``--help``.
        work: The rows of one part, from a set, a seed and, if there are any, a way; each row names its ``data``,
            ``seed`` and ``way``.
        summary: The rows of the report, from all that was done.
        sets: What there is.
        seeds: Those that are run unless ``--seeds`` says otherwise.
        ways: What may be asked for of each set by itself.
    """
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sets", nargs="+", choices=sets, default=list(sets), metavar="SET")
    options.add_argument("--seeds", nargs="+", type=int, default=list(seeds), metavar="SEED")
    if ways:
        options.add_argument("--ways", nargs="+", choices=ways, default=list(ways), metavar="WAY")
    options.add_argument("--out", type=Path, default=provenance.ROOT / "results" / f"{name}.json", metavar="FILE")
    options.add_argument("--workers", type=int, default=1, help="processes with a thread each; -1 for one a core")
    options.add_argument("--minutes", type=float, default=math.inf, help="after so many, no further part begins")
    options.add_argument("--join", nargs="+", metavar="FILE", help="run nothing: make one report of these")
    given = options.parse_args()

    def whole(head: Done, done: list[Done]) -> Done:
        ordered = sorted(done, key=lambda one: (sets.index(one["data"]), one["seed"]))
        return {**head, "rows": summary(ordered), "done": ordered}

    config = {"device": "cpu"}
    if given.join:
        report.write_as_is(whole(*report.join(given.join, name, config, ())), given.out)
        return
    journal = report.Journal(given.out, report.stamp(name, config, file), (), whole)
    known = {(one["data"], one["seed"], one.get("way")) for one in journal.done}
    asked = given.ways if ways else [None]
    jobs = [(one, seed, way) for seed in given.seeds for one in given.sets for way in asked]
    left = [job for job in jobs if job not in known]
    until = time.monotonic() + 60 * given.minutes
    try:
        for rows in each(work, [job if ways else job[:2] for job in left], given.workers, until):
            journal.add(rows)
            for row in rows:
                print(row, flush=True)
    except TimeUp:
        print("the time is up, and parts are left: run it again")
    print(f"report: {given.out.name}")
