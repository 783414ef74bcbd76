"""Networks by their short names."""

from __future__ import annotations

import inspect
from typing import Any, Literal, overload

from ahop._checks import as_matrix
from ahop._component import Component
from ahop.memories.base import AssociativeMemory
from ahop.memories.fourier import FourierHopfield
from ahop.memories.kernel import KernelHopfield
from ahop.memories.moments import Memory
from ahop.separation.base import Separation
from ahop.similarity.base import Similarity

# Names of a network with other arguments than its own defaults.
_ALIASES: dict[str, tuple[type[Memory], dict[str, Any]]] = {"k2-hop": (KernelHopfield, {"loss": "retrieval"})}
# The similarities that separations were published with, where that is not the dot product.
_PUBLISHED_WITH = {"argmax": "manhattan", "epanechnikov": "distance"}


def known_names() -> list[str]:
    """The short names that :func:`create` knows.

    Example:
        >>> known_names()[:3]
        ['a-hop', 'b-hop', 'd-hop']
    """
    return sorted([*(name for name, kind in Memory.members.items() if _needs_patterns_alone(kind)), *_ALIASES])


def kind_of(name: str) -> type[Memory]:
    """The class of a network by its short name.

    Example:
        >>> kind_of("k2-hop").__name__
        'KernelHopfield'
    """
    if name not in known_names():
        raise ValueError(f"unknown model {name!r}; {_part(name) or 'known: ' + ', '.join(known_names())}")
    return _ALIASES[name][0] if name in _ALIASES else Memory.named(name)


def _needs_patterns_alone(kind: type[Component]) -> bool:
    """Whether one argument makes a memory, as it does not make one whose parts have to be named, or an Oracle."""
    try:
        inspect.signature(kind).bind(None)
    except TypeError:
        return False
    return True


@overload
def create(name: Literal["f-hop"], patterns: Any, **options: Any) -> FourierHopfield: ...


@overload
def create(name: str, patterns: Any, **options: Any) -> AssociativeMemory: ...


def create(name: str, patterns: Any, **options: Any) -> AssociativeMemory | FourierHopfield:
    """A network by its short name; "k2-hop" is a :class:`KernelHopfield` fitted to the retrieval loss.

    Args:
        name: The short name.
        patterns: What to store, ``(N, d)``.
        **options: Arguments of the network's class.

    Example:
        >>> create("m-hop", torch.eye(3), beta=2.0)
        ModernHopfield(
          patterns=3, dim=3
          (similarity): Dot()
          (separation): Softmax(beta=2)
        )
    """
    if name == FourierHopfield.name:
        rows = as_matrix(patterns, "patterns")
        return FourierHopfield(rows.shape[1], **options).to(rows).add(rows)
    _, own = _ALIASES.get(name, (None, {}))
    model: AssociativeMemory = kind_of(name)(patterns, **own, **options)  # type: ignore[assignment, call-arg]
    return model


def _part(name: str) -> str:
    """What to write for the name of a part of a network; nothing where it is none."""
    if name in Separation.members:
        similarity = _PUBLISHED_WITH.get(name, "dot")
        return f"it is a separation: ahop.create('u-hop', patterns, similarity={similarity!r}, separation={name!r})"
    if name in Similarity.members:
        return f"it is a similarity: ahop.create('u-hop', patterns, similarity={name!r})"
    return ""
