"""Milvus: embedded in this process by a file's name, or a cluster by its address."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ahop._checks import integer
from ahop._extras import require
from ahop.index.stores.base import StoreError

# How wide Milvus's vectors may be.
_WIDEST = 32_768
_ID, _VECTOR = "id", "code"


class MilvusStore:
    """A collection of vectors in Milvus, found by their dot product.

    Args:
        address: The name of a file that ends in ``.db`` for embedded Milvus Lite, or a cluster's ``"http://host:19530"``.
        collection: Its name; made if it is not there.
        width: Numbers a vector.
        token: What a cluster lets one in by.
        timeout: Seconds after which the database is given up.
    """

    def __init__(self, address: str, collection: str, width: int, *, token: str = "", timeout: float = 60.0) -> None:
        require("pymilvus", extra="milvus")
        from pymilvus import DataType, MilvusClient

        if integer(width, "width", 1) > _WIDEST:
            raise ValueError(f"width must be at most {_WIDEST}, which is what Milvus stores, got {width}")
        self.collection, self.timeout = collection, timeout
        with _said():
            self.client = MilvusClient(address, token=token, timeout=timeout)
            if not self.client.has_collection(collection):
                schema = self.client.create_schema(auto_id=False)
                schema.add_field(_ID, DataType.INT64, is_primary=True)
                schema.add_field(_VECTOR, DataType.FLOAT_VECTOR, dim=width)
                found_by = self.client.prepare_index_params()
                found_by.add_index(_VECTOR, index_type="FLAT", metric_type="IP")
                self.client.create_collection(
                    collection, schema=schema, index_params=found_by, consistency_level="Strong"
                )

    def upsert(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        rows = [{_ID: int(number), _VECTOR: row} for number, row in zip(ids, vectors, strict=True)]
        with _said():
            self.client.upsert(self.collection, rows, timeout=self.timeout)

    def delete(self, ids: np.ndarray) -> None:
        with _said():
            self.client.delete(self.collection, ids=[int(number) for number in ids], timeout=self.timeout)

    def search(self, vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        ids, scores = np.full((len(vectors), count), -1, np.int64), np.full((len(vectors), count), -np.inf, np.float32)
        with _said():
            self._wait()
            found = self.client.search(
                self.collection, data=list(vectors), limit=count, anns_field=_VECTOR, timeout=self.timeout
            )
            for row, hits in enumerate(found):
                ids[row, : len(hits)] = [hit["id"] for hit in hits]
                scores[row, : len(hits)] = [hit["distance"] for hit in hits]
        return ids, scores

    def _wait(self) -> None:
        """Until what was stored last is in the index."""
        end = time.monotonic() + self.timeout
        while self.client.describe_index(self.collection, _VECTOR).get("state") not in ("Finished", None):
            if time.monotonic() > end:
                raise StoreError(f"Milvus: the index of {self.collection!r} was not ready after {self.timeout:g} s")
            time.sleep(0.1)

    def close(self) -> None:
        """Let the connection go."""
        self.client.close()


@contextmanager
def _said() -> Iterator[None]:
    require("pymilvus", extra="milvus")
    from pymilvus.exceptions import MilvusException

    try:
        yield
    except (MilvusException, ConnectionError) as error:
        raise StoreError(f"Milvus: {' '.join(str(error).split())}") from error
