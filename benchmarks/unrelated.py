"""How often something is found where there is nothing to find: 320 sets of queries that come from no stored pattern.

``python benchmarks/unrelated.py`` draws 50 to 2,000 patterns of 2 to 200 numbers from ten kinds of populations, twenty
sets of each. The queries are other rows of the same population, so that they lie among the patterns. Six further kinds,
twenty sets of each, are pairs of spaces that no map connects, of unlike width or turned within one: drawn ones, and
images and texts as models embed them (``--sets "normal spaces" "other subjects"``). Fits are default ones without
labels, and none may call anything found.
"""

from __future__ import annotations

import warnings
from typing import Any

import ahop
from ahop.learning.report import clopper_pearson
from ahop_paper import benchmark
from ahop_paper.populations import POPULATIONS, SPACES, unrelated, unrelated_spaces

KINDS = (*POPULATIONS, *SPACES)


def measure(kind: str, seed: int) -> list[dict[str, Any]]:
    world = (unrelated_spaces if kind in SPACES else unrelated)(kind, seed)
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
    for kind in (*KINDS, "all"):
        own = [one["found"] for one in done if kind in (one["data"], "all")]
        if own:
            low, high = clopper_pearson(sum(own), len(own))
            rows.append({"data": kind, "sets": len(own), "found": sum(own), "low": low, "high": high})
    return rows


if __name__ == "__main__":
    benchmark.run("unrelated", __file__, __doc__, measure, summary, KINDS, range(20))
