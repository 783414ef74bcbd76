"""How often something is found where there is nothing to find: 200 sets of queries that come from no stored pattern.

``python benchmarks/unrelated.py`` draws 50 to 2,000 patterns of 2 to 200 numbers from ten kinds of populations, twenty
sets of each. The queries are other rows of the same population, so that they lie among the patterns. Fits are default
ones without labels, and none may call anything found.
"""

from __future__ import annotations

import warnings
from typing import Any

import ahop
from ahop.learning.report import clopper_pearson
from ahop_paper import benchmark
from ahop_paper.populations import POPULATIONS, unrelated


def measure(kind: str, seed: int) -> list[dict[str, Any]]:
    world = unrelated(kind, seed)
    memory = ahop.BayesianHopfield(world.patterns)
    with warnings.catch_warnings():
        # That nothing was found is what is hoped for.
        warnings.simplefilter("ignore", UserWarning)
        memory.fit(world.queries, seed=seed, verbose=False)
    assert memory.report is not None
    size = {"patterns": len(world.patterns), "dim": world.patterns.shape[1], "queries": len(world.queries)}
    told = {"found": memory.report.found, "says": memory.report.confidence, "chosen": memory.report.chosen}
    return [{"data": kind, "seed": seed, **size, **told}]


def summary(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many sets of a kind are found, and of all, with the 90 % confidence interval of the rate."""
    rows = []
    for kind in (*POPULATIONS, "all"):
        own = [one["found"] for one in done if kind in (one["data"], "all")]
        if own:
            low, high = clopper_pearson(sum(own), len(own))
            rows.append({"data": kind, "sets": len(own), "found": sum(own), "low": low, "high": high})
    return rows


if __name__ == "__main__":
    benchmark.run("unrelated", __file__, __doc__, measure, summary, tuple(POPULATIONS), range(20))
