"""Where figures come from: the commit, and the code that they depend on."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import ahop

ROOT = Path(__file__).parents[3]
# Where the packages lie whose code makes figures.
SOURCES = {"ahop": Path(ahop.__file__).parents[1], "ahop_paper": Path(__file__).parents[1]}
# They keep and show figures, and make none. Before the experiments had a package, they were in ahop.paper.
_KEEPING = ("report", "provenance", "lineage", "plots")
_ASIDE = {"ahop._progress", *(f"{package}.{name}" for package in ("ahop.paper", "ahop_paper") for name in _KEEPING)}
_OURS = tuple(f"{package}." for package in SOURCES)


def commit() -> dict[str, Any]:
    """The commit of the sources, and whether they are as committed; both None where nobody can know.

    A copy that has no history, or another, takes it from the variable AHOP_COMMIT, as
    ``git describe --always --dirty --abbrev=40`` would say it: a shorter hash may soon be that of two commits.
    """
    given = os.environ.get("AHOP_COMMIT")
    if given is not None:
        if not re.fullmatch(r"[0-9a-f]{40}(-dirty)?", given):
            expected = "the whole hash of a commit (40 digits), optionally followed by -dirty"
            raise ValueError(f"AHOP_COMMIT must be {expected}; got {given!r}")
        return {"commit": given.removesuffix("-dirty"), "clean": not given.endswith("-dirty")}
    if (ROOT / ".git").exists():
        try:
            changed = _git("status", "--porcelain", "--untracked-files=no", "--", "src", "paper/src", "benchmarks")
            return {"commit": _git("rev-parse", "HEAD"), "clean": not changed}
        except (OSError, subprocess.CalledProcessError):
            pass
    return {"commit": None, "clean": None}


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


@cache
def fingerprint(file: str | os.PathLike[str]) -> str:
    """A hash of the code that the figures of an experiment depend on: its file, and all of ours that this imports.

    Comments, docstrings and line breaks do not count, nor does the version of Python.
    """
    sources = {Path(file).stem: Path(file), **needed(file)}
    texts = {path for source in sources.values() for path in source.parent.rglob("*.cu")}
    parts = [(name, read(path)[0]) for name, path in sources.items()]
    parts += [(path.name, path.read_text(encoding="utf-8")) for path in texts]
    return hashed(repr(sorted(parts)))[:16]


def needed(file: str | os.PathLike[str]) -> dict[str, Path]:
    """The modules of ours that a file imports, that those import, and so on."""
    found: dict[str, Path] = {}
    left = read(Path(file))[1]
    while left:
        name, *left = left
        path = place(name)
        if path is None or name in found or name in _ASIDE:
            continue
        found[name] = path
        # A package is read before its parts; but ours as a whole imports all for its users, and nobody needs it here.
        package = [name.rpartition(".")[0]] if name.count(".") > 1 else []
        left = [*left, *package, *read(path)[1]]
    return found


@cache
def read(path: Path) -> tuple[str, list[str]]:
    """A hash of a file's code, and the modules that it names."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return hashed(repr(bare(tree))), list(dict.fromkeys(_imported(tree, path)))


def _imported(tree: ast.AST, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if place(name) else node.module or "" for name in inner)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(_OURS):
            # As in import_module("ahop.estimators").
            yield node.value
        elif isinstance(node, ast.Attribute) and node.attr == "__path__":
            yield from below(tree, node)
        elif isinstance(node, ast.Name) and node.id == "__path__":
            # A package that looks at its own folder reads all that lies there.
            source = next(one for one in SOURCES.values() if one in path.parents)
            package = ".".join(path.parent.relative_to(source).parts)
            yield from (f"{package}.{inner.name}" for inner in iter_modules([str(path.parent)]))


def below(tree: ast.AST, node: ast.Attribute) -> Iterator[str]:
    """All modules of a package whose folder is looked at, as in ``iter_modules(families.__path__)``."""
    for one in ast.walk(tree):
        for alias in one.names if isinstance(one, ast.ImportFrom) else []:
            package = f"{one.module}.{alias.name}"  # type: ignore[attr-defined]
            if (alias.asname or alias.name) == ast.unparse(node.value) and (path := place(package)) is not None:
                for inner in sorted(path.parent.rglob("*.py")):
                    parts = inner.relative_to(path.parent).with_suffix("").parts
                    yield ".".join([package, *(part for part in parts if part != "__init__")])


@cache
def place(name: str) -> Path | None:
    """Where a module of ours lies."""
    package, *_ = name.split(".")
    if package not in SOURCES or not re.fullmatch(r"\w+(\.\w+)*", name):
        return None
    place = SOURCES[package].joinpath(*name.split("."))
    return next((path for path in (place / "__init__.py", place.with_suffix(".py")) if path.is_file()), None)


def hashed(text: str) -> str:
    """The sha256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def bare(node: Any) -> Any:
    """A syntax tree as nested lists, the same in all versions of Python, without strings that stand alone."""
    if isinstance(node, list):
        return [bare(one) for one in node if not stands_alone(one)]
    if not isinstance(node, ast.AST):
        return node
    # Fields that are empty, and empty ends of f-strings, are not in all versions.
    fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
    if isinstance(node, ast.JoinedStr):
        fields = [("values", [one for one in node.values if not (isinstance(one, ast.Constant) and one.value == "")])]
    return [type(node).__name__, *((name, bare(value)) for name, value in fields)]


def stands_alone(node: Any) -> bool:
    """Whether a statement is a string and nothing else: words about code."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def commits(report: dict[str, Any]) -> str:
    """The commits that a report's figures were made at, in words."""
    sittings = report["sittings"]
    if any("sitting" in one for one in report.get("done", [])):
        sittings = [sittings[number] for number in sorted({one["sitting"] for one in report["done"]})]
    known = list(dict.fromkeys(at(sitting) for sitting in sittings))
    return f"commit{'s' * (len(known) > 1)} {', '.join(known)}"


def at(sitting: dict[str, Any]) -> str:
    """The commit of one sitting, in words."""
    if not sitting.get("commit"):
        return "not recorded"
    return sitting["commit"][:7] + (" + changes" if sitting["clean"] is False else "")
