"""FAISS as a store: exact search in the memory of this process."""

from __future__ import annotations

import numpy as np

from ahop._checks import integer
from ahop._extras import require
from ahop.index.stores.base import StoreError


class FaissStore:
    """Vectors of this width in FAISS, found by their dot product.

    Args:
        width: Numbers a vector.

    Example:
        >>> store = FaissStore(2)
        >>> store.upsert(np.array([7, 8]), np.eye(2, dtype=np.float32))
        >>> store.search(np.array([[0.0, 1.0]], np.float32), 1)[0]
        array([[8]])
    """

    def __init__(self, width: int) -> None:
        require("faiss", extra="index")
        import faiss

        self.index = faiss.IndexIDMap2(faiss.IndexFlatIP(integer(width, "width", 1)))

    def upsert(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        self._require_width(vectors)
        self.delete(ids)
        self.index.add_with_ids(vectors, ids)

    def delete(self, ids: np.ndarray) -> None:
        self.index.remove_ids(np.ascontiguousarray(ids))  # type: ignore[arg-type]

    def search(self, vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        self._require_width(vectors)
        scores, ids = self.index.search(vectors, count)
        return ids, scores

    def _require_width(self, vectors: np.ndarray) -> None:
        if vectors.shape[1:] != (self.index.d,):
            raise StoreError(f"FAISS: vectors must have {self.index.d} numbers each, got shape {vectors.shape}")
