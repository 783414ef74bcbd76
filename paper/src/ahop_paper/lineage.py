"""What a row of a report depends on: the code of its loader, its model and its measure, and what that needs.

In the experiments and in the data sets what counts is single definitions, so that one more beside them changes nothing.
In the library it is files. A package that only hands names on is looked through, and a part that is called by its name,
as in ``similarity="dot"``, counts as if it were imported. What private things are called, and what errors and warnings
say, does not count.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, TypeVar

from ahop._component import Component
from ahop_paper import provenance

# Packages whose definitions count one by one.
_SINGLE = ("ahop_paper", "ahop.datasets")
# They keep and show what others make: files of memories and reports, pictures, a bar.
_ASIDE = {
    *("ahop._progress", "ahop.memories.storage"),
    *(f"ahop_paper.{name}" for name in ("report", "provenance", "lineage", "plots")),
}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Function = TypeVar("Function", bound=Callable[..., Any])


class Definition(NamedTuple):
    """A name of a module, where definitions count one by one."""

    module: str
    name: str


class File(NamedTuple):
    """A module that counts as a whole."""

    module: str


def picks(function: Function) -> Function:
    """Mark a function that finds something by its name: rows name what it gives themselves, and not all it could."""
    return function


def fingerprint(*roots: Any) -> str:
    """A hash of the code that these need, and of values among them: functions, classes, and what holds such."""
    return provenance.hashed(repr(sorted(_Search().walk(*roots))))[:16]


def files(*roots: Any) -> set[str]:
    """The modules that the code of these lies in, and that which it needs."""
    found = _Search()
    found.walk(*roots)
    return {name for name in {one.module for one in found.visited} | found.touched if provenance.place(name)}


class _Search:
    """A walk from roots to all that they need, each once."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.visited: set[Definition | File] = set()
        self.touched: set[str] = set()
        self.ids: set[int] = set()

    def walk(self, *roots: Any) -> list[str]:
        for root in roots:
            self.root(root)
        return self.parts

    def root(self, root: Any) -> None:
        """A thing as the program has it."""
        if root is None or isinstance(root, (bool, int, float, str)):
            self.parts.append(repr(root))
            self.by_name(root)
        elif isinstance(root, Mapping):
            self.walk(*chain.from_iterable(root.items()))
        elif isinstance(root, (list, tuple, set, frozenset)):
            self.walk(*(sorted(root, key=repr) if isinstance(root, (set, frozenset)) else root))
        elif isinstance(root, partial):
            self.walk(root.func, root.args, root.keywords)
        elif isinstance(root, FunctionType):
            self.function(root)
        elif isinstance(root, type):
            self.follow(target(root.__module__, root.__qualname__.partition(".")[0]))
        elif dataclasses.is_dataclass(root):
            self.walk(*((field.name, getattr(root, field.name)) for field in dataclasses.fields(root)))
        elif isinstance(root, ModuleType):
            self.follow(File(root.__name__))
        else:
            self.root(type(root))

    def function(self, function: FunctionType) -> None:
        """A function, with what it holds of the function that it was made in."""
        if id(function) in self.ids:
            return
        self.ids.add(id(function))
        if is_single(function.__module__) and (function.__closure__ or "<" in function.__qualname__):
            for node in _written(function.__module__, function.__code__):
                self.node(function.__module__, node)
            self.walk(*(cell.cell_contents for cell in function.__closure__ or ()))
        else:
            self.follow(target(function.__module__, function.__qualname__.partition(".")[0]))

    def follow(self, found: Definition | File | None) -> None:
        """A definition or file of ours, and what it needs in turn."""
        if found is None or found in self.visited or found.module in _ASIDE:
            return
        self.visited.add(found)
        if isinstance(found, Definition):
            for node in _bindings(found.module).get(found.name, ()):
                if not _is_picking(node):
                    self.node(found.module, node)
            return
        path = provenance.place(found.module)
        if path is None:
            return
        self.parts.append(f"{found.module} {_digest(_tree(found.module))}")
        self.parts += _texts(path.parent)
        for one in _needs(found.module):
            self.follow(one)

    def node(self, module: str, node: ast.AST) -> None:
        """A piece of a module where definitions count."""
        self.touched.add(module)
        self.parts.append(f"{module} {_digest(node)}")
        for one in _named_by(module, node):
            self.follow(one)

    def by_name(self, value: Any) -> None:
        if isinstance(value, str):
            for module in _parts_by_name().get(value, ()):
                self.follow(File(module))


def is_single(module: str) -> bool:
    """Whether definitions of a module count one by one."""
    return any(module == package or module.startswith(f"{package}.") for package in _SINGLE)


