"""Associative memories as scikit-learn estimators."""

from ahop.estimators.adapter import QueryAdapter
from ahop.estimators.bags import HopfieldBagClassifier
from ahop.estimators.classifier import HopfieldClassifier
from ahop.estimators.regressor import HopfieldRegressor
from ahop.estimators.retriever import HopfieldRetriever
from ahop.estimators.transfer import CalibrationTransfer, DirectStandardization, PiecewiseDirectStandardization

__all__ = [
    "CalibrationTransfer",
    "DirectStandardization",
    "HopfieldBagClassifier",
    "HopfieldClassifier",
    "HopfieldRegressor",
    "HopfieldRetriever",
    "PiecewiseDirectStandardization",
    "QueryAdapter",
]
