"""A regressor for tables: the cases that are like a row say what its value is."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from ahop.estimators.atomic import atomic_fit
from ahop.estimators.tables import TableEstimator


class HopfieldRegressor(RegressorMixin, TableEstimator):
    r"""Predicts a number by the cases that are like a row: the mean of theirs, each counting as much as it is alike.

    .. math:: \hat y(x) = \sum_i \mathrm{softmax}_i\big(\mathrm{sim}(e(\xi_i), e(x)) + \log w_i\big)\, y_i

    All but the targets, which are numbers, and the loss, which is the squared error, is as in
    :class:`HopfieldClassifier`; there is nothing to calibrate.

    Args:
        similarity, ...: Those of :class:`HopfieldClassifier` but ``class_weight``.

    Attributes:
        mean_, spread_: Of the targets; networks learn these scaled by them.
        columns_, case_indices_, case_targets_, memories_: As of :class:`HopfieldClassifier`.

    Shape:
        - X: :math:`(n, \text{columns})`, y and ``predict``: :math:`(n,)`
        - ``recall``: :math:`(n, k)` each, ``explain``: :math:`(n, \text{columns})`

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import HopfieldRegressor
        >>> rows = np.random.default_rng(0).uniform(-1, 1, (400, 2))
        >>> values = np.sin(3 * rows[:, 0]) + rows[:, 1]
        >>> bool(HopfieldRegressor(random_state=0).fit(rows, values).score(rows, values) > 0.9)
        True
    """

    @atomic_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HopfieldRegressor:  # noqa: N803
        """Store rows and their values, and learn what is alike; a row of weight 2 counts as two.

        Args:
            X: The table, ``(n, columns)``.
            y: The value of each row.
            sample_weight: How much each row counts; None counts all alike.
        """
        table, values, weights = self._checked(X, y, sample_weight)
        try:
            values = values.astype(float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must hold numbers: {error}") from error
        weights = self._relative(weights)
        share = np.ones(len(values)) if weights is None else weights
        if not share.any():
            raise ValueError("X must have at least 2 rows of positive weight, got n_samples = 0")
        with np.errstate(over="ignore", invalid="ignore"):
            self.mean_ = float(np.average(values, weights=share))
            self.spread_ = float(np.sqrt(np.average((values - self.mean_) ** 2, weights=share))) or 1.0
        if not np.isfinite([self.mean_, self.spread_]).all():
            raise ValueError("y has numbers too large to be squared")
        self._fit(table, ((values - self.mean_) / self.spread_)[:, None], weights, None)
        self.case_targets_ = values[self.case_indices_]
        return self

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The value of each row."""
        return self._answers(self._rows(X))[:, 0] * self.spread_ + self.mean_

    _classifies = False

    def _difference(self, answers: np.ndarray, others: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return (answers - others)[:, 0] * self.spread_