@cache
def target(module: str, name: str) -> Definition | File | None:
    """Where a name of a module is defined, through packages that hand it on; None if it is not ours."""
    if provenance.place(module) is None:
        return None
    if provenance.place(f"{module}.{name}"):
        return File(f"{module}.{name}")
    if (came := _imports(module).get(name)) is not None:
        return File(came[0]) if came[1] is None else target(*came)
    return Definition(module, name) if is_single(module) else File(module)


@cache
def _tree(module: str) -> ast.Module:
    path = provenance.place(module)
    return _parsed(path.read_text(encoding="utf-8") if path else "")


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _run(node: ast.AST) -> Iterator[ast.AST]:
    """What of a piece of code a program runs: neither what is for types alone, nor words about it."""
    return (one for one, _ in _scoped(node))


def _scoped(node: ast.AST, local: frozenset[str] = frozenset()) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """What of a piece of code a program runs, each with the names that mean something of its own there."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield node, local
    within = local | _own(node)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        # Decorators, and what arguments are if nobody says so, are read outside.
        outside = name in ("decorator_list", "args") and not isinstance(node, ast.Call)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, ast.AST) and not provenance.stands_alone(one):
                yield from _scoped(one, local if outside else within)


def _own(node: ast.AST) -> frozenset[str]:
    """The names that a function or a comprehension has for itself."""
    if isinstance(node, _COMPREHENSIONS):
        return frozenset(_stored(*(one.target for one in node.generators)))
    if not isinstance(node, _FUNCTIONS):
        return frozenset()
    arguments = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
    body = node.body if isinstance(node.body, list) else [node.body]
    return frozenset({*arguments, *_stored(*body)})


def _stored(*nodes: ast.AST) -> Iterator[str]:
    """The names that are given a meaning here, and not in functions and comprehensions within."""
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, _DEFINITIONS):
            yield node.name
        elif not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
            yield from _stored(*ast.iter_child_nodes(node))


@cache
def _texts(folder: Path) -> list[str]:
    """Programs for a GPU, which lie with the module that renders or reads them, or in a folder of theirs."""
    texts = [*folder.glob("*.cu"), *(one for one in folder.glob("*/*.cu") if not (one.parent / "__init__.py").exists())]
    return sorted(f"{text.name} {text.read_text(encoding='utf-8')}" for text in texts)


@cache
def _digest(node: ast.AST) -> str:
    """A hash of a piece of code, whatever it calls what is private to it, and says in errors and warnings."""
    return provenance.hashed(repr(provenance.bare(_Nameless(node).visit(copy.deepcopy(node)))))


class _Nameless(ast.NodeTransformer):
    """Numbers private names that a piece of code defines, in the order in which they come, and leaves out what errors
    and warnings say."""

    def __init__(self, node: ast.AST) -> None:
        self.numbers: dict[str, str] = {}
        self.own = set(_defined(node))

    def visit(self, node: ast.AST) -> Any:
        for field in ("id", "attr", "name", "asname", "arg"):
            name = getattr(node, field, None)
            if name in self.own:
                setattr(node, field, self.numbers.setdefault(name, f"_{len(self.numbers)}"))
        return super().visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc.args = []
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "warn":
            node.args = node.args[1:]
        return self.generic_visit(node)


def _defined(node: ast.AST) -> Iterator[str]:
    """The private names that a piece of code gives a meaning, and not by an import."""
    given, brought = set[str](), set[str]()
    for one in ast.walk(node):
        if isinstance(one, ast.alias):
            brought |= {one.name, one.asname or one.name}
        elif isinstance(one, _DEFINITIONS):
            given.add(one.name)
        elif isinstance(one, ast.arg):
            given.add(one.arg)
        elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            given.add(one.id)
        elif isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
            given.add(one.attr)
    return (name for name in given - brought if name.startswith("_") and not name.startswith("__"))


@cache
def _imports(module: str) -> dict[str, tuple[str, str | None]]:
    """The names that imports at the top of a module give, and what each is: a module, or a name of one."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in _tree(module).body:
        for one in [node] if not isinstance(node, (ast.If, ast.Try)) else _run(node):
            found |= _given(one)
    return found


def _given(node: ast.AST) -> dict[str, tuple[str, str | None]]:
    if isinstance(node, ast.Import):
        # ``import ahop.nn`` gives the name ahop alone.
        names = [(one.asname, one.name) if one.asname else (one.name.partition(".")[0],) * 2 for one in node.names]
        return {given: (name, None) for given, name in names}
    if isinstance(node, ast.ImportFrom):
        return {one.asname or one.name: (node.module or "", one.name) for one in node.names}
    return {}


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[Definition | File | None]:
    """What an import brings."""
    if isinstance(node, ast.Import):
        yield from (File(one.name) for one in node.names)
    else:
        yield from (target(node.module or "", one.name) for one in node.names)


