"""A memory as a scikit-learn estimator: fit stores rows, transform brings back what damaged rows stand for."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ahop._checks import as_device, integer
from ahop.estimators.atomic import atomic_fit
from ahop.memories import KernelHopfield, create


class HopfieldRetriever(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Stores rows and retrieves, for a damaged row, the stored one that best explains it.

    .. math:: y = \sum_i \mathrm{sep}_i\big(\mathrm{sim}(\xi_i, x)\big)\, \xi_i

    with the similarity and separation of the network; some learn theirs from examples of the damage.

    Args:
        model: The network by its short name: ``"m-hop"``, ``"a-hop"``, ``"b-hop"``, ... (see :func:`ahop.create`).
        options: Further arguments of the network.
        n_neighbors: How many stored rows :meth:`kneighbors` gives by default.
        steps: How often :meth:`transform` makes its answer the next state; None goes on until it rests.
        missing: Whether rows to retrieve may have NaN, for values that nobody saw: they are left out of every
            comparison, and :meth:`transform` fills them in.
        device: Where the memory lies and computes; ``"auto"`` is a GPU where there is one.

    Attributes:
        memory_: The fitted :class:`~ahop.AssociativeMemory`.

    Shape:
        - X of ``fit``: :math:`(N, d)`; X and output of ``transform``: :math:`(n, d)`
        - ``kneighbors``: :math:`(n, k)` each

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

    @atomic_fit
    def fit(self, X: Any, y: Any = None, *, queries: Any = None, origins: Any = None) -> HopfieldRetriever:  # noqa: N803
        """Store the rows of ``X`` and, where examples of the damage are given, learn from them what "alike" means.

        Args:
            X: Rows to store, ``(N, d)``.
            y: Ignored.
            queries: Damaged rows, ``(n, d)``; NaN is a missing value if ``missing`` allows for them.
            origins: Which stored row each came from, ``(n,)``; some networks learn without (``"b-hop"``).
        """
        if self.options is not None and not isinstance(self.options, dict):
            raise ValueError(f"options must be a dictionary of the network's arguments, got {self.options!r}")
        self._check_steps()
        rows = validate_data(self, X, dtype=[np.float64, np.float32])
        if queries is None and origins is not None:
            raise ValueError("origins must come with queries, got origins alone")
        if queries is not None:
            finite = "allow-nan" if self.missing else True
            kinds = [np.float64, np.float32]
            queries = check_array(queries, dtype=kinds, ensure_all_finite=finite, input_name="queries")
        # Copied, so that what the caller put into the options is not what learns.
        options = copy.deepcopy(self.options or {})
        try:
            memory = create(self.model, torch.tensor(rows, device=as_device(self.device)), **options)
        except TypeError as error:
            raise ValueError(f"options must be arguments of {self.model!r}: {error}") from error
        if queries is not None:
            memory = memory.fit(queries, origins, observed="not-nan" if self.missing else None)
        elif isinstance(memory, KernelHopfield) and memory.learns_from_patterns:
            # The one network that learns from the stored rows alone.
            memory = memory.fit()
        self.memory_ = memory
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """What each row brings back, ``(n, d)``."""
        self._check_steps()
        rows, observed = self._rows(X)
        with torch.no_grad():
            return self.memory_.retrieve(rows, self.steps, observed=observed).cpu().numpy()

    def kneighbors(self, X: Any, n_neighbors: int | None = None) -> tuple[np.ndarray, np.ndarray]:  # noqa: N803
        """The stored rows that best explain each row: their probabilities and indices, ``(n, k)``, best first.

        A separation with a reach may leave fewer: the rest is -1 with a probability of 0.
        """
        rows, observed = self._rows(X)
        count = self.n_neighbors if n_neighbors is None else n_neighbors
        if integer(count, "n_neighbors", 1) > len(self.memory_):
            raise ValueError(f"n_neighbors must be between 1 and {len(self.memory_)}, the stored rows; got {count}")
        found = self.memory_.recall(rows, count, observed=observed)
        return found.probabilities.cpu().numpy(), found.indices.cpu().numpy()

    def _check_steps(self) -> None:
        if self.steps is not None:
            integer(self.steps, "steps", 1)

    def _rows(self, X: Any) -> tuple[torch.Tensor, Any]:  # noqa: N803
        check_is_fitted(self)
        finite = "allow-nan" if self.missing else True
        rows = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite=finite, reset=False)
        return torch.tensor(rows), "not-nan" if self.missing else None

    def __getstate__(self) -> dict[str, Any]:
        # A file that was written beside a GPU can be read where there is none.
        state = super().__getstate__()
        return state | ({"memory_": copy.deepcopy(self.memory_).cpu()} if hasattr(self, "memory_") else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
