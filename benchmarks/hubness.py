"""What a correction for hubness brings, and how much of that comes from how the items are split.

A pattern that is near to many queries is a hub. Where the queries that were learned from say so, patterns of learned
items are held back more than others, and none of them is right for a scored query: some of the gain is no merit. So
hubness is measured in several ways, for maps to another embedding space: ``python benchmarks/hubness.py``.
Writes ``results/hubness.json``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ahop.datasets import Measured
from ahop.similarity import Moved
from ahop_paper import baselines, real, report
from ahop_paper.baselines import Compared
from ahop_paper.spread import spread

DATA, SPLITS, NEIGHBOURS = "embeddings-new", 5, 10


def ridge(data: Measured, seed: int) -> tuple[Compared, Tensor]:
    """The best of ``ahop-paper real``, and patterns as if they were queries that came to them."""
    pairs = data.queries[data.learn], data.origins[data.learn]
    found = baselines.tuned(baselines.ridge, baselines.RIDGES, data.patterns, *pairs, seed)
    return found._replace(patterns=found.patterns.double()), found.patterns.double()


def moved(data: Measured, seed: int, labels: bool) -> tuple[Compared, Tensor]:
    """The map of b-hop with its noise, and where it leads patterns to.

    Args:
        data: The data set, split.
        seed: Of the fit.
        labels: Whether it learns from the origins of queries.
    """
    model = Moved(data.patterns.shape[1], data.queries.shape[1])
    model.fit(data.patterns, data.queries[data.learn], data.origins[data.learn] if labels else None, seed=seed)
    model.double()
    patterns = data.patterns.double()
    return Compared(patterns, lambda asked: asked, model), patterns @ model.matrix.mT + model.bias


METHODS: dict[str, Callable[[Measured, int], tuple[Compared, Tensor]]] = {
    "ridge": ridge,
    "b-hop's map": partial(moved, labels=True),
    "b-hop's map*": partial(moved, labels=False),
}


def hubness(data: Measured, found: Compared, as_queries: Tensor) -> Iterator[tuple[str, Tensor | float]]:
    """Each way to measure hubness, and that of each pattern ``(N,)``: the mean of its best scores.

    Args:
        data: The data set, split.
        found: The comparison to correct.
        as_queries: Patterns as if they were queries that came to them, ``(N, e)``.
    """

    def best(asked: Tensor, own: tuple[Tensor, Tensor] | None = None) -> Tensor:
        scores = found.score(found.patterns, asked)
        if own is not None:
            scores[own] = -math.inf
        return scores.topk(NEIGHBOURS, 0).values.mean(0)

    learned, every = found.move(data.queries[data.learn].double()), found.move(data.queries.double())
    rows = torch.arange(len(as_queries))
    yield "nothing", 0.0
    yield "learned queries", best(learned)
    yield "learned queries, a pattern's own left out", best(learned, (rows[: len(learned)], data.origins[data.learn]))
    yield "learned and scored queries", best(every)
    yield "other patterns", best(as_queries, (rows, rows))


@torch.no_grad()
def measure(name: str, number: int) -> Iterator[dict[str, Any]]:
    """Accuracy on scored items by each way to count, and how many of the wrong answers are patterns of learned ones."""
    data = real.split(real.load(DATA, real.Config()), number)
    found, as_queries = METHODS[name](data, number)
    scores = found.score(found.patterns, found.move(data.queries[~data.learn].double()))
    learned = torch.zeros(len(data.patterns), dtype=torch.bool)
    learned[data.origins[data.learn]] = True
    for counted, correction in hubness(data, found, as_queries):
        answers = (2 * scores - correction).argmax(1)
        wrong = answers[answers != data.origins[~data.learn]]
        shares = {"accuracy": 1 - len(wrong) / len(answers), "wrong_to_learned": float(learned[wrong].double().mean())}
        yield {"method": name, "split": number, "counted": counted, **shares}


def main() -> None:
    head = report.stamp("hubness", {"data": DATA, "runs": SPLITS, "seed": 0, "neighbours": NEIGHBOURS}, __file__)
    done = []
    for name in METHODS:
        for number in range(SPLITS):
            for part in measure(name, number):
                done.append(part)
                print(part, flush=True)
    rows = []
    for key in dict.fromkeys((part["method"], part["counted"]) for part in done):
        own = [part for part in done if (part["method"], part["counted"]) == key]
        figures = {what: spread([part[what] for part in own]) for what in ("accuracy", "wrong_to_learned")}
        rows.append({"method": key[0], "counted": key[1], **figures})
    target = Path(__file__).parent.parent / "results" / "hubness.json"
    report.write({**head, "rows": rows}, target)
    print(f"report: {target.name}")


if __name__ == "__main__":
    main()
