"""``ahop match`` of very many rows: how much memory it takes, how long, and how long it was said to take.

``python benchmarks/match.py [--large]`` writes two tables of 64 columns into a temporary folder, 10^5 stored rows in
Parquet and 10^4 incoming ones in CSV (with ``--large`` 10^6 and 10^5 as well), matches them by the command in a process
of its own, and writes ``results/match.json``. Seconds are those of one machine, which the file names; the peak is the
most memory that the process ever held.
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
from typing import Any

import numpy as np

from ahop import linkage, tables
from ahop_paper import report

DIM, NOISE, SEED = 64, 0.3, 0
SIZES, LARGE, QUICK = (10**5, 10**4), (10**6, 10**5), (500, 200)


def made(folder: Path, stored: int, incoming: int) -> np.ndarray:
    """Writes both tables, and tells the stored row of each incoming one."""
    draw = np.random.default_rng(SEED)
    patterns, origins = draw.normal(size=(stored, DIM)), draw.permutation(stored)[:incoming]
    rows = patterns[origins] + NOISE * draw.normal(size=(incoming, DIM))
    names = [f"x{place}" for place in range(DIM)]
    for path, ids, values in (("stored.parquet", stored, patterns), ("incoming.csv", incoming, rows)):
        tables.write({"id": range(10**6, 10**6 + ids), **dict(zip(names, values.T, strict=True))}, folder / path)
    return origins


def matched(folder: Path) -> tuple[float, int]:
    """Seconds that the command takes, and the bytes it held at most."""
    command = [sys.executable, "-m", "ahop", "match", "stored.parquet", "incoming.csv", "--out", "matches.csv"]
    begin = time.monotonic()
    running = subprocess.Popen(command, cwd=folder)
    # Of this process alone, not of the largest there was.
    _, status, used = os.wait4(running.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"ahop match ended with {code}")
    running.returncode = 0
    unit = 1 if sys.platform == "darwin" else 1024
    return time.monotonic() - begin, used.ru_maxrss * unit


def measure(stored: int, incoming: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        origins = made(folder, stored, incoming)
        files = sum(path.stat().st_size for path in folder.iterdir())
        forecast = linkage.forecast(stored, incoming, DIM)
        seconds, peak = matched(folder)
        with (folder / "matches.csv").open() as file:
            found = [row["match"] for row in csv.DictReader(file)]
    right = np.mean([one == str(10**6 + origin) for one, origin in zip(found, origins, strict=True)])
    return {
        "stored": stored,
        "incoming": incoming,
        "columns": DIM,
        "mebibytes_of_files": round(files / 2**20),
        "peak_mebibytes": round(peak / 2**20),
        "seconds": round(seconds, 1),
        "forecast_seconds": round(forecast, 1),
        "right": round(float(right), 4),
    }


def main(sizes: list[tuple[int, int]], quick: bool) -> None:
    config = {"dim": DIM, "noise": NOISE, "seed": SEED, "quick": quick}
    result: dict[str, Any] = {**report.stamp("match", config, __file__, ("pyarrow",)), "rows": []}
    for stored, incoming in sizes:
        result["rows"].append(measure(stored, incoming))
        print(result["rows"][-1], flush=True)
        if not quick:
            report.write(result, Path(__file__).parent.parent / "results" / "match.json")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="10^6 rows against 10^5 as well")
    parser.add_argument("--quick", action="store_true", help="a few rows, to see that it works; writes nothing")
    asked = parser.parse_args()
    main([QUICK] if asked.quick else [SIZES, LARGE] if asked.large else [SIZES], asked.quick)
