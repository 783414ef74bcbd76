"""A memory of patterns that are distributions: replicate measurements, each with a mean and a scatter of its own."""

from __future__ import annotations

from typing import Any

from ahop._checks import as_matrix
from ahop.memories.doubt import Doubting
from ahop.memories.scattered import Scattered
from ahop.separation import Softmax
from ahop.similarity.gaussian import Gaussian


class GaussianHopfield(Scattered, Doubting):
    r"""Knows how far measurements of each pattern scatter, and so how far a query may lie from it.

    .. math:: p(k \mid x) \propto \pi_k \, N\big(x;\, \xi_k + b,\, \mathrm{diag}(\sigma_k^2 + \psi)\big), \qquad
        E(x) = -\log \sum_k p(x \mid \xi_k)

    A query that lies far from a pattern may yet be the pattern's own, if measurements of it scatter so far. Bias and
    noise are what happens to queries beside that: :meth:`fit` learns them, with origins, without, or with some of them.
    Everything here is normal, and every dimension is hit by itself. :class:`~ahop.BayesianHopfield` takes a spread as
    well, and finds out what else may happen to queries; this is faster, and learns from fewer of them.

    ``retrieve`` is the posterior mean :math:`\sum_k p(k \mid x) \, \xi_k`, and no step down the energy: that has its
    wells where queries lie, bias included, and gives patterns that scatter less more of a say. The step that never
    raises it is :math:`x \leftarrow b + \sum_k w_k \odot \xi_k \oslash \sum_k w_k` with
    :math:`w_k = p(k \mid x) / (\sigma_k^2 + \psi)`; :func:`ahop.energy.descend` goes down by gradients.

    Probabilities rest on this model alone: five labels or more judge how right first choices are (``report``, by two
    halves), but no temperature is fitted to them, and no recall is ``verified``. Where labels are found no more often
    than by chance or, without labels, queries fit these patterns no better than others like them, ``report.found`` is
    False and probabilities are the prior.

    Another memory of Gaussians is that of Tankala and Balasubramanian (Dense associative memory on the
    Bures-Wasserstein space, 2025). There queries are Gaussians as well, and nothing is measured or learned: they are as
    far from patterns as it takes to move one to the other,

    .. math:: W_2^2 = \lVert \xi_k - \mu \rVert^2 + \lVert \sigma_k - \sigma \rVert^2

    where no values are correlated. So it is a plain memory of means beside standard deviations, whose step leads to the
    barycentre of patterns by their weights:

        >>> means, spread = torch.tensor([[0.0], [0.0]]), torch.tensor([[0.5], [2.0]])
        >>> memory = ahop.AssociativeMemory(torch.cat([means, spread], 1), "distance", ahop.separation.Softmax(4.0))
        >>> memory.recall([0.1, 1.8]).indices   # a mean of 0.1 and a standard deviation of 1.8
        tensor([1])

    Args:
        patterns: The means, ``(N, d)``.
        spread: The standard deviation of a measurement of each pattern, ``(N, d)``; None scatters nothing.
        values, prior: As in :class:`~ahop.memories.base.AssociativeMemory`.

    Example:
        >>> memory = GaussianHopfield([[0.0], [1.0]], spread=[[0.1], [3.0]]).fit([[0.0], [0.1], [4.0]], [0, 0, 1])
        >>> memory.recall([[0.0], [-1.0]]).indices.flatten()
        tensor([0, 1])
    """

    name = "g-hop"
    similarity: Gaussian

    def __init__(self, patterns: Any, *, spread: Any = None, values: Any = None, prior: Any = None) -> None:
        patterns = as_matrix(patterns, "patterns")
        super().__init__(patterns, Gaussian(patterns.shape[1]), Softmax(), spread=spread, values=values, prior=prior)
