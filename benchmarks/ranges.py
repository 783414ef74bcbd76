"""How far off fits are that nobody has checked: the constant of the range that their reports print.

``python benchmarks/ranges.py`` fits with defaults and without labels to sets with known answers, those of ``ahop-paper
real`` and ``worlds`` and others that are drawn, and asks further queries. What a report says of a fit is compared with
how often first choices are right, in nats of log-odds. A *set* is one kind of corruption, whatever the seed. The range
that holds the truth on nine of ten of the other sets has to hold it on nine of ten of those left out in turn.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch

import ahop
from ahop_paper import benchmark
from ahop_paper.drawing import Draw, World
from ahop_paper.populations import POPULATIONS, corrupted
from ahop_paper.real import Config
from ahop_paper.unseen import ASKED, DRAWN, measured
from ahop_paper.worlds import WORLDS

# On so many sets a range is to hold the truth.
LEVEL = 0.9
# Drawn sets of each population, items of measured ones at most, and the patterns, dimensions and queries of a world.
EACH, ITEMS = 6, 1500
PATTERNS, DIM, LEARNED = 500, 64, 256


def in_world(name: str, seed: int) -> World:
    """As ``ahop-paper worlds`` draws it, of fewer patterns."""
    patterns = torch.rand(PATTERNS, DIM, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    patterns = WORLDS[name].stored(patterns)
    corruption = WORLDS[name].corruption(DIM, seed)
    return World(patterns, *corruption.sample(patterns, LEARNED), *corruption.sample(patterns, ASKED))


SETS: dict[str, Callable[[int], World]] = {
    **{name: lambda seed, name=name: measured(name, seed, ITEMS) for name in Config().data},
    **{name: lambda seed, name=name: in_world(name, seed) for name in WORLDS},
    **{name: lambda seed, make=make: make(Draw(seed)) for name, make in DRAWN.items()},
    **{
        f"{kind} {number}": lambda seed, kind=kind, number=number: corrupted(kind, number, seed, ASKED)
        for number in range(1, EACH + 1)
        for kind in POPULATIONS
    },
}


def measure(name: str, seed: int) -> list[dict[str, Any]]:
    """What a report says of a fit, the range that it prints, and the truth."""
    world = SETS[name](seed)
    memory = ahop.BayesianHopfield(world.patterns)
    with warnings.catch_warnings():
        # Where nothing is found, the row says so.
        warnings.simplefilter("ignore", UserWarning)
        memory.fit(world.queries, seed=seed, verbose=False)
    assert memory.report is not None
    low, high = memory.report.usual_range
    right = float((memory.recall(world.asked).indices[:, 0] == world.wanted).double().mean())
    size = {"patterns": len(world.patterns), "dim": world.patterns.shape[1], "queries": len(world.queries)}
    told = {"found": memory.report.found, "says": memory.report.confidence, "low": low, "high": high}
    return [{"data": name, "seed": seed, **size, **told, "right": right, "chosen": memory.report.chosen}]


def off(one: dict[str, Any]) -> float:
    """By how many nats of log-odds a report is surer than first choices are right; the last of a hundred is not told.

    Example:
        >>> round(off({"says": 0.9, "right": 0.8}), 2)
        0.81
    """
    says, right = (min(max(one[key], 0.01), 0.99) for key in ("says", "right"))
    return math.log(says / (1 - says)) - math.log(right / (1 - right))


def reach(sets: list[list[float]]) -> float:
    """How far off so many sets are at most, all of the same weight, whatever their number of seeds.

    Example:
        >>> reach([[0.1]] * 9 + [[2.0]]), reach([[0.1, 0.1, 0.1]] + [[0.5, 1.5]])
        (0.1, 1.5)
    """
    weighed = sorted((abs(value), 1 / len(values)) for values in sets for value in values)
    total, passed = sum(weight for _, weight in weighed), 0.0
    for value, weight in weighed:
        passed += weight / total
        if passed >= LEVEL - 1e-9:
            return value
    raise ValueError("sets must be at least one, got none")


def share(values: list[float], most: float) -> float:
    """How many of them are off by so much at most."""
    return sum(abs(value) <= most for value in values) / len(values)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def summary(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for all sets, then one for each: how often the printed range holds the truth, and that of the others."""
    told = [one for one in done if one["found"] and not math.isnan(one["says"])]
    own = {name: [one for one in told if one["data"] == name] for name in SETS}
    offs = {name: [off(one) for one in rows] for name, rows in own.items() if rows}
    if len(offs) < 2:
        return []
    rows = []
    for name, values in offs.items():
        others = reach([other for key, other in offs.items() if key != name])
        fits = {"fits": sum(one["data"] == name for one in done), "found": len(values)}
        figures = {key: mean([one[key] for one in own[name]]) for key in ("says", "right")}
        printed = mean([one["low"] <= one["right"] <= one["high"] for one in own[name]])
        held = {"printed holds": printed, "others": others, "others hold": share(values, others)}
        rows.append({"data": name, **fits, **figures, "off": max(values, key=abs), **held})
    holds = {key: mean([row[key] for row in rows]) for key in ("printed holds", "others hold")}
    count = {"sets": len(rows), "fits": len(done), "found": len(told)}
    return [{"data": "all", **count, "reach": reach(list(offs.values())), **holds}, *rows]


if __name__ == "__main__":
    benchmark.run("ranges", __file__, __doc__, measure, summary, tuple(SETS), range(3))
