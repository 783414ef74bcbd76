"""How sure a memory is, beside how often it is right: without labels, with twenty checked answers, and with labels.

``python benchmarks/trust.py [SET ...] [--seeds 0 1 2 3 4]`` fits with defaults and asks queries that were not learned
from. Four ways each: no labels; the same memory after :meth:`verify` saw twenty answers; twenty labels among the
queries; a hundred. Some sets have nothing to find. What ``results/trust.json`` has of other sets and seeds stays.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import ahop
from ahop.datasets.files import fetch
from ahop_paper import real, report
from ahop_paper.drawing import Draw, World
from ahop_paper.text_models import TEXT

TARGET = Path(__file__).parent.parent / "results" / "trust.json"
CHECKED, ASKED, LEARNED = 20, 400, 1000
WAYS = ("no labels", "20 answers checked", "20 labels", "100 labels")


def asked_of(patterns: Tensor, corrupt: Callable[[Tensor], Tensor], learned: int, draw: Draw) -> World:
    """Queries of any pattern, some of which are learned from."""
    origins = draw.below(len(patterns), learned + ASKED)
    queries = corrupt(patterns[origins])
    return World(patterns, queries[:learned], origins[:learned], queries[learned:], origins[learned:])


# --- sets -----------------------------------------------------------------------------------------------------


def unrelated(count: int, dim: int, draw: Draw) -> World:
    """Normal noise against other normal noise."""
    none = torch.full((count,), -1)
    return World(draw.normal(count, dim), draw.normal(count, dim), none, draw.normal(count, dim), none)


def rotation(draw: Draw) -> World:
    turned = torch.linalg.qr(draw.normal(20, 20)).Q
    return asked_of(draw.normal(300, 20), lambda rows: rows @ turned + 0.05 * draw.normal(*rows.shape), 300, draw)


def gains(draw: Draw) -> World:
    """Every value is multiplied by a log-normal gain of its own column, another one for each query."""
    spread = 1 + 2 * draw.uniform(40)
    return asked_of(
        draw.normal(200, 40).exp(), lambda rows: rows * (spread * draw.normal(*rows.shape)).exp(), 300, draw
    )


def _spectra(count: int, channels: int, draw: Draw) -> Tensor:
    """A common shape and a few components, each a sum of wide peaks."""
    at = torch.linspace(0, 1, channels)
    peaks = torch.exp(-((at - draw.uniform(30, 1)) ** 2) / (2 * (0.02 + 0.05 * draw.uniform(30, 1)) ** 2))
    components = draw.uniform(8, 30) @ peaks
    return 2 * peaks.sum(0) / 5 + 0.05 * draw.normal(count, 8) @ components


def _scattered(rows: Tensor, draw: Draw) -> Tensor:
    """Light is scattered: each spectrum has an offset, a gain and a slope of its own."""
    at = torch.linspace(-1, 1, rows.shape[1])
    gain, offset, slope = (amount * draw.normal(len(rows), 1) for amount in (0.1, 0.5, 0.3))
    return rows * (1 + gain) + offset + slope * at + 0.1 * draw.normal(*rows.shape)


def raw_spectra(draw: Draw) -> World:
    """60 samples measured again, their light scattered."""
    patterns = _spectra(60, 200, draw)
    learned = _scattered(patterns, draw)
    every = torch.arange(60)
    return World(patterns, learned, every, _scattered(patterns, draw), every)


def instrument(draw: Draw) -> World:
    """80 samples on another instrument, which shifts channels and has a sensitivity of its own; 40 are learned from."""
    patterns = _spectra(80, 300, draw)
    second = patterns.roll(2, 1) * (1 + 0.2 * draw.normal(300).cumsum(0) / math.sqrt(300)) + 0.2 * draw.normal(80, 300)
    every = torch.arange(80)
    return World(patterns, second[:40], every[:40], second[40:], every[40:])


def faces(draw: Draw) -> World:
    """Smooth images of 24 x 24 in another light: a gradient of brightness that multiplies."""
    side = torch.linspace(-1, 1, 24)
    blur = torch.exp(-((side[:, None] - side) ** 2) / 0.02)
    patterns = 0.5 + 0.15 * (blur @ draw.normal(120, 24, 24) @ blur).flatten(1) / blur.sum(0).mean()
    across, down = (grid.flatten() for grid in torch.meshgrid(side, side, indexing="ij"))

    def lit(rows: Tensor) -> Tensor:
        light = draw.normal(len(rows), 1) * across + draw.normal(len(rows), 1) * down
        return rows * (0.8 * light).exp() + 0.6 * draw.normal(*rows.shape)

    return asked_of(patterns, lit, 300, draw)


def records(draw: Draw) -> World:
    """Records of 30 numbers, some mistyped; 20 % of the queries come from none of those that are stored."""
    every = draw.below(8, 500, 30).float()
    origins = draw.below(400, 400 + ASKED)
    strange = draw.uniform(len(origins)) < 0.2
    rows = torch.where(strange[:, None], every[400 + draw.below(100, len(origins))], every[origins])
    typed = torch.where(draw.uniform(*rows.shape) < 0.3, draw.below(8, *rows.shape).float(), rows)
    origins = origins.masked_fill(strange, -1)
    return World(every[:400], typed[:400], origins[:400], typed[400:], origins[400:])


def measured(name: str, seed: int) -> World:
    """Items measured twice; those that are asked about were not learned from."""
    data = real.split(real.load(name, real.Config()), seed)
    order = torch.randperm(len(data.queries), generator=torch.Generator().manual_seed(seed))
    learn, ask = (order[data.learn[order] == side][:most] for side, most in ((True, LEARNED), (False, ASKED)))
    return World(data.patterns, data.queries[learn], data.origins[learn], data.queries[ask], data.origins[ask])


def text(seed: int) -> World:
    """3,000 definitions by another text model."""
    order = torch.randperm(10_000, generator=torch.Generator().manual_seed(seed))[:3000]
    with np.load(fetch(TEXT), allow_pickle=False) as archive:
        stored, asked = (torch.from_numpy(archive[side]).float()[order] for side in ("llama", "glove"))
    every = torch.arange(3000)
    return World(stored, asked[:2600], every[:2600], asked[2600:], every[2600:])


SETS: dict[str, Callable[[int], World]] = {
    "unrelated, 300 x 20": lambda seed: unrelated(300, 20, Draw(seed)),
    "unrelated, 300 x 64": lambda seed: unrelated(300, 64, Draw(seed)),
    "unrelated, 1,000 x 64": lambda seed: unrelated(1000, 64, Draw(seed)),
    "a rotation, 300 x 20": lambda seed: rotation(Draw(seed)),
    "log-normal gains": lambda seed: gains(Draw(seed)),
    "raw spectra": lambda seed: raw_spectra(Draw(seed)),
    "another instrument": lambda seed: instrument(Draw(seed)),
    "faces in another light": lambda seed: faces(Draw(seed)),
    "records, 20 % strangers": lambda seed: records(Draw(seed)),
    "tablets": lambda seed: measured("tablets", seed),
    "gas": lambda seed: measured("gas", seed),
    "Wi-Fi": lambda seed: measured("wifi", seed),
    "MS2": lambda seed: measured("ms2", seed),
    "text models": text,
}


# --- figures --------------------------------------------------------------------------------------------------


def asked(memory: ahop.BayesianHopfield, world: World, rows: Tensor) -> dict[str, Any]:
    """How sure and how right first choices are, what the report promises, and who is refused at 5 %."""
    assert memory.report is not None
    found = memory.recall(world.asked[rows])
    wanted = world.wanted[rows]
    right = float((found.indices[:, 0] == wanted).double().mean())
    low, high = memory.report.interval
    kept = memory.recall(world.asked[rows], reject=0.05).indices[:, 0] >= 0
    genuine = wanted >= 0
    return {
        **{"found": memory.report.found, "right": right, "sure": float(found.probabilities[:, 0].mean())},
        **{"labels": memory.report.labels, "low": low, "high": high},
        "kept": float(kept[genuine].double().mean()) if bool(genuine.any()) else math.nan,
        "strangers refused": float((~kept[~genuine]).double().mean()) if bool((~genuine).any()) else math.nan,
        "chosen": memory.report.chosen,
    }


def fitted(world: World, labels: int, seed: int) -> ahop.BayesianHopfield:
    known = torch.where(torch.arange(len(world.origins)) < labels, world.origins, -1)
    memory = ahop.BayesianHopfield(world.patterns)
    with warnings.catch_warnings():
        # Where nothing is found, the row says so.
        warnings.simplefilter("ignore", UserWarning)
        return memory.fit(world.queries, known if labels else None, seed=seed)


def measure(world: World, seed: int) -> Iterator[dict[str, Any]]:
    every = torch.arange(len(world.asked))
    memory = fitted(world, 0, seed)
    yield {"way": WAYS[0], **asked(memory, world, every)}
    checked = [question.row for question in memory.ask(world.asked, CHECKED, seed=seed)]
    memory.verify(world.asked[checked], [ahop.STRANGER if one < 0 else one for one in world.wanted[checked].tolist()])
    others = every[~torch.isin(every, torch.tensor(checked))]
    yield {"way": WAYS[1], **asked(memory, world, others)}
    for way, labels in ((WAYS[2], 20), (WAYS[3], 100)):
        if int((world.origins[:labels] >= 0).sum()) >= 0.7 * labels:
            yield {"way": way, **asked(fitted(world, labels, seed), world, every)}


def rows(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds; how many fits were found, and how many intervals hold the truth."""
    found = []
    for key in dict.fromkeys((one["data"], one["way"]) for one in done):
        own = [one for one in done if (one["data"], one["way"]) == key]
        figures = {}
        for what in ("right", "sure", "kept", "strangers refused"):
            values = [one[what] for one in own if not math.isnan(one[what])]
            figures[what] = sum(values) / len(values) if values else None
        holds = sum(one["low"] <= one["right"] <= one["high"] for one in own if one["labels"])
        counted = {"fits": len(own), "found": sum(one["found"] for one in own), "interval holds": holds}
        counted["too sure"] = max(one["sure"] - one["right"] for one in own)
        found.append({"data": key[0], "way": key[1], **counted, **figures})
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sets", nargs="*", default=list(SETS))
    options.add_argument("--seeds", type=int, nargs="*", default=range(5))
    given = options.parse_args()
    head = report.stamp("trust", {"device": "cpu", "seed": 0}, __file__)
    done = list(json.loads(TARGET.read_text())["done"]) if TARGET.exists() else []
    for seed in given.seeds:
        for name in given.sets:
            for part in measure(SETS[name](seed), seed):
                part = {"data": name, "seed": seed, **part}
                done = [one for one in done if any(one[key] != part[key] for key in ("data", "seed", "way"))] + [part]
                print(part, flush=True)
                order = sorted(
                    done, key=lambda one: (list(SETS).index(one["data"]), WAYS.index(one["way"]), one["seed"])
                )
                report.write({**head, "rows": rows(order), "done": order}, TARGET)
    print(f"report: {TARGET.name}")


if __name__ == "__main__":
    main()
