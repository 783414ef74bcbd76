"""The network that compares patterns in a learned space."""

from __future__ import annotations

from typing import Any, Literal

from ahop._checks import Observed, as_matrix, choice
from ahop.memories.base import AssociativeMemory
from ahop.modulation import Kernel
from ahop.separation import Separation
from ahop.similarity import Dot


class KernelHopfield(AssociativeMemory):
    r"""Compares patterns and queries in a learned space.

    .. math:: x \leftarrow \Xi^\top \mathrm{sep}(\Xi \Phi^\top \Phi x), \qquad
        E(x) = \tfrac12 \lVert \Phi x \rVert^2 - \Psi^\star(\Xi \Phi^\top \Phi x)

    Args:
        patterns: ``(N, d)``.
        loss: What :math:`\Phi` is fitted to. ``"separation"`` (k-hop) moves the stored patterns apart and needs
            no queries; ``"retrieval"`` (k2-hop) finds the origins of given queries.
        features: Dimensions of the learned space; d when None.
        separation: Softmax, entmax or another, or its name.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.
    """

    name = "k-hop"

    def __init__(
        self,
        patterns: Any,
        *,
        loss: Literal["separation", "retrieval"] = "separation",
        features: int | None = None,
        separation: Separation | str = "softmax",
        values: Any = None,
        prior: Any = None,
    ) -> None:
        patterns = as_matrix(patterns, "patterns")
        kernel = Kernel(patterns.shape[1], features)
        super().__init__(patterns, Dot(), separation, modulation=kernel, values=values, prior=prior)
        self.loss, self.features = choice(loss, "loss", ("separation", "retrieval")), features

    @property
    def learns_from_patterns(self) -> bool:
        """Whether :meth:`fit` learns from the stored patterns alone, and takes no account of queries."""
        return self.loss == "separation"

    def fit(  # type: ignore[override]
        self,
        queries: Any = None,
        origins: Any = None,
        *,
        observed: Observed = None,
        steps: int = 200,
        rate: float = 1e-3,
        seed: int = 0,
    ) -> KernelHopfield:
        """Fit the kernel by Adam, from the identity; see :meth:`ahop.modulation.Kernel.fit`.

        Args:
            queries, origins: ``(n, d)`` and ``(n,)``, at least five; for the retrieval loss alone.
            observed: As in :meth:`scores`; the rest counts as zero, as it does in retrieval.
            steps, rate: Of Adam.
            seed: For what is held out, or drawn of very many patterns.
        """
        if self.learns_from_patterns:
            queries = origins = None
        elif queries is None or origins is None:
            raise ValueError("queries and origins must both be given to fit the retrieval loss")
        return self._fit_modulation(queries, origins, observed, steps=steps, rate=rate, seed=seed)
