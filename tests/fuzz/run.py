"""Draw cases for every fuzzer until a budget is spent: ``python -m tests.fuzz.run --minutes 60 --seed 1``.

A fuzzer is a file ``test_*.py`` of this folder with ``cases()``, a strategy of Hypothesis, and ``check(case)``, which
fails where a law does not hold. All get equal time. The first case that fails is made as small as it gets, and printed.
"""

from __future__ import annotations

import argparse
import importlib
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

# Cases of one fuzzer before the next has its turn.
_TURN = 25


def fuzzers() -> list[ModuleType]:
    """All of this folder."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))
    modules = [importlib.import_module(f"tests.fuzz.{name}") for name in names]
    return [module for module in modules if hasattr(module, "cases") and hasattr(module, "check")]


def run(modules: Sequence[Any], minutes: float, first_seed: int) -> int:
    """Give every fuzzer a turn, then always the one that had the least time, until all is over; 1 if a case failed."""
    begun, counts, turns = time.monotonic(), Counter[str](), Counter[str]()
    spent = {module.__name__: 0.0 for module in modules}
    while time.monotonic() < begun + 60 * minutes or not all(turns[name] for name in spent):
        module = min(modules, key=lambda module: (turns[module.__name__] > 0, spent[module.__name__]))
        name, start, failed = module.__name__, time.monotonic(), []  # type: ignore[var-annotated]
        if not _turn(module, 10**6 * first_seed + turns[name], counts, failed):
            print(f"after {_summary(counts)}\n\nimport torch\nfrom {name} import check\n")
            print(f"check({failed[-1]!r})" if failed else "no case could be drawn")
            return 1
        turns[name] += 1
        spent[name] += time.monotonic() - start
    print(_summary(counts))
    return 0


def _turn(module: Any, number: int, counts: Counter[str], failed: list[Any]) -> bool:
    """Some cases of one fuzzer; what failed last is the smallest."""
    name = module.__name__.rpartition(".")[2]

    @seed(number)
    @settings(
        max_examples=_TURN,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(module.cases())
    def attempt(case: Any) -> None:
        counts[name] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                module.check(case)
        except Exception:
            failed.append(case)
            raise

    try:
        attempt()
    except Exception:
        traceback.print_exc()
        return False
    return True


def _summary(counts: Counter[str]) -> str:
    each = ", ".join(f"{name.removeprefix('test_')} {count:,}" for name, count in sorted(counts.items()))
    return f"{sum(counts.values()):,} cases: {each}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=1, help="where to begin; another draws other cases")
    given_ = parser.parse_args()
    raise SystemExit(run(fuzzers(), given_.minutes, given_.seed))
