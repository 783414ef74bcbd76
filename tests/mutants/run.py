"""Make one mistake at a time in a copy of the code, and see that the tests beside it notice.

python tests/mutants/run.py [a word of what a mutant does, or of its file]
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mutants.table import MUTANTS  # noqa: E402


def passes(killers, mutant=None):
    """How a copy of the tree fares in some tests, with a mistake in it or as it is: what pytest says."""
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, copy / name)
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy2(ROOT / name, copy)
        if mutant is not None:
            path = copy / mutant.file
            path.write_text(path.read_text().replace(mutant.find, mutant.put))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *killers]
        environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def verdict(mutant):
    """What became of a mutant: killed by its tests, or why not."""
    if (ROOT / mutant.file).read_text().count(mutant.find) != 1:
        return "its text is not there once"
    survived = []
    for killer in mutant.killers:
        result = passes([killer], mutant)
        # Anything but 0 and 1 is no verdict of a test.
        if result.returncode != 1:
            survived.append(killer if result.returncode == 0 else f"{killer}: pytest ended with {result.returncode}")
    return "SURVIVED " + ", ".join(survived) if survived else "killed"


def main(words):
    """Print a table of all mutants, or of those that some words name; 1 if one of them lives."""
    chosen = [one for one in MUTANTS if all(word in f"{one.file} {one.does}" for word in words)]
    whole = passes(sorted({killer for one in chosen for killer in one.killers}))
    if whole.returncode:
        print(whole.stdout, "without a mistake in the code, these tests must pass", sep="\n")
        return 1
    survivors = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for one, found in zip(chosen, pool.map(verdict, chosen), strict=True):
            survivors += found != "killed"
            print(f"{found:10} {one.file.removeprefix('src/ahop/'):34} {one.does}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants were killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
