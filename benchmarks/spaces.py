"""Queries of another embedding model: who finds what with all pairs, 500, 100, ten, five, or none.

``python benchmarks/spaces.py [SET ...] [--splits 0 1 2 3 4] [--labels all 500 100 10 5 0] [--device cpu]`` scores the
items that were not learned from among all 10,000: how many find their own (``right``), and where the queries of all
items are matched one to one (``together``), the mean confidence (``sure``), the expected calibration error, and what a
search engineer asks for: recall@10 and nDCG@10 against a *full re-index*, in which all items were embedded anew by the
model that asks. What ``results/spaces.json`` has of other sets, splits and labels stays. Shares of the work may run
beside each other, each with a file of its own as ``--out``; ``--join FILE ... --labels`` puts them together.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import ahop
from ahop.datasets import Measured
from ahop_paper import baselines, real, report, self_taught, text_models
from ahop_paper.baselines import Compared
from ahop_paper.spread import spread

SETS = ("embeddings-new", "embeddings-new-photo", "embeddings-wide", "text-glove", "text-llama")
LABELS = ("all", "500", "100", "10", "5", "0")
TARGET = Path(__file__).parent.parent / "results" / "spaces.json"
# Another photo of an item is looked for among the items that the same model embeds anew.
REINDEXED = {"embeddings-new-photo": "embeddings-new"}
TEMPERATURES = (0.01, 0.03, 0.1)
TOP = 10
FIGURES = ("right", "together", "sure", "calibration", "recall@10", "nDCG@10", "adapter right", "adapter recall@10")


def load(name: str, number: int) -> Measured:
    """A set and a split of it; of texts, ``text-glove`` is asked by GloVe and stored by WordLlama, or the reverse."""
    if not name.startswith("text-"):
        return real.split(real.load(name, real.Config()), number)
    return text_models.load(name.removeprefix("text-"), number)


# --- what anyone would try ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """What learns from pairs of a set, each map once; what takes minutes on a processor, on a device."""

    data: Measured
    device: str = "cpu"
    labels: str = "all"

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor]:
        known = slice(None) if self.labels == "all" else slice(int(self.labels))
        return self.data.queries[self.data.learn][known].double(), self.data.origins[self.data.learn][known]

    @cached_property
    def centred(self) -> Tensor:
        """Patterns around their mean, which cosines gain by."""
        patterns = self.data.patterns.double()
        return patterns - patterns.mean(0)

    @cached_property
    def ridge(self) -> Compared:
        options = [option for option in baselines.RIDGES if option[1] == "cosine"]
        return baselines.tuned(baselines.ridge, options, self.centred, *self.pairs, 0)

    @cached_property
    def procrustes(self) -> Compared:
        queries, origins = self.pairs
        centre = queries.mean(0)
        found = baselines.procrustes(self.centred, queries - centre, origins)
        return found._replace(move=lambda asked: found.move(asked - centre))

    @cached_property
    def perceptron(self) -> Compared:
        options = [(strength, steps, 0) for strength in (1e-2, 1e-1) for steps in (500, 2000)]
        return baselines.tuned(baselines.perceptron, options, self.centred, *self.pairs, 0)

    def csls(self, own: bool) -> Compared:
        queries, origins = self.pairs
        return baselines.csls(self.ridge, queries, None if own else origins)

    def inverted_softmax(self, own: bool) -> Compared:
        queries, origins = self.pairs
        return baselines.inverted_softmax(self.ridge, queries, None if own else origins, self.temperature)

    @cached_property
    def temperature(self) -> float:
        """That by which pairs held out are found most often."""
        queries, origins = self.pairs
        held = torch.arange(len(origins)) % 5 == 0
        inner = Plain(self.data._replace(learn=self.data.learn & ~torch.isin(self.data.origins, origins[held])))

        def right(temperature: float) -> int:
            tried = baselines.inverted_softmax(inner.ridge, *inner.pairs, temperature)
            return int((tried.first(queries[held]) == origins[held]).sum())

        return max(TEMPERATURES, key=right)

    @cached_property
    def self_learned(self) -> Compared:
        # Some hundred turns, each of which ranks 5,000 queries and 10,000 patterns among each other.
        sides = self.data.patterns, self.data.queries[self.data.learn]
        first = None if self.labels == "0" else (torch.arange(int(self.labels)), self.pairs[1])
        return self_taught.mapped(*(side.to(self.device) for side in sides), seed=0, first=first)

    def vecmap(self, own: bool) -> Compared:
        queries, origins = (part[self.data.learn].to(self.device) for part in (self.data.queries, self.data.origins))
        return baselines.csls(self.self_learned, queries.double(), None if own else origins)


# How many pairs each may learn from, and what it makes of them. Where a pattern's own query counts for its hubness,
# patterns of learned items are worse off than those of scored ones.
FEW = ("500", "100", "10")
PLAIN: dict[str, tuple[tuple[str, ...], Callable[[Plain], Compared]]] = {
    "ridge": (("all", *FEW), lambda plain: plain.ridge),
    "Procrustes": (("all", *FEW), lambda plain: plain.procrustes),
    "perceptron": (("all",), lambda plain: plain.perceptron),
    "ridge and CSLS": (("all",), lambda plain: plain.csls(own=False)),
    "ridge and CSLS, own query counted": (("all",), lambda plain: plain.csls(own=True)),
    "ridge and inverted softmax": (("all",), lambda plain: plain.inverted_softmax(own=False)),
    "ridge and inverted softmax, own query counted": (("all",), lambda plain: plain.inverted_softmax(own=True)),
    # Which query is a pattern's own, only those who score can tell: VecMap has no pairs, or a few to begin with.
    "VecMap": ((*FEW, "0"), lambda plain: plain.vecmap(own=False)),
    "VecMap, own query counted": ((*FEW, "0"), lambda plain: plain.vecmap(own=True)),
}


# --- figures --------------------------------------------------------------------------------------------------


def reindexed(name: str, data: Measured) -> Tensor:
    """The items nearest to each scored query where all were embedded anew by the model that asks, ``(n, 10)``."""
    anew = load(REINDEXED[name], 0) if name in REINDEXED else data
    items = nn.functional.normalize(anew.queries[anew.origins.argsort()])
    return (nn.functional.normalize(data.queries[~data.learn]) @ items.T).topk(TOP, 1).indices


def against(found: Tensor, wanted: Tensor) -> dict[str, float]:
    """Recall@10 and nDCG@10, the wanted items counting for 10, 9, ..., 1 by their rank."""
    same = found[:, :, None] == wanted[:, None, :]
    gains = (same * torch.arange(TOP, 0, -1)).sum(2).double()
    discount = 1 / torch.arange(2, TOP + 2).double().log2()
    ideal = (torch.arange(TOP, 0, -1) * discount).sum()
    return {"recall@10": float(same.any(2).double().mean()), "nDCG@10": float((gains @ discount / ideal).mean())}


def plain(found: Compared, data: Measured, wanted: Tensor) -> dict[str, float]:
    """What a baseline finds for the scored queries.

    Args:
        found: A baseline that has learned.
        data: The data set, split.
        wanted: The items to find for each scored query, best first, ``(n, 10)``.
    """
    asked = data.queries[~data.learn].to(found.patterns)
    parts = [found.score(found.patterns, found.move(rows)).topk(TOP, 1).indices for rows in asked.split(500)]
    top = torch.cat(parts).cpu()
    return {"right": share(top[:, 0], data.origins[~data.learn]), **against(top, wanted)}


def ours(data: Measured, labels: str, wanted: Tensor, number: int, device: str) -> dict[str, float]:
    """What b-hop finds for the scored queries, how sure it is, and what its query adapter finds.

    Args:
        data: The data set, split.
        labels: How many origins to learn from, or "all".
        wanted: As in :func:`plain`.
        number: Of the split, and seed of the fit.
        device: Where the memory learns.
    """
    queries, origins = data.queries[data.learn].to(device), data.origins[data.learn]
    if labels != "all":
        origins = torch.where(torch.arange(len(origins)) < int(labels), origins, -1)
    truth, asked = data.origins[~data.learn], data.queries[~data.learn].to(device)
    memory = ahop.BayesianHopfield(data.patterns).to(device)
    began = time.monotonic()
    with warnings.catch_warnings():
        # Where nothing is found, the row says so.
        warnings.simplefilter("ignore", UserWarning)
        memory.fit(queries, origins.to(device) if labels != "0" else None, seed=number)
    seconds = time.monotonic() - began
    if not memory.report.found:
        return {"found": 0.0, "right": 0.0, "sure": 0.0, "seconds": seconds}
    found = memory.recall(asked, k=TOP)
    top, sure = found.indices.cpu(), found.probabilities[:, 0].double().cpu()
    hits = (top[:, 0] == truth).double()
    # All items are asked for, those that were learned from as well; the others are scored.
    together = memory.match(data.queries.to(device)).indices.cpu()[~data.learn]
    bins = (sure * 15).long().clamp_max(14)
    missed = sum(float((sure - hits)[bins == one].sum().abs()) for one in range(15)) / len(hits)
    adapted = nn.functional.normalize(memory.query_adapter()(asked)).cpu()
    near = (adapted @ nn.functional.normalize(data.patterns).T).topk(TOP, 1).indices
    with_adapter = {"right": share(near[:, 0], truth), **against(near, wanted)}
    return {
        **{"found": 1.0, "right": float(hits.mean()), "together": share(together, truth)},
        **{"sure": float(sure.mean()), "calibration": missed},
        **against(top, wanted),
        **{f"adapter {what}": value for what, value in with_adapter.items()},
        "seconds": seconds,
    }


def share(answers: Tensor, truth: Tensor) -> float:
    return float((answers == truth).double().mean())


def measure(name: str, number: int, labels: list[str], device: str, methods: list[str]) -> Iterator[dict[str, Any]]:
    """A row for each baseline and each number of labels that it may have, and for each of b-hop's.

    Args:
        name: The data set.
        number: Of the split.
        labels: How many origins are learned from, one fit each.
        device: Where what takes long runs.
        methods: The baselines.
    """
    data = load(name, number)
    wanted = reindexed(name, data)
    for count in labels:
        tried = Plain(data, device, count)
        for method in methods:
            counts, make = PLAIN[method]
            if count in counts:
                yield {"method": method, "labels": count, **plain(make(tried), data, wanted)}
        yield {"method": "b-hop", "labels": count, **ours(data, count, wanted, number, device)}


def rows(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The spread of each figure over splits."""
    found = []
    for key in sorted({(one["data"], one["method"], one["labels"]) for one in done}, key=str):
        own = [one for one in done if (one["data"], one["method"], one["labels"]) == key]
        figures = {
            what: spread([one[what] for one in own if what in one])
            for what in FIGURES
            if any(what in one for one in own)
        }
        head = {"data": key[0], "method": key[1], "labels": key[2], "fits": len(own)}
        if "found" in own[0]:
            head["found"] = int(sum(one["found"] for one in own))
        found.append({**head, **figures})
    return found


