"""A memory as a scikit-learn estimator: fit stores rows, transform brings back what damaged rows stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ahop.models import create


class HopfieldRetriever(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Stores rows and retrieves, for a damaged row, the stored one that best explains it.

    Args:
        model: The network by its short name: ``"m-hop"``, ``"a-hop"``, ``"b-hop"``, ... (see :func:`ahop.create`).
        options: Further arguments of the network.
        n_neighbors: How many stored rows :meth:`kneighbors` gives by default.
        steps: How often :meth:`transform` makes its answer the next state; None goes on until it rests.
        missing: Whether rows to retrieve may have NaN, for values that nobody saw: they are left out of every
            comparison, and :meth:`transform` fills them in.
        device: Where the memory lies and computes.

    Attributes:
        memory_: The fitted :class:`~ahop.AssociativeMemory`.

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import HopfieldRetriever
        >>> rows = np.array([[0.0, 0.0, 1.0], [5.0, 5.0, 5.0]])
        >>> retriever = HopfieldRetriever("u-hop", options={"similarity": "distance"}, missing=True).fit(rows)
        >>> retriever.transform([[4.0, 6.0, np.nan]])
        array([[5., 5., 5.]])
        >>> retriever.kneighbors([[0.5, 0.0, 0.0]])
        (array([[1.]]), array([[0]]))
    """

    def __init__(
        self,
        model: str = "m-hop",
        *,
        options: dict[str, Any] | None = None,
        n_neighbors: int = 1,
        steps: int | None = 1,
        missing: bool = False,
        device: str = "cpu",
    ) -> None:
        self.model = model
        self.options = options
        self.n_neighbors = n_neighbors
        self.steps = steps
        self.missing = missing
        self.device = device

    def fit(self, X: Any, y: Any = None, *, queries: Any = None, origins: Any = None) -> HopfieldRetriever:  # noqa: N803
        """Store the rows of ``X`` and, where examples of the damage are given, learn from them what "alike" means.

        Args:
            X: Rows to store, ``(N, d)``.
            y: Ignored.
            queries: Damaged rows, ``(n, d)``.
            origins: Which stored row each came from, ``(n,)``; some networks learn without (``"b-hop"``).
        """
        rows = validate_data(self, X, dtype=[np.float64, np.float32])
        memory = create(self.model, torch.tensor(rows, device=self.device), **(self.options or {}))
        self.memory_ = memory if queries is None else memory.fit(queries, origins)
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """What each row brings back, ``(n, d)``."""
        rows, observed = self._rows(X)
        with torch.no_grad():
            return self.memory_.retrieve(rows, self.steps, observed=observed).cpu().numpy()

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
        """The stored rows that best explain each row: their probabilities and indices, ``(n, k)``, best first."""
        rows, observed = self._rows(X)
        count = self.n_neighbors if n_neighbors is None else n_neighbors
        found = self.memory_.recall(rows, count, observed=observed)
        return found.probabilities.cpu().numpy(), found.indices.cpu().numpy()

    def _rows(self, X: Any) -> tuple[torch.Tensor, Any]:  # noqa: N803
        check_is_fitted(self)
        finite = "allow-nan" if self.missing else True
        rows = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite=finite, reset=False)
        return torch.tensor(rows), "not-nan" if self.missing else None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
