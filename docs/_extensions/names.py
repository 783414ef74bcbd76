"""Names in docstrings lead to where the object is documented, under whichever of its names they call it."""

from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

PACKAGES = (
    *("ahop.memories", "ahop.similarity", "ahop.learning.report", "ahop.variants", "ahop.index", "ahop.nn"),
    *("ahop.comparison", "ahop.estimators"),
)


def _found(name: str) -> Any:
    """The module or object of this name, or None."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
            for part in parts[length:]:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    return None


def _resolve(app: Sphinx, env: BuildEnvironment, node: nodes.Element, shown: nodes.TextElement) -> nodes.Element | None:
    if node.get("refdomain") != "py":
        return None
    target, module = node["reftarget"].lstrip("."), node.get("py:module") or "ahop"
    parts, owner = target.split("."), _found(f"{module}.{node.get('py:class')}")
    if owner is not None:
        # A method that the class has from another.
        parts = next(([base.__name__, *parts] for base in owner.__mro__ if target in vars(base)), parts)
    domain = env.domains.python_domain
    for package in PACKAGES:
        for start in range(len(parts)):
            name = ".".join([package, *parts[start:]])
            if name in domain.objects:
                return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], name, node, shown)
    # What is there but not public is named without a link; what is not there is a mistake.
    places = [module, f"{module}.{node.get('py:class')}", getattr(owner, "__module__", module)]
    known = [f"{place}.{target}" for place in places] + [target] * target.startswith("ahop.")
    return shown if any(_found(name) is not None for name in known) else None


def _skip(app: Sphinx, what: str, name: str, found: object, skip: bool, options: object) -> bool | None:
    # Scikit-learn adds these to every estimator.
    return True if name.startswith("set_") and name.endswith("_request") else None


def _signature(
    app: Sphinx, what: str, name: str, found: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    # A class without arguments of its own shows those of all modules.
    return ("()" if what == "class" and signature == "(*args, **kwargs)" else signature), returned


def setup(app: Sphinx) -> dict[str, bool]:
    """Join the build."""
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
