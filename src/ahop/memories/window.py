"""What a memory keeps of a stream to learn from."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ahop._queries import Queries

# A stream is learned from its last queries.
_WINDOW = 1024


class Window(NamedTuple):
    """The last queries of a stream ``(n, d)``, and their origins ``(n,)`` if known."""

    queries: Queries
    origins: Tensor | None

    def after(self, earlier: Window | None) -> Window:
        """These and earlier ones, if both are labelled or neither is."""
        both = [self] if earlier is None or (earlier.origins is None) != (self.origins is None) else [earlier, self]
        asked, like = [some.queries for some in both], self.queries.rows
        rows = torch.cat([some.rows.to(like) for some in asked])
        origins = observed = None
        if self.origins is not None:
            origins = torch.cat([some.origins.to(self.origins) for some in both if some.origins is not None])[-_WINDOW:]
        if any(some.observed is not None for some in asked):
            observed = torch.cat([some.boolean_mask.to(like.device) for some in asked])
        return Window(Queries(rows, observed)[-_WINDOW:], origins)
