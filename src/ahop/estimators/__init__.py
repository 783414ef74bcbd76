"""Associative memories as scikit-learn estimators."""

from ahop.estimators.bags import HopfieldBagClassifier
from ahop.estimators.retriever import HopfieldRetriever

__all__ = ["HopfieldBagClassifier", "HopfieldRetriever"]
