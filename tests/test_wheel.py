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


def built(folder):
    """The wheels of the library and of the experiments; the tools are those that run this test, which is set up."""
    said("make", "-C", ROOT, "wheel", "-o", "setup", f"DIST={folder}", f"BIN={Path(sys.executable).parent}")
    (library,), (experiments,) = folder.glob("ahop-*.whl"), folder.glob("ahop_paper-*.whl")
    return library, experiments


def packed(wheel):
    """What a wheel holds beside what it says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def sources(folder):
    """What is to be packed of a folder of sources."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {path.relative_to(folder).as_posix() for path in paths}


@pytest.mark.slow
def test_no_experiment_is_in_the_wheel_of_the_library_and_all_are_in_their_own(tmp_path):
    library, experiments = map(packed, built(tmp_path))
    assert library == sources(ROOT / "src") and experiments == sources(ROOT / "paper" / "src")
    assert {name.partition("/")[0] for name in library} == {"ahop"}
    assert not [name for name in library if name.startswith("ahop/paper/") or "baselines" in name or "publish" in name]
    assert {f"ahop_paper/{name}.py" for name in ("baselines", "real", "parts", "commands/real")} <= experiments


@pytest.mark.slow
def test_the_wheel_runs_the_readme_in_a_clean_environment(tmp_path):
    wheel, _ = built(tmp_path)
    said(sys.executable, "-m", "venv", tmp_path / "clean")
    bin = tmp_path / "clean" / "bin"
    said(bin / "pip", "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", f"{wheel}[all]")
    assert said(bin / "ahop", "--version") == f"ahop {wheel.name.split('-')[1]}\n"
    # Away from the checkout, so that nothing of it is found by chance.
    assert said(bin / "python", "-c", RUN, ROOT / "README.md", cwd=tmp_path).endswith("all blocks ran\n")
