"""Networks by their short names."""

from __future__ import annotations

from typing import Any, Literal, overload

from ahop._checks import as_matrix
from ahop.memories.base import AssociativeMemory
from ahop.memories.fourier import FourierHopfield
from ahop.memories.kernel import KernelHopfield
from ahop.memories.moments import Memory
from ahop.separation.base import Separation
from ahop.similarity.base import Similarity


def known_names() -> list[str]:
    """The short names that :func:`create` knows.

    Example:
        >>> known_names()[:3]
        ['a-hop', 'b-hop', 'd-hop']
    """
    return sorted([key for key in Memory.members if key.endswith("hop")] + ["k2-hop"])


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
    if name == "k2-hop":
        return KernelHopfield(patterns, loss="retrieval", **options)
    if name == FourierHopfield.name:
        rows = as_matrix(patterns, "patterns")
        return FourierHopfield(rows.shape[1], **options).to(rows).add(rows)
    if name not in known_names():
        raise ValueError(f"unknown model {name!r}; {_part(name) or 'known: ' + ', '.join(known_names())}")
    model: AssociativeMemory = Memory.named(name)(patterns, **options)  # type: ignore[assignment, call-arg]
    return model


def _part(name: str) -> str:
    """What to write for the name of a part of a network; nothing where it is none."""
    for kind, parts in (("separation", Separation.members), ("similarity", Similarity.members)):
        if name in parts:
            return f"it is a {kind}: ahop.create('u-hop', patterns, {kind}={name!r})"
    return ""
