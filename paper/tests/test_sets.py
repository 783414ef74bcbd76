"""A data set with its baseline is one file."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
(RECIPE,) = re.findall(r"```py\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
# As the command would be run where the file lies.
RUN = """
import sys
sys.path.insert(0, sys.argv[1])
import ahop_paper
assert ahop_paper.__file__.startswith(sys.argv[1])
from ahop_paper.commands import app
app(sys.argv[2:])
"""


@pytest.mark.slow
def test_a_data_set_with_its_baseline_is_one_file(tmp_path):
    source = tmp_path / "src"
    shutil.copytree(ROOT / "paper" / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    (source / "ahop_paper" / "sets" / "tiles.py").write_text(RECIPE)
    asked = ["real", "--data", "tiles", "--models", "brighter,distance,ridge", "--runs", "1"]
    run = subprocess.run([sys.executable, "-c", RUN, source, *asked], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert all(name in run.stdout for name in ("tiles", "brighter", "ridge"))
