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

import numpy as np
import torch
from torch import Tensor

import ahop
from ahop.datasets import Measured
from ahop.datasets.files import DataFile, fetch
from ahop_paper import baselines, real, report, self_taught
from ahop_paper.spread import spread

SETS = ("embeddings-new", "embeddings-new-photo", "embeddings-wide", "text-glove", "text-llama")
LABELS = (None, 500, 5, 0)
TEXT = DataFile(
    path="real/text_models.npz",
    sha256=("4b3b1ba3ab27361478b55139e8bec66567cfc3fe9b91b21abd9547c269e17d95",),
    source="10,000 definitions of WordNet 3 as two public text models embed them",
)
TARGET = Path(__file__).parent.parent / "results" / "spaces.json"
OTHER = {"glove": "llama", "llama": "glove"}
Answers = tuple[Tensor, Tensor | None]


def load(name: str, number: int) -> Measured:
    """A set and a split of it; of texts, ``text-glove`` is asked by GloVe and stored by WordLlama, or the reverse."""
    if not name.startswith("text-"):
        return real.split(real.load(name, real.Config()), number)
    asking = name.removeprefix("text-")
    with np.load(fetch(TEXT), allow_pickle=False) as archive:
        stored, asked = (torch.from_numpy(archive[side]).float() for side in (OTHER[asking], asking))
    every, learn = torch.arange(len(stored)), torch.zeros(len(stored), dtype=torch.bool)
    learn[torch.from_numpy(np.random.default_rng(number).permutation(len(stored))[: len(stored) // 2])] = True
    return Measured(stored, asked, every, learn)


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
    """Around the patterns' mean, which cosines gain by."""
    patterns, pairs = data.patterns.double(), (data.queries[data.learn].double(), data.origins[data.learn])
    return baselines.tuned(baselines.ridge, baselines.RIDGES, patterns - patterns.mean(0), *pairs, 0)


def csls(data: Measured) -> baselines.Compared:
    """Ridge, hubs counting for less by how near the learned queries of other patterns are."""
    found = ridge(data)
    moved, own = found.move(data.queries[data.learn].double()), data.origins[data.learn]
    scores = found.score(found.patterns, moved)
    scores[torch.arange(len(own)), own] = -torch.inf
    crowd = scores.topk(10, 0).values.mean(0)
    return found._replace(score=lambda patterns, asked: 2 * found.score(patterns, asked) - crowd)


def procrustes(data: Measured) -> baselines.Compared:
    """Around both means."""
    patterns, queries = data.patterns.double(), data.queries[data.learn].double()
    centre = queries.mean(0)
    found = baselines.procrustes(patterns - patterns.mean(0), queries - centre, data.origins[data.learn])
    return found._replace(move=lambda asked: found.move(asked - centre))


def vecmap(data: Measured) -> baselines.Compared:
    return self_taught.translated(data.patterns, data.queries[data.learn], 0)


PLAIN = {"ridge": ("all", ridge), "ridge and CSLS": ("all", csls), "Procrustes": ("all", procrustes)}
PLAIN["VecMap"] = ("0", vecmap)


def measure(name: str, number: int, device: str, without: Sequence[str]) -> Iterator[dict[str, Any]]:
    data = load(name, number)
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
