"""What a query costs every memory of the library beside its dot products with all patterns, and extra memory.

Ratios of times measured by turns in one run, on one thread: ``python benchmarks/zoo_costs.py [--quick]``.
Writes ``results/zoo-costs.json``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ahop_paper import report
from ahop_paper.zoo import WORLDS_ALONE
from ahop_paper.zoo_costs import BATCH, DIM, cost
from ahop_paper.zoo_memories import models

COUNTS, FEW = (10**4, 10**6), (300, 1000)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--quick", action="store_true", help="few patterns, to see that it works; nothing is written")
    quick = asked.parse_args().quick
    counts = FEW if quick else COUNTS
    config = {"counts": counts, "dim": DIM, "queries": BATCH, "threads": 1, "seed": 0}
    head = report.stamp("zoo_costs", config, __file__)
    rows = []
    for name, model in models().items():
        if name not in WORLDS_ALONE:
            rows.append({"model": name, "costs": cost(model, counts, "cpu")})
            print(rows[-1], flush=True)
    if not quick:
        target = Path(__file__).parent.parent / "results" / "zoo-costs.json"
        report.write({**head, "rows": rows}, target)
        print(f"report: {target.name}")


if __name__ == "__main__":
    main()
