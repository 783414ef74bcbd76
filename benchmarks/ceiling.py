"""How far the Bayes ceiling on MNIST is from the one of masks that hit every value by itself.

First choices by the exact likelihood of masks that hit an exact count of values, and by that of independent masks of
the same rate, on the patterns and queries of ``ahop-paper retrieval --data mnist``: ``python benchmarks/ceiling.py``,
nine minutes on two cores. Writes ``results/ceiling.json``, and goes on where it was stopped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ahop.variants import Compose, Masked, Mixed
from ahop_paper import report, retrieval
from ahop_paper.parallel import each
from ahop_paper.spread import spread

DIFFICULTIES, RUNS = (0.6, 0.7), 5
CONFIG = retrieval.Config(data="mnist", settings=tuple(retrieval.Setting(d, d, d) for d in DIFFICULTIES), runs=RUNS)


def compare(difficulty: float, seed: int) -> dict[str, Any]:
    """The share of first choices that are right by each likelihood, and on how many queries they agree."""
    patterns = retrieval.draw_patterns(CONFIG, seed)
    world = Mixed(difficulty, difficulty, difficulty, preset=CONFIG.preset, seed=seed)
    world.sample(patterns, CONFIG.samples)
    queries, origins = world.sample(patterns, CONFIG.queries)
    *before, mask = world.steps
    count, dim = int(round(difficulty * patterns.shape[1], 6)), patterns.shape[1]
    independent = Compose([*before, Masked(count / dim, fill=mask.fill)]).log_likelihood(patterns, queries)
    # To be told how many are masked can raise no likelihood by more than what a priori speaks against that number.
    most = -float(torch.distributions.Binomial(dim, torch.tensor(count / dim)).log_prob(torch.tensor(float(count))))
    first = independent.argmax(1)
    exact = first.clone()
    for row, query in enumerate(queries):
        # So a pattern that would stay below this one after such a gain cannot be the first choice.
        floor = float(world.log_likelihood(patterns[first[row], None], query[None]))
        able = (independent[row] + most >= floor).nonzero().squeeze(1)
        exact[row] = able[world.log_likelihood(patterns[able], query[None]).argmax(1)]

    def right(chosen: torch.Tensor) -> float:
        return float((patterns[chosen] == patterns[origins]).all(1).double().mean())

    return {
        "difficulty": difficulty,
        "seed": seed,
        "exact": right(exact),
        "independent": right(first),
        "alike": float((exact == first).double().mean()),
    }


def summary(head: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: one row for a difficulty."""
    rows = []
    for difficulty in DIFFICULTIES:
        runs = sorted((one for one in done if one["difficulty"] == difficulty), key=lambda one: one["seed"])
        if runs:
            figures = {key: spread([one[key] for one in runs]) for key in ("exact", "independent", "alike")}
            rows.append({"difficulty": difficulty, **figures})
    return {**head, "rows": rows, "done": done}


def main() -> None:
    config = {"data": CONFIG.data, "patterns": CONFIG.patterns, "queries": CONFIG.queries, "runs": RUNS, "seed": 0}
    target = Path(__file__).parent.parent / "results" / "ceiling.json"
    journal = report.Journal(target, report.stamp("ceiling", config, __file__), (), summary)
    jobs = [(difficulty, seed) for seed in range(RUNS) for difficulty in DIFFICULTIES]
    left = [job for job in jobs if job not in [(one["difficulty"], one["seed"]) for one in journal.done]]
    for one in each(compare, left, workers=2):
        print(one)
        journal.add([one])
    print(f"report: {target.name}")


if __name__ == "__main__":
    main()
