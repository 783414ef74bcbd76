"""Make one mistake at a time in a copy of the code, and see that the tests beside it notice.

Words on the command line choose the mutants that have all of them in what they do, or in their file.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]


def tested(killers, mutant=None):
    """What pytest says of some tests in a copy of the tree: as it is, or with a mistake in it."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("src", "tests", "paper"):
            shutil.copytree(ROOT / name, copy / name)
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy2(ROOT / name, copy)
        if mutant is not None:
            path = copy / mutant.file
            path.write_text(path.read_text().replace(mutant.find, mutant.put))
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *killers]
        environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy / 'paper/src'}", "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def verdict(mutant):
    """What became of a mutant: ``"killed"`` if every one of its tests fails, or why not."""
    if (ROOT / mutant.file).read_text().count(mutant.find) != 1:
        return "its text is not there once"
    result = tested(mutant.killers, mutant)
    if result.returncode not in (0, 1):
        # No verdict of a test.
        return f"pytest ended with {result.returncode}"
    missed = [killer for killer in mutant.killers if f"FAILED {killer}" not in result.stdout]
    return f"SURVIVED {', '.join(missed)}" if missed else "killed"


def main(words):
    """Print a table of all mutants, or of those with some words in them; 1 if one of them lives."""
    chosen = [one for one in MUTANTS if all(word in f"{one.file} {one.does}" for word in words)]
    whole = tested(sorted({killer for one in chosen for killer in one.killers}))
    if whole.returncode:
        print(whole.stdout, "Without a mistake in the code these tests must pass.", sep="\n")
        return 1
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for one, found in zip(chosen, pool.map(verdict, chosen), strict=True):
            survivors += found != "killed"
            print(f"{found:8} {one.file.removeprefix('paper/').removeprefix('src/'):34} {one.does}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants were killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
