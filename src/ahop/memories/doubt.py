"""Memories that may doubt a whole query: with that share, any pattern may be its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import Observed, as_queries
from ahop._recall import Recall, priors, with_doubt
from ahop.memories.base import AssociativeMemory
from ahop.memories.context import Prior
from ahop.memories.moments import of_one_moment

if TYPE_CHECKING:
    from ahop.similarity import Corruption
    from ahop.similarity.gaussian import Gaussian


class Doubting(AssociativeMemory, abstract=True):
    r"""A memory whose similarity knows a doubt :math:`\varepsilon`, the share of queries that tell nothing.

    .. math:: p = (1 - \varepsilon) \, \mathrm{softmax}(s) + \varepsilon \, p_\mathrm{prior}

    Answers come in the order of these probabilities, and where they are equal in that of scores: where nothing was
    found and all patterns are as likely, the one that explains a query best still comes first.
    """

    similarity: Corruption | Gaussian

    @torch.no_grad()
    @of_one_moment
    def recall(self, queries: Any, k: int = 1, *, observed: Observed = None, prior: Prior | None = None) -> Recall:
        """The k best patterns for each query, with probabilities that allow for a fit that found nothing.

        Args:
            queries, k, observed, prior: As in :meth:`~ahop.memories.base.AssociativeMemory.recall`.
        """
        if prior is None and self.prior is not None and bool(self.similarity.doubt > 0):
            return self._recall_among_all(queries, k, observed)
        found = super().recall(queries, k, observed=observed, prior=prior)
        return found if prior is not None else with_doubt(found, self.similarity.doubt, None, len(self))

    def _recall_among_all(self, queries: Any, k: int, observed: Observed) -> Recall:
        """Doubt gives what is often asked for more, which moves the order, so all patterns are compared."""
        k = self._as_count(k)
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = asked.flat()
        parts = split(len(flat), 4 * len(self) * flat.rows.element_size()) or [slice(0, 0)]
        found = [self._best(self._scores(flat[part]), k) for part in parts]
        indices, probabilities = (torch.cat(some) for some in zip(*found, strict=True))
        shape = (*asked.rows.shape[:-1], k)
        return Recall(indices.reshape(shape), probabilities.reshape(shape))

    def _best(self, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
        doubt = self.similarity.doubt.to(scores)
        if not bool(doubt > 0):
            return super()._best(scores, k)
        likely = self.separation.probabilities(scores)
        likely = likely.lerp(priors(self._log_prior(), len(self), likely).expand_as(likely), doubt)
        order = scores.sort(dim=-1, descending=True, stable=True).indices
        best = likely.gather(-1, order).sort(dim=-1, descending=True, stable=True)
        return order.gather(-1, best.indices[..., :k]), best.values[..., :k]
