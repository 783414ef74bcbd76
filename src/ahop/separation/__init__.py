"""Separation: from similarity scores to weights over the stored patterns."""

from ahop.separation.base import Separation
from ahop.separation.epanechnikov import Epanechnikov
from ahop.separation.fixed import Argmax, Exponential, Identity, Power
from ahop.separation.loss import fenchel_young_loss
from ahop.separation.sparse import Entmax, Normmax, Sparsemax
from ahop.separation.subsets import KSubsets
from ahop.separation.tempered import COLDEST, HOTTEST, Softmax

__all__ = [
    "COLDEST",
    "HOTTEST",
    "Argmax",
    "Entmax",
    "Epanechnikov",
    "Exponential",
    "Identity",
    "KSubsets",
    "Normmax",
    "Power",
    "Separation",
    "Softmax",
    "Sparsemax",
    "fenchel_young_loss",
]
