"""How long ``BayesianHopfield.fit`` takes beside the same fit of an older checkout, and how right both are.

Ratios of wall times measured in one run, each fit in a process of its own that has fitted something small before:
``python benchmarks/fits.py OLDER/src``. Writes ``results/fits.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import torch

import ahop

REPETITIONS = 3
SOURCE = Path(ahop.__file__).parents[1]


def mixed(patterns: int, queries: int) -> tuple[torch.Tensor, ...]:
    """Uniform patterns in 64 dimensions, masked, noisy and biased, without labels."""
    stored = torch.rand(patterns, 64, generator=torch.Generator().manual_seed(0)) * 2 - 1
    world = ahop.variants.Mixed(0.5, 0.5, 0.5)
    seen, test = world.sample(stored, queries), world.sample(stored, 500)
    return stored, seen.queries, torch.empty(0), *test


def drifted() -> tuple[torch.Tensor, ...]:
    """Normal patterns in 64 dimensions, moved by four hidden causes, without labels."""
    generator = torch.Generator().manual_seed(0)
    stored, causes = (torch.randn(count, 64, generator=generator) for count in (200, 4))
    origins = torch.randint(200, (600,), generator=generator)
    strengths, noise = (torch.randn(600, size, generator=generator) for size in (4, 64))
    queries = stored[origins] + strengths @ causes + 0.5 * noise
    return stored, queries[:100], torch.empty(0), queries[100:], origins[100:]


def spectra() -> tuple[torch.Tensor, ...]:
    """Smooth curves of 650 values, measured again by an instrument that has three hidden causes."""
    generator = torch.Generator().manual_seed(0)

    def smooth(count: int) -> torch.Tensor:
        steps = torch.randn(count, 650, generator=generator)
        return torch.nn.functional.avg_pool1d(steps[:, None].cumsum(-1), 21, 1, 10, count_include_pad=False)[:, 0]

    stored, causes = smooth(655), smooth(3)
    origins = torch.randperm(655, generator=generator)
    strengths = torch.randn(655, 3, generator=generator)
    queries = stored[origins] + 0.5 * strengths @ causes + 2 * torch.randn(655, 650, generator=generator)
    return stored, queries[:155], origins[:155], queries[155:], origins[155:]


CASES = {
    "2,048 patterns, 512 queries, d 64, no labels": lambda: mixed(2048, 512),
    "200 patterns, 100 queries, d 64, no labels": lambda: mixed(200, 100),
    "the same with hidden causes": drifted,
    "655 patterns, 155 labels, d 650": spectra,
}


def timed(case: str) -> tuple[float, float]:
    """Seconds of one fit, and how often its first choice is right."""
    patterns, queries, origins, asked, answers = CASES[case]()
    warnings.simplefilter("ignore")
    known = origins if len(origins) else None
    ahop.BayesianHopfield(patterns[:30]).fit(queries[:30], None if known is None else torch.arange(30))
    begin = time.perf_counter()
    memory = ahop.BayesianHopfield(patterns).fit(queries, known)
    passed = time.perf_counter() - begin
    return passed, float((memory.recall(asked).indices[:, 0] == answers).double().mean())


def measured(source: Path, case: str) -> tuple[float, float]:
    """The same in a process of its own, with the library that lies at ``source``."""
    run = subprocess.run(
        [sys.executable, __file__, "--case", case],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, right = json.loads(run.stdout.splitlines()[-1])
    return seconds, right


def main(older: Path) -> None:
    # Not above: the older checkout, which runs this file too, may not have it.
    from ahop.paper import report

    config = {"threads": torch.get_num_threads(), "repetitions": REPETITIONS, "seed": 0}
    head = report.stamp("fits", config, __file__)
    rows = []
    for case in CASES:
        # In turn, so that a busy minute hits both.
        pairs = [(measured(older, case), measured(SOURCE, case)) for _ in range(REPETITIONS)]
        ratio = statistics.median(before[0] / now[0] for before, now in pairs)
        spread = [round(before[0] / now[0], 1) for before, now in pairs]
        rows.append({"case": case, "ratio": round(ratio, 1), "ratios": spread})
        rows[-1] |= {"accuracy_before": round(pairs[0][0][1], 4), "accuracy": round(pairs[0][1][1], 4)}
        print(rows[-1], "seconds", [round(now[0], 1) for _, now in pairs], flush=True)
    target = Path(__file__).parent.parent / "results" / "fits.json"
    report.write({**head, "rows": rows}, target)
    print(f"report: {target.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("older", type=Path, nargs="?", help="the folder src of the older checkout")
    parser.add_argument("--case", choices=CASES, help="time this one alone, with the library that is installed")
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(timed(asked.case)))
    elif asked.older is None or not (asked.older / "ahop").is_dir():
        parser.error(f"older must be a folder that has the library ahop in it, got {asked.older}")
    else:
        main(asked.older.resolve())
