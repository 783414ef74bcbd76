"""Rough scores of stored patterns, by dot products of codes; what the two ways to search have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ahop._queries import Queries
from ahop.similarity.codes import Asked, Codes

# Patterns that codes are made for; they stand for all others.
_SAMPLED_PATTERNS = 2**17


class Found(NamedTuple):
    """The best patterns of each query ``(Q, L)``, as many candidates as were asked for first and perhaps more, -1 where
    there are fewer; their rough scores ``(Q, L)``, if there are any; and the log of what all others sum up to ``(Q,)``.
    """

    listed: Tensor
    scores: Tensor | None
    log_rest: Tensor


class Rough:
    """A learned likelihood as a mixture of codes, at an inverse temperature.

    Args:
        parts: The log share and the codes of each part.
        beta: The inverse temperature.
    """

    def __init__(self, parts: Sequence[tuple[float, Codes]], beta: float) -> None:
        self.parts, self.beta = list(parts), beta

    def encode(self, rows: Tensor) -> list[Tensor]:
        """The codes of patterns, by part."""
        return [codes.encode_patterns(rows) for _, codes in self.parts]

    def ask(self, queries: Queries) -> list[Asked]:
        """What to ask each part with."""
        return [codes.ask(queries.rows, queries.observed) for _, codes in self.parts]

    def logits(self, question: list[Asked], products: list[Tensor]) -> Tensor:
        """The rough scores at their temperature, from the dot products of each part ``(Q, n)``."""
        finished = zip(self.parts, question, products, strict=True)
        scores = [log_share + asked.finish(some) for (log_share, _), asked, some in finished]
        total = scores[0]
        for more in scores[1:]:
            total = torch.logaddexp(total, more)
        return total if self.beta == 1 else self.beta * total

    def to(self, device: torch.device) -> Rough:
        return Rough([(share, codes.to(device)) for share, codes in self.parts], self.beta)


class Engine(Protocol):
    """A way to search: it holds codes, follows the patterns, and finds candidates."""

    rough: Rough
    local: bool
    """Whether its codes are here, and can be made again."""
    recordable: bool
    """Whether a GPU can record a search: nothing in it depends on values."""

    def __len__(self) -> int: ...

    def tensors(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What it is made of: the large ones, a row a pattern, and the small ones."""

    def add(self, patterns: Tensor, log_prior: Tensor | None) -> None:
        """Further patterns ``(n, d)``."""

    def keep(self, kept: Tensor) -> None:
        """Forget all but these, in their order."""

    def search(self, queries: Queries, count: int, log_prior: Tensor | None) -> Found:
        """Find candidates: at least ``count`` for each query, or all patterns there are.

        Args:
            queries: ``(Q, d)``.
            count: How many candidates are wanted.
            log_prior: The log prior of each pattern, ``(N,)``; None is uniform.
        """


def sampled(patterns: Tensor, count: int = _SAMPLED_PATTERNS) -> Tensor:
    """So many of the patterns, by chance, with the lowest and highest values of all."""
    if len(patterns) <= count:
        return patterns
    rows = torch.randint(len(patterns), (count,), generator=torch.Generator().manual_seed(0))
    blocks = patterns.split(2**20)
    ends = [torch.stack([block.amin(0) for block in blocks]).amin(0)]
    ends.append(torch.stack([block.amax(0) for block in blocks]).amax(0))
    return torch.cat([patterns[rows.to(patterns.device)], torch.stack(ends)])


def log_minus(total: Tensor, part: Tensor) -> Tensor:
    """The log of what is left of a sum when a part of it is taken away; both are logarithms."""
    gap = (part - total).clamp_max(0)
    return total + torch.log1p(-gap.exp()).clamp_min(-math.inf)
