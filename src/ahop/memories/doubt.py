"""Memories that may doubt a whole query: with that share, any pattern may be its origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ahop._blocks import split
from ahop._checks import Observed, as_queries
from ahop._component import single
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

    Answers come in the order of these probabilities. Where nothing was found (:math:`\varepsilon = 1`) all that is
    known is the prior, which tells no query from another: they then come in the order of scores, as the best guess.
    """

    similarity: Corruption | Gaussian

    @torch.no_grad()
    @of_one_moment
    def recall(self, queries: Any, k: int = 1, *, observed: Observed = None, prior: Prior | None = None) -> Recall:
        """The k best patterns for each query, with probabilities that allow for a fit that found nothing.

        Args:
            queries, k, observed, prior: As in :meth:`~ahop.memories.base.AssociativeMemory.recall`.
        """
        if prior is None and self.prior is not None and 0 < float(self.similarity.doubt) < 1:
            return self._recall_among_all(queries, k, observed)
        found = super().recall(queries, k, observed=observed, prior=prior)
        return found if prior is not None else with_doubt(found, self.similarity.doubt, self._log_prior(), len(self))

    def _recall_among_all(self, queries: Any, k: int, observed: Observed) -> Recall:
        """Doubt gives what is often asked for more, which moves the order, so all patterns are compared."""
        k = self._as_count(k)
        asked = as_queries(queries, self.patterns, observed, self.query_dim)
        flat = asked.flat()
        parts = split(len(flat), 4 * len(self) * flat.rows.element_size()) or [slice(0, 0)]
        found = [self._best(self._scores(flat[part]), k) for part in parts]
        indices, probabilities = (torch.cat(some) for some in zip(*found, strict=True))
        shape = (*asked.rows.shape[:-1], k)
        # As precise as any answer, even where some scores took float64.
        return Recall(indices.reshape(shape), probabilities.to(single(flat.rows[:0])).reshape(shape))

    def _best(self, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
        doubt = self.similarity.doubt.to(scores)
        likely = self.separation.probabilities(scores)
        likely = likely.lerp(priors(self._log_prior(), len(self), likely).expand_as(likely), doubt)
        if not 0 < float(doubt) < 1:
            chosen = scores.topk(k, dim=-1).indices
            return chosen, likely.gather(-1, chosen)
        order = scores.sort(dim=-1, descending=True, stable=True).indices
        best = likely.gather(-1, order).sort(dim=-1, descending=True, stable=True)
        return order.gather(-1, best.indices[..., :k]), best.values[..., :k]
