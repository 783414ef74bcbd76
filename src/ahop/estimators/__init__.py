"""Associative memories as scikit-learn estimators."""

from ahop.estimators.bags import HopfieldBagClassifier
from ahop.estimators.retriever import HopfieldRetriever
from ahop.estimators.tables import HopfieldClassifier, HopfieldRegressor

__all__ = ["HopfieldBagClassifier", "HopfieldClassifier", "HopfieldRegressor", "HopfieldRetriever"]
