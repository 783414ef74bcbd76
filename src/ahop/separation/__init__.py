"""Separation: from similarity scores to weights over the stored patterns."""

from ahop.separation.sparse import (
    COLDEST,
    HOTTEST,
    Argmax,
    Entmax,
    Exponential,
    Identity,
    Power,
    Separation,
    Softmax,
    Sparsemax,
)

__all__ = [
    "COLDEST",
    "HOTTEST",
    "Argmax",
    "Entmax",
    "Exponential",
    "Identity",
    "Power",
    "Separation",
    "Softmax",
    "Sparsemax",
]
