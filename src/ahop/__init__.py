"""Associative memory: ten Hopfield networks in one framework, with similarities that learn."""

from importlib import import_module
from types import ModuleType

from ahop import (
    datasets,
    energy,
    index,
    kernels,
    learning,
    memories,
    metrics,
    modulation,
    nn,
    separation,
    similarity,
    theory,
    variants,
)
from ahop._blocks import memory_budget
from ahop._version import __version__
from ahop.memories import (
    AdaptiveHopfield,
    AssociativeMemory,
    BayesianHopfield,
    Certificate,
    ClassicalHopfield,
    DenseHopfield,
    ExponentialHopfield,
    KernelHopfield,
    ModernHopfield,
    Oracle,
    Question,
    Recall,
    SparseHopfield,
    UniversalHopfield,
    create,
    load,
)


def __getattr__(name: str) -> ModuleType:
    """Scikit-learn takes a second to import, so its estimators come when they are asked for."""
    if name == "estimators":
        return import_module("ahop.estimators")
    raise AttributeError(f"module 'ahop' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names alone, those that come when they are asked for included."""
    return __all__


__all__ = [
    "AdaptiveHopfield",
    "AssociativeMemory",
    "BayesianHopfield",
    "Certificate",
    "ClassicalHopfield",
    "DenseHopfield",
    "ExponentialHopfield",
    "KernelHopfield",
    "ModernHopfield",
    "Oracle",
    "Question",
    "Recall",
    "SparseHopfield",
    "UniversalHopfield",
    "__version__",
    "create",
    "datasets",
    "energy",
    "estimators",
    "index",
    "kernels",
    "learning",
    "load",
    "memories",
    "memory_budget",
    "metrics",
    "modulation",
    "nn",
    "separation",
    "similarity",
    "theory",
    "variants",
]
