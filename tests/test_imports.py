"""Who may import whom, read from the sources: imports inside functions and for types alone count as well. And what no
branch may go by."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ahop

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", ROOT / "paper" / "src")
# What comes with a library of the core.
CORE = {"torch", "numpy", "numba", "llvmlite", "sklearn", "entmax", "safetensors", "scipy", "joblib"}
# What takes long to import, the compiler of torch among it: work asks for these, and nothing before it.
SLOW = ("sklearn", "scipy", "joblib", "numba", "pandas", "matplotlib", "PIL", "torch._dynamo", "torch._inductor")


def name_of(path, source):
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {name_of(path, source): path for source in SOURCES for path in sorted(source.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
LIBRARY = [name for name in TREES if name.partition(".")[0] == "ahop"]


def imported(node):
    """The modules that one statement names, ours as far as they are modules."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    assert not node.level, "imports are written in full here"
    return {inner if (inner := f"{node.module}.{alias.name}") in TREES else node.module or "" for alias in node.names}


def statements(tree):
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def reads_all(tree):
    """Whether a package imports every module in it."""
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == "read_all" for node in ast.walk(tree))


def graph():
    found = {}
    for name, tree in TREES.items():
        found[name] = {other for node in statements(tree) for other in imported(node) if other in TREES}
        if reads_all(tree):
            found[name] |= {other for other in TREES if other.rpartition(".")[0] == name}
    return found


def circle(edges):
    """The modules of some circle, in order; none, if there is none."""
    done = set()

    def walk(name, path):
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(edges[name]):
            if found := walk(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in edges if (found := walk(name, []))), [])


def test_a_circle_is_found_where_there_is_one():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_there_is_no_circle_of_imports():
    assert circle(graph()) == []


def test_the_library_neither_imports_the_experiments_nor_knows_of_them():
    assert len(LIBRARY) > 100 and len(LIBRARY) < len(TREES)
    edges = graph()
    for name in LIBRARY:
        assert not [other for other in edges[name] if other not in LIBRARY], name
        # Not in a string either; that there is something to install is all that is said of it.
        assert "ahop_paper" not in FILES[name].read_text(), name


def test_nothing_but_its_command_imports_the_playground():
    inside = "ahop.playground"
    found = {name for name, others in graph().items() if any(other.startswith(inside) for other in others)}
    assert {name for name in found if not name.startswith(inside)} == {"ahop.cli.playground"}


def needed(node):
    """The libraries of other people that a statement names."""
    return {
        library
        for module in imported(node)
        if (library := module.partition(".")[0]) not in {"ahop", *sys.stdlib_module_names}
    }


def for_types(tree):
    """The statements that no program runs."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    return {id(inner) for block in blocks for inner in ast.walk(block)}


# Nobody reads the files of the command line but its package, after it has asked.
@pytest.mark.parametrize("name", [name for name in LIBRARY if not name.startswith("ahop.cli.")])
def test_an_extra_is_imported_only_where_it_has_been_asked_for(name):
    tree = TREES[name]
    outside = for_types(tree)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    asked = {
        id(inner): {argument.value for argument in call.args}
        for function in functions
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "require"
        for inner in ast.walk(function)
    }
    for node in statements(tree):
        if id(node) not in outside:
            assert needed(node) <= CORE | asked.get(id(node), set()), ast.unparse(node)


@pytest.mark.parametrize(
    ("package", "known", "slow"),
    [
        ("ahop.cli", "playground", ("torch", "numpy", *SLOW)),
        pytest.param("ahop_paper.commands", "retrieval", SLOW, marks=pytest.mark.slow),
    ],
)
def test_a_command_line_says_what_it_can_do_without_importing_anything_slow(package, known, slow):
    told = f"print('slow:', *[name for name in {slow!r} if name in sys.modules])"
    program = f"import atexit, sys; atexit.register(lambda: {told}); sys.argv = ['ahop', '--help']; "
    program += f"from {package} import app; app()"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert known in run.stdout
    assert run.stdout.splitlines()[-1].split() == ["slow:"], run.stdout


def test_only_its_package_and_the_command_itself_import_the_command_line():
    users = {name for name, others in graph().items() if any(other.startswith("ahop.cli") for other in others)}
    inside = {name for name in users if name.startswith("ahop.cli") or not name.startswith("ahop.")}
    assert users - inside == {"ahop.__main__"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ahop.__all__))
def test_a_public_name_can_be_the_first_that_is_asked_for(name):
    """Each is imported when it is asked for, so that none may need another one before it."""
    program = f"import sys, ahop; assert 'torch' not in sys.modules; ahop.{name}"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_look_at_the_library_shows_its_public_names_and_no_others():
    assert dir(ahop) == sorted(ahop.__all__)
    assert all(hasattr(ahop, name) for name in dir(ahop))


# Words with spaces between, capitals, and short names of networks: what people read.
SHOWN = re.compile(r"\w \w|^[A-Z]{4,}$|hop$")


def compared(node):
    """The strings that a comparison, or a test for how a string begins or ends, goes by."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "endswith"):
        sides = node.args
    else:
        return []
    constants = [one for side in sides for one in getattr(side, "elts", [side]) if isinstance(one, ast.Constant)]
    return [one.value for one in constants if isinstance(one.value, str)]


def test_no_branch_of_the_library_goes_by_a_string_that_people_read():
    found = [(name, text) for name in LIBRARY for node in ast.walk(TREES[name]) for text in compared(node)]
    assert len(found) > 50 and [one for one in found if SHOWN.search(one[1])] == []
