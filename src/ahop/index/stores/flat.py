"""FAISS as a store: exact search in the memory of this process."""

from __future__ import annotations

import numpy as np

from ahop._checks import whole
from ahop._extras import require


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

        self.index = faiss.IndexIDMap2(faiss.IndexFlatIP(whole(width, "width", 1)))

    def upsert(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        self.delete(ids)
        self.index.add_with_ids(vectors, ids)

    def delete(self, ids: np.ndarray) -> None:
        self.index.remove_ids(np.ascontiguousarray(ids))  # type: ignore[arg-type]

    def search(self, vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        scores, ids = self.index.search(vectors, count)
        return ids, scores
