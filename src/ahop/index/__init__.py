"""Recall from millions of patterns: rough scores of all of them, exact ones of a few."""

from ahop.index.index import Agreement, Index
from ahop.index.shards import PartialRecall, ShardError, Shards
from ahop.index.storage import verify

__all__ = ["Agreement", "Index", "PartialRecall", "ShardError", "Shards", "verify"]
