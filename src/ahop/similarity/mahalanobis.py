"""A distance in the coordinates in which what happened to the queries has no preferred direction."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ahop._precision import holds
from ahop.learning.report import FitReport
from ahop.similarity.base import Similarity
from ahop.similarity.squares import ROUNDING, squared_distances


class Mahalanobis(Similarity):
    r"""The distance that a learned covariance of the residuals gives.

    .. math:: s(\xi, x) = -\tfrac12 (x - b - \xi)^\top \Sigma^{-1} (x - b - \xi)

    :meth:`fit` takes the mean residual as b, and the covariance of residuals, shrunk towards a multiple of the identity
    as far as their number asks for (Ledoit and Wolf, 2004), as :math:`\Sigma`. The plain distance before that.

    Args:
        dim: Number of dimensions d.

    Example:
        >>> similarity = Mahalanobis(dim=2)
        >>> similarity(torch.eye(2), torch.tensor([[1.0, 0.0]]))
        tensor([[ 0., -1.]])
    """

    bias: Tensor
    whitening: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.register_buffer("bias", torch.zeros(dim))
        self.register_buffer("whitening", torch.eye(dim))

    def forward(self, patterns: Tensor, queries: Tensor, observed: Tensor | None = None) -> Tensor:
        if observed is not None and not bool(observed.all()):
            raise ValueError("observed is not supported by Mahalanobis: it mixes all dimensions")
        dtype, centre = queries.dtype, patterns.detach().mean(-2, keepdim=True)
        finest = 1 / torch.linalg.vector_norm(self.whitening, dim=0).amax()
        if not holds(finest, patterns - centre, queries - centre):
            patterns, queries = patterns.double(), queries.double()
        whitening = self.whitening.to(queries)
        stored, asked = (patterns - centre) @ whitening, (queries - centre - self.bias) @ whitening
        return (0 - squared_distances(stored, asked) / 2).to(dtype)

    def rounding(self, patterns: Tensor, queries: Tensor, best: Tensor) -> Tensor:
        return ROUNDING * best.abs()

    @torch.no_grad()
    def fit(
        self,
        patterns: Tensor,
        queries: Tensor,
        origins: Tensor | None = None,
        *,
        observed: Tensor | None = None,
        log_prior: Tensor | None = None,
    ) -> FitReport:
        """Learn bias and covariance from at least two queries whose origins are known."""
        # Scikit-learn takes a second to import.
        from sklearn.covariance import LedoitWolf

        if origins is None or len(queries) < 2:
            raise ValueError("origins must be given for at least two queries: their residuals are learned from")
        if observed is not None:
            raise ValueError("observed must be None: a covariance is learned from complete queries")
        gaps = (queries - patterns[origins]).double()
        bias = gaps.mean(0)
        # Measured in units of their own, for the shrinkage to see the same whatever the data are measured in.
        unit = float((gaps - bias).square().mean().sqrt()) or 1.0
        found = LedoitWolf(assume_centered=True).fit(((gaps - bias) / unit).cpu().numpy())
        covariance = torch.as_tensor(found.covariance_).to(gaps)
        values, vectors = torch.linalg.eigh(covariance)
        roots = values.clamp_min(1e-10 * float(values.max()) or 1.0).rsqrt()
        self.bias.copy_(bias)
        self.whitening.copy_(vectors * roots / unit)
        log_likelihood = found.score(((gaps - bias) / unit).cpu().numpy()) - self.bias.numel() * math.log(unit)
        return FitReport("closed form", -float(log_likelihood), 1, converged=True)
