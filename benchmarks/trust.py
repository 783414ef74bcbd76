"""How sure a memory is, beside how often it is right: without labels, with twenty checked answers, and with labels.

``python benchmarks/trust.py`` fits with defaults and asks queries that were not learned from. Four ways each: no
labels; the same memory after :meth:`verify` saw twenty answers; twenty labels among the queries; a hundred. Some sets
have nothing to find.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import ahop
from ahop_paper import benchmark
from ahop_paper.drawing import Draw, World
from ahop_paper.unseen import DRAWN, measured, text

CHECKED = 20
WAYS = ("no labels", "20 answers checked", "20 labels", "100 labels")
# What is fitted for each way that has a fit of its own.
LABELS = {"no labels": 0, "20 labels": 20, "100 labels": 100}


def unrelated(count: int, dim: int, draw: Draw) -> World:
    """Normal noise against other normal noise.

    Args:
        count: Number of patterns, and of queries.
        dim: Of each.
        draw: Random numbers.
    """
    none = torch.full((count,), -1)
    return World(draw.normal(count, dim), draw.normal(count, dim), none, draw.normal(count, dim), none)


SETS: dict[str, Callable[[int], World]] = {
    "unrelated, 300 x 20": lambda seed: unrelated(300, 20, Draw(seed)),
    "unrelated, 300 x 64": lambda seed: unrelated(300, 64, Draw(seed)),
    "unrelated, 1,000 x 64": lambda seed: unrelated(1000, 64, Draw(seed)),
    **{name: lambda seed, make=make: make(Draw(seed)) for name, make in DRAWN.items()},
    "tablets": lambda seed: measured("tablets", seed),
    "gas": lambda seed: measured("gas", seed),
    "Wi-Fi": lambda seed: measured("wifi", seed),
    "MS2": lambda seed: measured("ms2", seed),
    "text models": text,
}


def asked(memory: ahop.BayesianHopfield, world: World, rows: Tensor) -> dict[str, Any]:
    """How sure and how right first choices are, what the report promises, and who is refused at 5 %.

    Args:
        memory: One that was fitted.
        world: What it was fitted to.
        rows: Which queries to ask, ``(n,)``.
    """
    assert memory.report is not None
    found = memory.recall(world.asked[rows])
    wanted = world.wanted[rows]
    each = (found.indices[:, 0] == wanted).double()
    right = float(each.mean())
    low, high = memory.report.interval
    kept = memory.recall(world.asked[rows], reject=0.05).indices[:, 0] >= 0
    genuine = wanted >= 0
    # What labels say is about queries whose origin is stored, and what checked answers say about all of them.
    judged = each if memory.report.checked or not bool(genuine.any()) else each[genuine]
    return {
        **{"found": memory.report.found, "right": right, "sure": float(found.probabilities[:, 0].mean())},
        **{"labels": memory.report.labels, "low": low, "high": high, "judged": float(judged.mean())},
        "kept": float(kept[genuine].double().mean()) if bool(genuine.any()) else math.nan,
        "strangers refused": float((~kept[~genuine]).double().mean()) if bool((~genuine).any()) else math.nan,
        "chosen": memory.report.chosen,
    }


def fitted(world: World, labels: int, seed: int) -> ahop.BayesianHopfield:
    """A memory of the world, fitted with defaults.

    Args:
        world: What to learn from.
        labels: How many origins are known.
        seed: Of the fit.
    """
    known = torch.where(torch.arange(len(world.origins)) < labels, world.origins, -1)
    memory = ahop.BayesianHopfield(world.patterns)
    with warnings.catch_warnings():
        # Where nothing is found, the row says so.
        warnings.simplefilter("ignore", UserWarning)
        return memory.fit(world.queries, known if labels else None, seed=seed, verbose=False)


def measure(name: str, seed: int, way: str) -> list[dict[str, Any]]:
    """One row; the fit without labels has another, once answers are checked.

    Args:
        name: The world.
        seed: Of the world and of the fit.
        way: What is known to the fit.
    """
    world, labels = SETS[name](seed), LABELS[way]
    # Too few of them would come from anywhere.
    if labels and int((world.origins[:labels] >= 0).sum()) < 0.7 * labels:
        return []
    every = torch.arange(len(world.asked))
    memory, row = fitted(world, labels, seed), {"data": name, "seed": seed}
    rows = [{**row, "way": way, **asked(memory, world, every)}]
    if not labels:
        checked = [question.row for question in memory.ask(world.asked, CHECKED, seed=seed)]
        answers = [ahop.STRANGER if one < 0 else one for one in world.wanted[checked].tolist()]
        memory.verify(world.asked[checked], answers)
        others = every[~torch.isin(every, torch.tensor(checked))]
        rows.append({**row, "way": WAYS[1], **asked(memory, world, others)})
    return rows


def summary(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds; how many fits were found, and how many intervals hold the truth."""
    rows = []
    for data in SETS:
        for way in WAYS:
            own = [one for one in done if (one["data"], one["way"]) == (data, way)]
            if not own:
                continue
            figures = {}
            for what in ("right", "sure", "kept", "strangers refused"):
                values = [one[what] for one in own if not math.isnan(one[what])]
                figures[what] = sum(values) / len(values) if values else None
            holds = sum(one["low"] <= one["judged"] <= one["high"] for one in own if one["labels"])
            counted = {"fits": len(own), "found": sum(one["found"] for one in own), "interval holds": holds}
            counted["too sure"] = max(one["sure"] - one["right"] for one in own)
            rows.append({"data": data, "way": way, **counted, **figures})
    return rows


if __name__ == "__main__":
    benchmark.run("trust", __file__, __doc__, measure, summary, tuple(SETS), range(5), tuple(LABELS))
