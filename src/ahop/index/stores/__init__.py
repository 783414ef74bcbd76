"""Vector databases: codes go out, candidates come back, and the exact likelihood scores them here."""

from ahop.index.stores.base import Store, StoreError, over
from ahop.index.stores.flat import FaissStore
from ahop.index.stores.milvus import MilvusStore
from ahop.index.stores.pgvector import PgVectorStore

__all__ = ["FaissStore", "MilvusStore", "PgVectorStore", "Store", "StoreError", "over"]