@cache
def _bindings(module: str) -> dict[str, list[ast.stmt]]:
    """The statements at the top of a module that give each of its names a meaning, imports aside."""
    found: dict[str, list[ast.stmt]] = {}
    for node in _tree(module).body:
        if isinstance(node, _DEFINITIONS):
            found.setdefault(node.name, []).append(node)
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            stored = {one.id for one in _run(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            for name in stored:
                found.setdefault(name, []).append(node)
    return found


def _is_picking(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(ast.unparse(one).endswith("picks") for one in node.decorator_list)


@cache
def _named_by(module: str, node: ast.AST) -> tuple[Definition | File | None, ...]:
    """What a piece of a module names: its own definitions, those of others, and parts by their names."""
    imports, parts, paths = _words(node)
    known = dict(_imports(module))
    for one in imports:
        known |= _given(one)
    brought = chain.from_iterable(map(_imported, imports))
    return tuple(dict.fromkeys((*brought, *parts, *(_found(module, path, known) for path in paths))))


@cache
def _words(
    node: ast.AST,
) -> tuple[tuple[ast.Import | ast.ImportFrom, ...], tuple[File, ...], tuple[tuple[str, ...], ...]]:
    """The imports of a piece of code, the parts that it asks for by name, and the names that it has from outside."""
    imports: list[ast.Import | ast.ImportFrom] = []
    parts: list[File] = []
    paths: list[tuple[str, ...]] = []
    visited: set[int] = set()
    for one, local in _scoped(node):
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            imports.append(one)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            parts += map(File, _parts_by_name().get(one.value, ()))
        elif isinstance(one, (ast.Attribute, ast.Name)) and id(one) not in visited:
            path, inside = _dotted(one)
            visited |= inside
            if path and path[0] not in local:
                paths.append(path)
    return tuple(imports), tuple(dict.fromkeys(parts)), tuple(dict.fromkeys(paths))


def _dotted(node: ast.expr) -> tuple[tuple[str, ...], set[int]]:
    """A name and the attributes asked of it, in order, with the nodes that it is written in; none for other things."""
    path: list[str] = []
    inside: set[int] = set()
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
        inside.add(id(node))
    return ((node.id, *path), inside) if isinstance(node, ast.Name) else ((), set())


def _found(module: str, path: tuple[str, ...], known: dict[str, tuple[str, str | None]]) -> Definition | File | None:
    first, *rest = path
    if first not in known:
        return Definition(module, first) if first in _bindings(module) else None
    source, name = known[first]
    at = source if name is None else f"{source}.{name}"
    if provenance.place(at) is None:
        return None if name is None else target(source, name)
    for attribute in rest:
        if provenance.place(f"{at}.{attribute}") is None:
            return target(at, attribute)
        at = f"{at}.{attribute}"
    return File(at)


@cache
def _needs(module: str) -> tuple[Definition | File, ...]:
    """What a file of the library imports or asks for by name, wherever in it."""
    imports, parts, paths = _words(_tree(module))
    found = (*chain.from_iterable(map(_imported, imports)), *parts, *_read_by(module, paths))
    return tuple(one for one in dict.fromkeys(found) if one is not None)


def _read_by(module: str, paths: tuple[tuple[str, ...], ...]) -> Iterator[File]:
    """What a file reads by looking at a folder: that of its own package, or of one that it imports."""
    tree = _tree(module)
    for path in paths:
        if path == ("__path__",):
            own = ast.parse(f"from {module.rpartition('.')[0]} import {module.rpartition('.')[2]} as own")
            yield from map(File, provenance.below(own, ast.Attribute(ast.Name("own"), "__path__")))
        elif path[-1] == "__path__":
            yield from map(File, provenance.below(tree, ast.Attribute(ast.Name(path[0]), "__path__")))


@cache
def _parts_by_name() -> dict[str, tuple[str, ...]]:
    """The modules of similarities, separations and other parts by the names that they can be asked for by."""

    found: dict[str, set[str]] = {}
    for family in Component.__subclasses__():
        if family.__module__.startswith("ahop."):
            for name, one in family.members.items():
                if one.__module__.startswith("ahop."):
                    found.setdefault(name, set()).add(one.__module__)
    return {name: tuple(sorted(modules)) for name, modules in found.items()}


@cache
def _written(module: str, code: CodeType) -> tuple[ast.AST, ...]:
    """Where a function stands that was made inside another, or has no name."""
    found: list[ast.AST] = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found += [node] if first == code.co_firstlineno else []
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            found.append(node)
    return tuple(found)
