"""How alike are a pattern and a query: fixed similarities, and ones that learn."""

from ahop.similarity.base import Cosine, Decomposable, Distance, Dot, Euclidean, Manhattan, Similarity, Unified
from ahop.similarity.footprint import Adaptive, footprint, k_optimal
from ahop.similarity.inner import InnerProduct, Whitened
from ahop.similarity.likelihood import Likelihood
from ahop.similarity.regimes import Regimes
from ahop.similarity.subspace import Subspace

__all__ = [
    "Adaptive",
    "Cosine",
    "Decomposable",
    "Distance",
    "Dot",
    "Euclidean",
    "InnerProduct",
    "Likelihood",
    "Manhattan",
    "Regimes",
    "Similarity",
    "Subspace",
    "Unified",
    "Whitened",
    "footprint",
    "k_optimal",
]
