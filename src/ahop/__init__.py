"""Associative memory: thirteen Hopfield networks in one framework, with similarities that learn."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ahop._version import __version__

if TYPE_CHECKING:
    from ahop import (
        comparison,
        datasets,
        energy,
        estimators,
        index,
        kernels,
        learning,
        linkage,
        memories,
        metrics,
        modulation,
        nn,
        plot,
        separation,
        similarity,
        tables,
        theory,
        variants,
    )
    from ahop._blocks import memory_budget
    from ahop.comparison import Comparison, compare
    from ahop.memories import (
        STRANGER,
        AdaptiveHopfield,
        AssociativeMemory,
        BayesianHopfield,
        Certificate,
        ClassicalHopfield,
        DenseHopfield,
        ExponentialHopfield,
        FourierHopfield,
        GaussianHopfield,
        KernelHopfield,
        Matching,
        ModernHopfield,
        Oracle,
        Question,
        Recall,
        SequenceHopfield,
        SparseHopfield,
        UniversalHopfield,
        create,
        load,
    )


# Where names come from that are no memories.
_LAZY_MODULES = {"memory_budget": "ahop._blocks", "compare": "ahop.comparison", "Comparison": "ahop.comparison"}


def __getattr__(name: str) -> Any:
    """PyTorch takes seconds to import, so that everything comes when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'ahop' has no attribute {name!r}")
    if find_spec(f"ahop.{name}"):
        found = import_module(f"ahop.{name}")
    else:
        found = getattr(import_module(_LAZY_MODULES.get(name, "ahop.memories")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names alone, those that come when they are asked for included."""
    return __all__


__all__ = [
    "STRANGER",
    "AdaptiveHopfield",
    "AssociativeMemory",
    "BayesianHopfield",
    "Certificate",
    "ClassicalHopfield",
    "Comparison",
    "DenseHopfield",
    "ExponentialHopfield",
    "FourierHopfield",
    "GaussianHopfield",
    "KernelHopfield",
    "Matching",
    "ModernHopfield",
    "Oracle",
    "Question",
    "Recall",
    "SequenceHopfield",
    "SparseHopfield",
    "UniversalHopfield",
    "__version__",
    "compare",
    "comparison",
    "create",
    "datasets",
    "energy",
    "estimators",
    "index",
    "kernels",
    "learning",
    "linkage",
    "load",
    "memories",
    "memory_budget",
    "metrics",
    "modulation",
    "nn",
    "plot",
    "separation",
    "similarity",
    "tables",
    "theory",
    "variants",
]