def replaced(done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last of all that stand for the same figure."""
    return list({tuple(one[key] for key in ("data", "split", "method", "labels")): one for one in done}.values())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sets", nargs="*", default=SETS)
    options.add_argument("--splits", type=int, nargs="*", default=range(5))
    options.add_argument("--labels", nargs="*", default=LABELS, choices=LABELS)
    options.add_argument("--methods", nargs="*", default=list(PLAIN), choices=PLAIN)
    options.add_argument("--device", default="cpu")
    options.add_argument("--out", type=Path, default=TARGET)
    options.add_argument("--join", type=Path, nargs="*", default=[])
    given = options.parse_args()
    head = report.stamp("spaces", {"device": given.device, "seed": 0}, __file__)
    commit, kept = head["sittings"][-1]["commit"], [json.loads(path.read_text()) for path in given.join]
    if given.out.exists():
        kept.insert(0, json.loads(given.out.read_text()))
    now = head["sittings"] if given.labels else []
    head["sittings"] = [sitting for one in kept for sitting in one["sittings"]] + now
    done = replaced([part for one in kept for part in one["done"]])
    report.write({**head, "rows": rows(done), "done": done}, given.out)
    for number in given.splits if now else ():
        for name in given.sets:
            for part in measure(name, number, given.labels, given.device, given.methods):
                part = {"data": name, "split": number, **part, "commit": commit}
                done = replaced([*done, part])
                print(part, flush=True)
                report.write({**head, "rows": rows(done), "done": done}, given.out)
    print(f"report: {given.out.name}")


if __name__ == "__main__":
    main()
