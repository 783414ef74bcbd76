"""Who may import whom, read from the sources: imports inside functions and for types alone count as well."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ahop

SOURCE = Path(__file__).parents[1] / "src"
# What comes with a library of the core.
CORE = {"torch", "numpy", "numba", "llvmlite", "sklearn", "entmax", "safetensors", "scipy", "joblib"}
# What takes long to import, the compiler of torch among it: work asks for these, and nothing before it.
SLOW = ("sklearn", "scipy", "joblib", "numba", "pandas", "matplotlib", "PIL", "torch._dynamo", "torch._inductor")


def name_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


TREES = {name_of(path): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}


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


def test_nothing_outside_the_papers_wing_imports_it():
    for name, others in graph().items():
        if not name.startswith("ahop.paper"):
            assert not [other for other in others if other.startswith("ahop.paper")], name


def test_nothing_but_its_command_imports_the_playground():
    inside = "ahop.playground"
    found = {name for name, others in graph().items() if any(other.startswith(inside) for other in others)}
    assert {name for name in found if not name.startswith(inside)} == {"ahop.paper.commands.playground"}


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


@pytest.mark.parametrize("name", [name for name in TREES if not name.startswith("ahop.paper")])
def test_outside_the_wing_an_extra_is_imported_only_where_it_has_been_asked_for(name):
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


def test_the_command_line_says_what_it_can_do_without_importing_anything_slow_but_torch():
    told = f"print('slow:', *[name for name in {SLOW!r} if name in sys.modules])"
    program = f"import atexit, sys; atexit.register(lambda: {told}); sys.argv = ['ahop', '--help']; "
    program += "from ahop.paper.commands import app; app()"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "retrieval" in run.stdout
    assert run.stdout.splitlines()[-1].split() == ["slow:"], run.stdout


def test_a_look_at_the_library_shows_its_public_names_and_no_others():
    assert dir(ahop) == sorted(ahop.__all__)
    assert all(hasattr(ahop, name) for name in dir(ahop))
