"""Memories that may doubt a whole query: with that share, any pattern may be its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from ahop._recall import Recall, priors, with_doubt
from ahop.memories.base import AssociativeMemory

if TYPE_CHECKING:
    from ahop.similarity import Corruption
    from ahop.similarity.gaussian import Gaussian


class Doubting(AssociativeMemory, abstract=True):
    r"""A memory whose similarity knows a doubt :math:`\varepsilon`, the share of queries that tell nothing.

    .. math:: p = (1 - \varepsilon) \, \mathrm{softmax}(s) + \varepsilon \, p_\mathrm{prior}
    """

    similarity: Corruption | Gaussian

    def _probabilities(self, scores: Tensor) -> Tensor:
        likely = super()._probabilities(scores)
        prior = priors(self._log_prior(), len(self), likely)
        return likely.lerp(prior.expand_as(likely), self.similarity.doubt.to(likely))

    def _doubted(self, found: Recall) -> Recall:
        """The same answers, less sure."""
        return with_doubt(found, self.similarity.doubt, self._log_prior(), len(self))
