"""Networks of real-valued units with similarities and separations of any kind."""

from __future__ import annotations

from typing import Any

from ahop.memories.base import AssociativeMemory
from ahop.separation import Separation, Softmax, Sparsemax
from ahop.similarity import Dot, Similarity


class ModernHopfield(AssociativeMemory):
    r"""The modern network of real-valued units, which is attention.

    .. math:: x \leftarrow \Xi^\top \mathrm{softmax}(\beta \Xi x), \qquad
        E(x) = \tfrac12 x^\top x - \tfrac1\beta \mathrm{lse}(\beta \Xi x)

    Args:
        patterns: ``(N, d)``.
        beta: Inverse temperature.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.
    """

    name = "m-hop"

    def __init__(self, patterns: Any, *, beta: float = 1.0, values: Any = None, prior: Any = None) -> None:
        super().__init__(patterns, Dot(), Softmax(beta), values=values, prior=prior)
        self.beta = float(beta)


class UniversalHopfield(AssociativeMemory):
    """Any similarity with any separation; by default Manhattan distance and the single best pattern.

    Args:
        patterns: ``(N, d)``.
        similarity, separation: The parts, or their names.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.

    Example:
        >>> memory = UniversalHopfield(torch.eye(3), similarity="cosine", separation="sparsemax")
    """

    name = "u-hop"

    def __init__(
        self,
        patterns: Any,
        *,
        similarity: Similarity | str = "manhattan",
        separation: Separation | str = "argmax",
        values: Any = None,
        prior: Any = None,
    ) -> None:
        super().__init__(patterns, similarity, separation, values=values, prior=prior)


class SparseHopfield(AssociativeMemory):
    r"""A modern network whose weights are exactly zero for all but a few patterns.

    .. math:: x \leftarrow \Xi^\top \mathrm{sparsemax}(\beta \Xi x), \qquad
        E(x) = \tfrac12 x^\top x - \tfrac1\beta \Psi_2^\star(\beta \Xi x)

    Args:
        patterns: ``(N, d)``.
        beta: Inverse temperature.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.
    """

    name = "s-hop"

    def __init__(self, patterns: Any, *, beta: float = 1.0, values: Any = None, prior: Any = None) -> None:
        super().__init__(patterns, Dot(), Sparsemax(beta), values=values, prior=prior)
        self.beta = float(beta)
