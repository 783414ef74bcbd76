"""What a query costs every memory of the library beside its dot products with all patterns, and extra memory.

Ratios of times measured by turns in one run, on one thread: ``python benchmarks/zoo_costs.py [--quick]``; on a GPU with
``--device cuda``. Writes ``results/zoo-costs.json`` or ``results/zoo-costs-cuda.json``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ahop._checks import as_device
from ahop_paper import report
from ahop_paper.zoo_costs import BATCH, DIM, cost
from ahop_paper.zoo_memories import models

COUNTS, FEW = (10**4, 10**6), (300, 1000)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few patterns, to see that it works; nothing is written")
    parser.add_argument("--device", default="cpu", help="where memories are asked")
    asked = parser.parse_args(words)
    device, counts = as_device(asked.device), FEW if asked.quick else COUNTS
    config = {"counts": counts, "dim": DIM, "queries": BATCH, "threads": 1, "device": device, "seed": 0}
    head = report.stamp("zoo_costs", config, __file__)
    rows = []
    for name, model in models().items():
        if not model.worlds_alone:
            rows.append({"model": name, "costs": cost(model, counts, device)})
            print(rows[-1], flush=True)
    if not asked.quick:
        name = "zoo-costs.json" if device == "cpu" else f"zoo-costs-{device}.json"
        target = Path(__file__).parent.parent / "results" / name
        report.write({**head, "rows": rows}, target)
        print(f"report: {target.name}")


if __name__ == "__main__":
    main()
