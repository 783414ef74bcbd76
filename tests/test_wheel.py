"""What is built is what is shipped: the wheel alone, in an environment of its own, runs the README."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUN = """
import re, sys
from pathlib import Path

import ahop

assert Path(sys.prefix) in Path(ahop.__file__).parents, ahop.__file__
names = {}
for block in re.findall(r"```python\\n(.*?)```", Path(sys.argv[1]).read_text(), re.DOTALL):
    # In small, as make test has it.
    exec(compile(block.replace("512", "64"), "README.md", "exec"), names)
print("all blocks ran")
"""


def said(*command, **options):
    """What a command prints; nothing of this environment may help it."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    run = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=own | {"MPLBACKEND": "Agg"}, **options
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.slow
def test_the_wheel_runs_the_readme_in_a_clean_environment(tmp_path):
    # The tools are those that run this test, which is set up.
    said("make", "-C", ROOT, "wheel", "-o", "setup", f"DIST={tmp_path}", f"BIN={Path(sys.executable).parent}")
    (wheel,) = tmp_path.glob("*.whl")
    sources = [
        path for path in (ROOT / "src" / "ahop").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    with zipfile.ZipFile(wheel) as packed:
        assert {path.relative_to(ROOT / "src").as_posix() for path in sources} <= set(packed.namelist())
    said(sys.executable, "-m", "venv", tmp_path / "clean")
    bin = tmp_path / "clean" / "bin"
    said(bin / "pip", "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", f"{wheel}[all]")
    assert said(bin / "ahop", "--version") == f"ahop {wheel.name.split('-')[1]}\n"
    # Away from the checkout, so that nothing of it is found by chance.
    assert said(bin / "python", "-c", RUN, ROOT / "README.md", cwd=tmp_path).endswith("all blocks ran\n")
