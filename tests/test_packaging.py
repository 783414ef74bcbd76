import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ahop
from ahop_paper.commands import app

ROOT = Path(__file__).parents[1]
CORE = {"torch", "numpy", "numba", "scikit-learn", "entmax", "safetensors"}
# By the names that they are imported by.
EXTRAS = ("typer", "rich", "matplotlib", "PIL", "pandas", "xgboost", "lightgbm", "catboost")


def versions(text, sign):
    return dict(re.findall(rf"\b([a-z][a-z-]*){sign}([0-9.]+)", text))


def read(file):
    return (ROOT / file).read_text()


def bounds_of_both():
    """The lowest versions that the library and the experiments take."""
    return versions(read("pyproject.toml") + read("paper/pyproject.toml"), ">=")


def test_the_oldest_versions_are_the_lower_bounds():
    bounds = bounds_of_both()
    assert "torch" in bounds
    assert versions(read("constraints-oldest.txt"), "==") == bounds


def test_a_plain_set_up_takes_no_version_under_the_bounds():
    def number(text):
        return tuple(map(int, text.split(".")))

    bounds = bounds_of_both()
    pinned = versions(read("constraints.txt"), "==")
    assert all(number(version) >= number(bounds[name]) for name, version in pinned.items())


def test_the_core_needs_six_libraries():
    (core,) = re.findall(r"^dependencies = \[(.*?)^\]", read("pyproject.toml"), re.S | re.M)
    assert set(versions(core, ">=")) == CORE


HIDE = """
import sys

class Without:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden!r} else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Without, sys.meta_path)
"""


def without(hidden, code):
    """What Python says where some libraries are not installed."""
    text = HIDE.format(hidden=tuple(hidden)) + code
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)


CORE_WORK = """
import torch, ahop

# The compiler is as long to import as all the rest together.
assert "torch._dynamo" not in sys.modules

patterns = torch.eye(8)
world = ahop.variants.Noisy(0.1)
seen = world.sample(patterns, 40)
assert ahop.BayesianHopfield(patterns).fit(*seen).recall(seen.queries).indices.shape == (40, 1)
ahop.AdaptiveHopfield(patterns).fit(*seen)
ahop.datasets.load("digits")

def said(call, *arguments):
    try:
        call(*arguments)
    except ImportError as error:
        print(error)

from ahop.datasets import photos
said(ahop.datasets.load, "adult")
said(photos._decode, [], None)

from ahop.cli import app
app()
"""


@pytest.mark.slow
def test_the_core_learns_without_extras_and_what_needs_one_names_it_in_one_line():
    run = without((*EXTRAS, "ahop_paper"), CORE_WORK)
    missing = {"pandas": "tables", "PIL": "images"}
    told = [f"{name} is not installed: pip install 'ahop[{extra}]'" for name, extra in missing.items()]
    assert run.stdout.splitlines() == told
    assert (run.returncode, run.stderr) == (2, "error: typer is not installed: pip install 'ahop[cli]'\n")


@pytest.mark.parametrize(
    ("asked", "missing"),
    [(["retrieval", "--plot", "x.png"], "matplotlib"), (["figures"], "matplotlib"), (["tabular"], "pandas")],
)
def test_an_experiment_without_its_library_says_so_before_the_work(asked, missing, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr("ahop_paper.retrieval.run", lambda config: pytest.fail("the work has begun"))
    result = CliRunner().invoke(app, asked)
    assert (result.exit_code, result.output) == (
        2,
        f"error: {missing} is not installed: pip install ahop-paper\n",
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_installs_what_its_targets_need(target):
    makefile = read("Makefile")
    assert re.search(rf"^{target}: setup$", makefile, re.M) and "-e '.[dev]' -e paper" in makefile
    assert re.search(r'^all = \["ahop\[cli,tables,images,plot,index\]"\]$', read("pyproject.toml"), re.M)
    assert all(f'"ahop[{extra}]",' in read("pyproject.toml") for extra in ("cli", "images", "all"))


def test_the_experiments_are_of_the_librarys_version():
    told = read("paper/pyproject.toml")
    assert re.findall(r'^version = "(.*?)"', told, re.M) == [ahop.__version__]
    assert re.findall(r'"ahop\[cli,tables,images\]==(.*?)"', told) == [ahop.__version__]


def test_the_citation_is_of_this_version_and_of_the_paper_that_the_readme_names():
    citation = read("CITATION.cff")
    assert re.search(rf"^version: {re.escape(ahop.__version__)}$", citation, re.M)
    (paper,) = re.findall(r'title: "(Adaptive .*)"', citation)
    assert paper in " ".join(read("README.md").split())


def test_the_changelog_begins_with_this_version():
    assert re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.M)[0] == ahop.__version__


def test_no_file_is_unpickled():
    """As SECURITY.md promises."""
    for path in sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "paper/src").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"pickle", "dill", "cloudpickle", "marshal", "shelve"}, path
            if isinstance(node, ast.Call):
                call = ast.unparse(node.func)
                assert call not in ("torch.load", "joblib.load"), path
                if call in ("np.load", "numpy.load"):
                    assert "allow_pickle=False" in ast.unparse(node), path
