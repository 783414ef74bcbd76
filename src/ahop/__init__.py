"""Associative memory: every Hopfield network in one framework, with similarities that learn."""

from importlib import import_module
from types import ModuleType

from ahop import (
    datasets,
    energy,
    fitting,
    kernels,
    metrics,
    modulation,
    nn,
    separation,
    similarity,
    theory,
    variants,
)
from ahop._blocks import memory_budget
from ahop.bayesian import BayesianHopfield
from ahop.memory import AssociativeMemory, Recall
from ahop.models import (
    AdaptiveHopfield,
    ClassicalHopfield,
    DenseHopfield,
    ExponentialHopfield,
    KernelHopfield,
    ModernHopfield,
    SparseHopfield,
    UniversalHopfield,
    create,
)
from ahop.storage import load
from ahop.variants import Oracle

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """Scikit-learn takes a second to import, so its estimators come when they are asked for."""
    if name == "estimators":
        return import_module("ahop.estimators")
    raise AttributeError(f"module 'ahop' has no attribute {name!r}")


__all__ = [
    "AdaptiveHopfield",
    "AssociativeMemory",
    "BayesianHopfield",
    "ClassicalHopfield",
    "DenseHopfield",
    "ExponentialHopfield",
    "KernelHopfield",
    "ModernHopfield",
    "Oracle",
    "Recall",
    "SparseHopfield",
    "UniversalHopfield",
    "create",
    "datasets",
    "energy",
    "estimators",
    "fitting",
    "kernels",
    "load",
    "memory_budget",
    "metrics",
    "modulation",
    "nn",
    "separation",
    "similarity",
    "theory",
    "variants",
]
