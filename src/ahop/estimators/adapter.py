"""Vectors of a new embedding model, as queries for an index of the old one's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from ahop._checks import UNKNOWN, choice
from ahop.estimators.atomic import atomic_fit
from ahop.memories import BayesianHopfield
from ahop.similarity import Moved

_KINDS = [np.float64, np.float32]


class QueryAdapter(TransformerMixin, BaseEstimator):
    r"""Maps vectors of a new embedding model to queries for an index that holds the old model's, and stays as it is.

    .. math:: y = W x + c

    W and c are :meth:`ahop.BayesianHopfield.query_adapter`'s, of a map between the two spaces that is learned from the
    new vectors alone, from some of them whose old vectors are known, or from such pairs alone.

    Args:
        metric: What the index ranks by: ``"cosine"``, ``"inner"`` or ``"l2"``.

    Attributes:
        memory_: A memory with the map, whose ``recall`` scores exactly: of ``library`` in its order, and of what y has
            besides.
        adapter_: The map, :class:`~ahop.similarity.bridge.Adapter`.

    Shape:
        X: :math:`(n, q)` of the new model; y and library: :math:`(n, d)` and :math:`(N, d)` of the old; ``transform``:
        :math:`(n, d)`.

    Example:
        >>> import numpy as np
        >>> from ahop.estimators import QueryAdapter
        >>> draw = np.random.default_rng(0)
        >>> old, turn = draw.normal(size=(200, 5)), draw.normal(size=(5, 7))
        >>> new = old @ turn + 0.01 * draw.normal(size=(200, 7))
        >>> adapter = QueryAdapter("l2").fit(new[:50], old[:50], library=old)
        >>> gaps = adapter.transform(new)[:, None] - old
        >>> bool((np.square(gaps).sum(-1).argmin(1) == np.arange(200)).mean() > 0.95)
        True
    """

    def __init__(self, metric: str = "cosine") -> None:
        self.metric = metric

    @atomic_fit
    def fit(self, X: Any, y: Any = None, library: Any = None) -> QueryAdapter:  # noqa: N803
        """Learn the map.

        Args:
            X: Vectors of the new model.
            y: Those of the old model for the same items, row by row, with NaN in the rows of items that nobody knows;
                None where nobody knows any.
            library: What the index holds, all of it, ``(N, d)``; None is y.
        """
        choice(self.metric, "metric", ("cosine", "inner", "l2"))
        rows = validate_data(self, X, dtype=_KINDS)
        stored, origins = _stored(rows, y, library)
        queries = torch.tensor(rows)
        likelihood = Moved(stored.shape[1], rows.shape[1]).to(queries)
        with warnings.catch_warnings():
            # That no map was found is an error here: an index would be asked with noise.
            warnings.filterwarnings("ignore", "no map from the patterns")
            report = likelihood.fit(torch.tensor(stored), queries, torch.tensor(origins))
        if not report.found:
            raise ValueError(
                f"X must have a map to library that is better than chance, and none was found from {len(rows):,} rows, "
                f"{int((origins != UNKNOWN).sum()):,} of them with y: about fifty rows of y help, or some 1,500 of X"
            )
        self.memory_ = BayesianHopfield(torch.tensor(stored), similarity=likelihood)
        self.adapter_ = self.memory_.query_adapter(self.metric)
        return self

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Queries for the index."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=_KINDS, reset=False)
        with torch.no_grad():
            return self.adapter_(torch.tensor(rows)).numpy().astype(rows.dtype, copy=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _stored(rows: np.ndarray, y: Any, library: Any) -> tuple[np.ndarray, np.ndarray]:
    """All old vectors, and which of them each row is, ``(n,)``; -1 where nobody knows."""
    if y is None and library is None:
        raise ValueError("library must be given where y is None: old vectors come from one or the other")
    origins = np.full(len(rows), UNKNOWN)
    held: Any = None if library is None else check_array(library, dtype=rows.dtype, input_name="library")
    if y is not None:
        wanted = check_array(y, dtype=rows.dtype, ensure_all_finite="allow-nan", ensure_2d=False, input_name="y")
        check_consistent_length(rows, wanted)
        wanted = wanted.reshape(len(rows), -1)
        held = wanted[:0] if held is None else held
        if held.shape[1] != wanted.shape[1]:
            raise ValueError(f"library must have {wanted.shape[1]} columns, as y has; got {held.shape[1]}")
        known = ~np.isnan(wanted).any(1)
        held, origins[known] = _placed(held, wanted[known])
    if len(held) < 2:
        raise ValueError(f"library and y must have at least two different rows; got {len(held)} sample")
    return held, origins


def _placed(held: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """What is held and, after it, what is wanted and not there; and where each that is wanted is."""
    places: dict[bytes, int] = {}
    asked = {row.tobytes() for row in wanted}
    for place, row in enumerate(held):
        if (key := row.tobytes()) in asked:
            places.setdefault(key, place)
    new: list[np.ndarray] = []
    for row in wanted:
        if places.setdefault(row.tobytes(), len(held) + len(new)) == len(held) + len(new):
            new.append(row)
    return np.concatenate([held, *([new] if new else [])]), [places[row.tobytes()] for row in wanted]
