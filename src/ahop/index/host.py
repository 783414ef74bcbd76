"""What is asked of the memory that an index belongs to."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from torch import Tensor

from ahop._queries import Queries
from ahop._recall import Recall
from ahop.similarity import Corruption


class Host(Protocol):
    """A memory with a learned likelihood, as :class:`ahop.BayesianHopfield` is."""

    name: ClassVar[str]
    patterns: Tensor
    prior: Tensor | None
    similarity: Corruption
    report: Any
    changing: Any
    """Held while patterns, what was learned and codes are not yet of one moment."""
    _index: Any

    def __len__(self) -> int: ...

    @property
    def query_dim(self) -> int: ...

    @property
    def verified(self) -> bool: ...

    def _log_prior(self) -> Tensor | None: ...

    def _scores(self, queries: Queries) -> Tensor: ...

    def _described(self) -> Tensor: ...

    def __copy__(self) -> Any: ...

    def recall_exactly(self, queries: Any, k: int = 1) -> Recall: ...

    def query_adapter(self, metric: str = "cosine") -> Any: ...

    def arguments(self) -> dict[str, Any]: ...

    def state_dict(self) -> dict[str, Any]: ...

    def to(self, device: Any) -> Any: ...
