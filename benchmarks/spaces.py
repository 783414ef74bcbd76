"""Queries of another embedding model: how many find their item, with all pairs, some, five, or none.

``python benchmarks/spaces.py [SET ...] [--splits 1] [--device cpu] [--without VecMap]`` scores the items that were not
learned from among all 10,000, with ours at its defaults and beside it what anyone would try first. What
``results/spaces.json`` has of other sets stays.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import ahop
from ahop.datasets import Measured
from ahop_paper import baselines, real, report, self_taught
from ahop_paper.spread import spread

SETS = ("embeddings-new", "embeddings-new-photo", "embeddings-wide", "text-glove", "text-llama")
LABELS = (None, 500, 5, 0)
TARGET = Path(__file__).parent.parent / "results" / "spaces.json"
Answers = tuple[Tensor, Tensor | None]


def ours(data: Measured, count: int | None, number: int) -> Answers:
    """First choices of scored queries and how sure they are."""
    queries, origins = data.queries[data.learn], data.origins[data.learn]
    if count is not None:
        origins = torch.where(torch.arange(len(origins)).to(origins) < count, origins, -1)
    with warnings.catch_warnings():
        # Where nothing is found, the row says so.
        warnings.simplefilter("ignore", UserWarning)
        memory = ahop.BayesianHopfield(data.patterns).fit(queries, origins if count != 0 else None, seed=number)
    found = memory.recall(data.queries[~data.learn])
    sure = found.probabilities[:, 0] if memory.report.found else torch.zeros(len(found.indices))
    return found.indices[:, 0], sure


def plain(make: Callable[[Measured], baselines.Compared]) -> Callable[[Measured], Answers]:
    return lambda data: (make(data).first(data.queries[~data.learn].double()), None)


def ridge(data: Measured) -> baselines.Compared:
    pairs = data.queries[data.learn].double(), data.origins[data.learn]
    return baselines.tuned(baselines.ridge, baselines.RIDGES, data.patterns.double(), *pairs, 0)


def csls(data: Measured) -> baselines.Compared:
    """Ridge, hubs counting for less by how near the learned queries of other patterns are."""
    found = ridge(data)
    moved, own = found.move(data.queries[data.learn].double()), data.origins[data.learn]
    scores = found.score(found.patterns, moved)
    scores[torch.arange(len(own)), own] = -torch.inf
    crowd = scores.topk(10, 0).values.mean(0)
    return found._replace(score=lambda patterns, asked: 2 * found.score(patterns, asked) - crowd)


def procrustes(data: Measured) -> baselines.Compared:
    return baselines.procrustes(data.patterns.double(), data.queries[data.learn].double(), data.origins[data.learn])


def vecmap(data: Measured) -> baselines.Compared:
    return self_taught.translated(data.patterns, data.queries[data.learn], 0)


PLAIN = {"ridge": ("all", ridge), "ridge and CSLS": ("all", csls), "Procrustes": ("all", procrustes)}
PLAIN["VecMap"] = ("0", vecmap)


def measure(name: str, number: int, device: str, without: Sequence[str]) -> Iterator[dict[str, Any]]:
    data = real.split(real.load(name, real.Config()), number)
    truth = data.origins[~data.learn]
    for method, (labels, make) in PLAIN.items():
        if method in without:
            continue
        answers, _ = plain(make)(data)
        yield {"data": name, "split": number, "method": method, "labels": labels, "right": share(answers, truth)}
    moved = Measured(*(part.to(device) for part in data))
    for count in LABELS:
        answers, sure = ours(moved, count, number)
        assert sure is not None
        row = {"data": name, "split": number, "method": "b-hop", "labels": "all" if count is None else str(count)}
        yield {**row, "right": share(answers.cpu(), truth), "sure": float(sure.mean())}


def share(answers: Tensor, truth: Tensor) -> float:
    return float((answers == truth).double().mean())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("sets", nargs="*", default=SETS)
    options.add_argument("--splits", type=int, default=1)
    options.add_argument("--device", default="cpu")
    options.add_argument("--without", nargs="*", default=(), choices=PLAIN)
    given = options.parse_args()
    head = report.stamp("spaces", {"splits": given.splits, "device": given.device, "seed": 0}, __file__)
    done = list(json.loads(TARGET.read_text())["done"]) if TARGET.exists() else []
    for name in given.sets:
        done = [part for part in done if part["data"] != name]
        for number in range(given.splits):
            for part in measure(name, number, given.device, given.without):
                done.append({**part, "commit": head["sittings"][-1]["commit"]})
                print(part, flush=True)
                rows = []
                for key in dict.fromkeys((one["data"], one["method"], one["labels"]) for one in done):
                    own = [one for one in done if (one["data"], one["method"], one["labels"]) == key]
                    figures = {what: spread([one[what] for one in own]) for what in ("right", "sure") if what in own[0]}
                    rows.append({"data": key[0], "method": key[1], "labels": key[2], **figures})
                report.write({**head, "rows": rows, "done": done}, TARGET)
    print(f"report: {TARGET.name}")


if __name__ == "__main__":
    main()
