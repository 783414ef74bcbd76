"""``ahop match`` of very many rows: how much memory it takes, how long, and how long it was said to take.

``python benchmarks/match.py [--large]`` writes two tables of 64 columns into a temporary folder, the stored one in
Parquet and the incoming one in CSV, matches them by the command in a process of its own, and writes
``results/match.json``: 10^5 stored rows against 10^4 by themselves, and 10^4 against 10^4 one to one; with ``--large``
10^6 against 10^5 and 10^5 against 10^5 as well. Each is written as soon as it is done, and a later run goes on from
there. Seconds are those of one machine, which the file names; the peak is the most memory that the process ever held.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ahop import linkage, tables
from ahop_paper import report

DIM, NOISE, SEED = 64, 0.3, 0
TARGET = Path(__file__).parent.parent / "results" / "match.json"


class Case(NamedTuple):
    """How many rows are stored and come in, and whether each stored one is given away once."""

    stored: int
    incoming: int
    one_to_one: bool = False


CASES = [Case(10**5, 10**4), Case(10**4, 10**4, one_to_one=True)]
LARGE = [Case(10**6, 10**5), Case(10**5, 10**5, one_to_one=True)]
QUICK = [Case(500, 200), Case(200, 200, one_to_one=True)]


def made(folder: Path, case: Case) -> np.ndarray:
    """Writes both tables, and tells the stored row of each incoming one."""
    stored, incoming, _ = case
    draw = np.random.default_rng(SEED)
    patterns, origins = draw.normal(size=(stored, DIM)), draw.permutation(stored)[:incoming]
    rows = patterns[origins] + NOISE * draw.normal(size=(incoming, DIM))
    names = [f"x{place}" for place in range(DIM)]
    for path, ids, values in (("stored.parquet", stored, patterns), ("incoming.csv", incoming, rows)):
        tables.write({"id": range(10**6, 10**6 + ids), **dict(zip(names, values.T, strict=True))}, folder / path)
    return origins


def matched(folder: Path, one_to_one: bool) -> tuple[float, int]:
    """Seconds that the command takes, and the bytes it held at most."""
    command = [sys.executable, "-m", "ahop", "match", "stored.parquet", "incoming.csv", "--out", "matches.csv"]
    command += ["--one-to-one"] if one_to_one else []
    begin = time.monotonic()
    running = subprocess.Popen(command, cwd=folder)
    # Of this process alone, not of the largest there was.
    _, status, used = os.wait4(running.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"ahop match ended with {code}")
    running.returncode = 0
    unit = 1 if sys.platform == "darwin" else 1024
    return time.monotonic() - begin, used.ru_maxrss * unit


def measure(case: Case) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        origins = made(folder, case)
        files = sum(path.stat().st_size for path in folder.iterdir())
        forecast = linkage.forecast(case.stored, case.incoming, DIM, one_to_one=case.one_to_one)
        seconds, peak = matched(folder, case.one_to_one)
        with (folder / "matches.csv").open() as file:
            found = [row["match"] for row in csv.DictReader(file)]
    right = np.mean([one == str(10**6 + origin) for one, origin in zip(found, origins, strict=True)])
    return {
        **case._asdict(),
        "columns": DIM,
        "mebibytes_of_files": round(files / 2**20),
        "peak_mebibytes": round(peak / 2**20),
        "seconds": round(seconds, 1),
        "forecast_seconds": round(forecast, 1),
        "right": round(float(right), 4),
    }


def main(cases: list[Case], quick: bool) -> None:
    head = report.stamp("match", {"dim": DIM, "noise": NOISE, "seed": SEED, "quick": quick}, __file__, ("pyarrow",))

    def whole(head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
        rows = [{key: value for key, value in one.items() if key != "sitting"} for one in done]
        return {**head, "rows": rows, "done": done}

    journal = report.Journal(None if quick else TARGET, head, (), whole)
    for case in cases:
        if any(case._asdict().items() <= one.items() for one in journal.done):
            continue
        journal.add([measure(case)])
        print(journal.done[-1], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="10^6 rows against 10^5 and 10^5 one to one as well")
    parser.add_argument("--quick", action="store_true", help="a few rows, to see that it works; writes nothing")
    asked = parser.parse_args()
    main(QUICK if asked.quick else [*CASES, *LARGE] if asked.large else CASES, asked.quick)
