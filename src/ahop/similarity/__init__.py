"""How alike are a pattern and a query: fixed similarities, and ones that learn."""

from ahop.similarity.base import Cosine, Decomposable, Distance, Dot, Manhattan, Similarity, Unified
from ahop.similarity.footprint import Adaptive, footprint, k_optimal
from ahop.similarity.likelihood import Likelihood
from ahop.similarity.regimes import Regimes

__all__ = [
    "Adaptive",
    "Cosine",
    "Decomposable",
    "Distance",
    "Dot",
    "Likelihood",
    "Manhattan",
    "Regimes",
    "Similarity",
    "Unified",
    "footprint",
    "k_optimal",
]
